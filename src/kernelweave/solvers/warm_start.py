"""A start from a subsample: solving on some of the samples costs little and ends near the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.errors import DegenerateSamplesError, IndefiniteKernelError
from kernelweave.geometry.base import Geometry
from kernelweave.solvers.base import Solver
from kernelweave.solvers.problem import Problem, Progress, Result, WarmStart

# A few samples may lack a class, or show that a kernel is indefinite or singular; then all samples will say so.
NOT_SOLVABLE = (DegenerateSamplesError, IndefiniteKernelError, np.linalg.LinAlgError)


def subsample_warm_start(
    problem: Problem, solver: Solver, progress: Progress | None = None
) -> WarmStart | None:
    """Return the weights that solve the problem on a subsample; None where that does not pay.

    Each sample taken stands for its share of all, so that losses add up to as much. The weights are a start
    and no more: bounds are those of all samples. None also where the learner cannot do with so few samples
    or the geometry has one point only, and where the kernels of the subsample cannot be solved: why that is,
    the fit on all samples will say.
    """
    p = problem
    size = subsample_size(p.grams.n_samples, p.grams.n_kernels)
    if size == 0 or _is_single_point(p.geometry, p.grams.n_kernels):
        return None
    weight = np.ones(p.grams.n_samples) if p.weight is None else p.weight
    rows = representative_rows(p.y, np.flatnonzero(weight > 0.0), size)
    if rows.size < size:
        return None
    own, y = weight[rows] * (weight.sum() / weight[rows].sum()), p.y[rows]
    part = replace(p, grams=p.grams.sample(rows), y=y, weight=own)
    # The optimum of a subsample is not that of all samples: a rough solution is as good a start.
    found = solve_few(part, replace(solver, tol=max(solver.tol or 0.0, 3e-2)), progress)
    return None if found is None else WarmStart(found.eta)


def solve_few(part: Problem, solver: Solver, progress: Progress | None = None) -> Result | None:
    """Solve a problem on few of the samples; None where so few cannot be solved. Ctrl-C is passed on."""
    n = len(part.y)
    try:
        for column in part.y.reshape(n, -1).T:
            part.learner.check(column, np.ones(n) if part.weight is None else part.weight)
        found = solver.run(part, progress=progress)
    except NOT_SOLVABLE:
        return None
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    return found


def subsample_size(n_samples: int, n_kernels: int) -> int:
    """Return how many samples to look for a start among; 0 where that does not pay.

    It pays from a thousand samples on, where one pass over all kernels costs more than solving a subsample:
    a quarter of the samples, at most a thousand, and as many as fit into 128 MB of packed triangles.
    """
    if n_samples < 1000:
        return 0
    fits = int((2.0**27 / (4.0 * n_kernels)) ** 0.5)
    size = min(n_samples // 4, 1000, fits)
    return size if size >= 100 else 0


def representative_rows(y: AnyArray, rows: Indices, size: int) -> Indices:
    """Return ``size`` of the rows, ascending, evenly spaced in the order of their targets."""
    if rows.size <= size:
        return rows
    columns = y[rows].reshape(rows.size, -1).T
    order = rows[np.lexsort(columns[::-1])]
    return np.sort(order[np.linspace(0, rows.size - 1, size).astype(np.intp)])


def _is_single_point(geometry: Geometry, n_kernels: int) -> bool:
    """Return whether the best weights are the same whatever the energies."""
    energies = np.arange(1.0, n_kernels + 1.0)
    return np.array_equal(geometry.maximizer(energies), geometry.start(n_kernels))
