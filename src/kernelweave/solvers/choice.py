"""Which solver an estimator uses unless it is given one."""

from __future__ import annotations

from dataclasses import replace

from kernelweave.geometry.base import Geometry, SupportsWorkingSet
from kernelweave.solvers.base import Solver
from kernelweave.solvers.block_descent import BlockDescent
from kernelweave.solvers.column_generation import ColumnGeneration
from kernelweave.solvers.newton import Newton
from kernelweave.solvers.streamed import StreamedDescent


def choose_solver(geometry: Geometry, n_kernels: int, tol: float) -> Solver:
    """Return the solver with least work: the closed form where it settles in a few steps, else Newton.

    The closed form's many cheap steps beat Newton's few expensive ones down to a gap of 1e-5 (lp ball,
    p ≥ 2). Beyond a thousand kernels Newton's model grows too large: there kernels enter one by one if at
    most a hundred of them must be used, and the closed form has to do where more are.
    """
    if n_kernels > 1000:
        if isinstance(geometry, SupportsWorkingSet) and geometry.min_active(n_kernels) <= 100:
            return ColumnGeneration()
        return BlockDescent(relaxation=0.7)
    quick = geometry.fast_block_update and tol >= 1e-5
    return BlockDescent(relaxation=0.7) if quick else Newton()


def solver_with_defaults(
    solver: Solver | None,
    geometry: Geometry,
    n_kernels: int,
    tol: float,
    max_iter: int | None,
    *,
    streamed: bool = False,
) -> Solver:
    """Return the solver to use, with the estimator's tolerance and cap where it has none of its own.

    ``streamed`` says that kernels are not stored and that no matrix of all samples may be asked for.
    """
    chosen = solver
    if chosen is None:
        chosen = choose_solver(geometry, n_kernels, tol)
        chosen = StreamedDescent(coarse_solver=chosen) if streamed else chosen
    return replace(
        chosen,
        tol=tol if chosen.tol is None else chosen.tol,
        max_iter=max_iter if chosen.max_iter is None else chosen.max_iter,
    )
