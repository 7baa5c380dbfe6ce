"""From stored kernels and signs to a solved problem: precision, threads, warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import IndefiniteKernelError
from kernelweave.geometry.protocol import WeightGeometry
from kernelweave.gram.protocol import GramStack
from kernelweave.learners.protocol import Learner
from kernelweave.solvers import Newton, Progress, Result, Solver


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread: its own pool fights with ours and loses small problems to locking."""
    return _pools().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


def with_defaults(solver: Solver | None, tol: float, max_iter: int | None) -> Solver:
    """Return the solver to use, with the estimator's tolerance and cap where it has none of its own."""
    chosen = Newton() if solver is None else solver
    return replace(
        chosen,
        tol=tol if chosen.tol is None else chosen.tol,
        max_iter=max_iter if chosen.max_iter is None else chosen.max_iter,
    )


def train(
    stack: GramStack,
    refine: Callable[[], GramStack] | None,
    y: AnyArray,
    weight: Vector,
    learner: Learner,
    geometry: WeightGeometry,
    solver: Solver,
    names: tuple[str, ...],
    progress: Progress | None = None,
) -> tuple[Result, GramStack]:
    """Solve, and once more in float64 from where float32 ended if rounding kept the gap open."""
    try:
        with single_threaded_blas():
            result = solver.solve(stack, y, learner, geometry, weight=weight, progress=progress)
            if result.stopped not in ("converged", "interrupted") and refine is not None and stack.errors.any():
                stack = refine()
                result = solver.solve(
                    stack,
                    y,
                    learner,
                    geometry,
                    weight=weight,
                    start=result.eta,
                    warm=result.machine.coef,
                    progress=progress,
                )
    except IndefiniteKernelError as error:
        raise IndefiniteKernelError(error.index, error.energy, names[error.index]) from None
    return result, stack


def warn_if_open(result: Result, tol: float) -> None:
    """Say so when the certificate did not reach the tolerance."""
    if result.stopped == "converged":
        return
    reason = {
        "max_iter": f"max_iter={result.n_iter} machines were solved; raise max_iter or tol",
        "stalled": "no further descent was found; raise tol, or scale the kernels to similar size",
        "interrupted": "it was interrupted; the best weights so far are kept",
    }[result.stopped]
    warnings.warn(
        f"Stopped at a relative duality gap of {result.certificate.relative_gap:.2e}, above tol={tol:.2e}: "
        f"{reason}.",
        ConvergenceWarning,
        stacklevel=3,
    )
