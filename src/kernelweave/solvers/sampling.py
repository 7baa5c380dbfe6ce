"""A start from some of the samples: a walk over few of them costs little and ends near the optimum of all."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kernelweave._typing import AnyArray, Indices, Vector
from kernelweave.errors import IndefiniteKernelError
from kernelweave.geometry.base import Geometry
from kernelweave.gram.protocol import Samples
from kernelweave.solvers.base import Solver
from kernelweave.solvers.problem import LOOSEST, Problem, Progress

# Samples that are taken together: their entries fill two lines of the cache.
RUN = 16
# How far mean and spread of a sample's targets may be from those of all, by the spread: 300 samples of two
# even classes in random order are off by less in 99 cases of 100.
LIKE = 0.15


@dataclass
class Sample:
    """The problem on some of the samples, solved roughly: its weights are a start, its energies a model."""

    problem: Problem = field(repr=False)
    eta: Vector
    coef: AnyArray = field(repr=False)
    h: Vector | None = None  # the energies at eta, where they are known

    def energies(self, eta: Vector) -> Vector | None:
        """Return those of its machine at some weights; None where it cannot be solved."""
        if self.h is not None and np.array_equal(eta, self.eta):
            return self.h
        p = self.problem
        try:
            machine = p.learner.solve(p.bank.combine(eta), p.y, p.weight, self.coef, LOOSEST)
        except np.linalg.LinAlgError:
            return None
        self.coef = machine.coef
        return p.bank.energies(machine.coef)


def guess(p: Problem, solver: Solver, size: int, progress: Progress | None = None) -> Sample | None:
    """Return the problem on ``size`` of the samples, with weights near the optimum of all.

    Each of them stands for its share of all, so that losses add up to as much. What they say is a guess and
    no more: bounds are those of all samples. None where there are not as many samples with weight, the
    learner cannot do with so few, or the geometry has one point only; and where the kernels of the sample
    cannot be solved, for why that is the walk over all samples will say.
    """
    if size == 0 or not isinstance(p.bank, Samples) or _is_a_point(p.geometry, p.bank.n_kernels):
        return None
    weight = np.ones(p.bank.n_samples) if p.weight is None else p.weight
    rows = spread(p.y, np.flatnonzero(weight > 0.0), size)
    if rows.size < size:
        return None
    own, y = weight[rows] * (weight.sum() / weight[rows].sum()), p.y[rows]
    try:
        for column in y.reshape(rows.size, -1).T:
            p.learner.check(column, own)
    except ValueError:
        return None
    part = replace(p, bank=p.bank.sample(rows), y=y, weight=own)
    try:
        found = replace(solver, tol=max(solver.tol or 0.0, solver.rough)).run(part, progress=progress)
    except (IndefiniteKernelError, np.linalg.LinAlgError):
        return None
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    known = None if found.visited is None else found.visited.point.h
    return Sample(part, found.eta, found.machine.coef, known)


def _is_a_point(geometry: Geometry, n_kernels: int) -> bool:
    """Return whether the best weights are the same whatever the energies."""
    energies = np.arange(1.0, n_kernels + 1.0)
    return np.array_equal(geometry.maximizer(energies), geometry.start(n_kernels))


def spread(y: AnyArray, rows: Indices, size: int) -> Indices:
    """Return some of the rows, ascending, whose targets are like those of all.

    Rows that follow each other are read faster: runs of them are taken, unless their targets differ too much,
    as rare classes may. Then it is every so many-th in the order of the targets.
    """
    if rows.size <= size:
        return rows
    runs = _in_runs(rows, size)
    if runs.size == size and _is_like(y[runs], y[rows]):
        return runs
    columns = y[rows].reshape(rows.size, -1).T
    order = rows[np.lexsort(columns[::-1])]
    return np.sort(order[np.linspace(0, rows.size - 1, size).astype(np.intp)])


def _in_runs(rows: Indices, size: int) -> Indices:
    """Return that many rows in runs, spread over all; fewer where there are not as many runs."""
    wanted, there = -(-size // RUN), rows.size // RUN
    firsts = np.linspace(0, there - 1, min(wanted, there)).astype(np.intp) * RUN
    places = (firsts[:, None] + np.arange(RUN)).ravel()
    return rows.take(places[:size])


def _is_like(some: AnyArray, all_: AnyArray) -> bool:
    """Return whether targets have nearly the same mean and spread."""
    spread_, scale = some.std(axis=0), all_.std(axis=0)
    off = np.abs(some.mean(axis=0) - all_.mean(axis=0))
    return bool(np.all(off <= LIKE * scale) and np.all(np.abs(spread_ - scale) <= LIKE * scale))
