"""Cyclic Bregman projections: visit the pairs in a new random order until the certificate is good enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernelweave._threads import blas_threads
from kernelweave._typing import Matrix, Vector
from kernelweave.metric.feasibility import FeasibilityTest, infeasible, strictly_feasible
from kernelweave.metric.problem import MetricProblem, Multipliers, Solution
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.result import Record

THESIS_CHANGE = 1e-3  # [Xu14, Sec. 5.4.4]: Algorithm 6 stops when the multipliers change by less


@dataclass(frozen=True)
class MetricResult:
    """The best metrics seen, the multipliers behind the lower bound, and how the fit went."""

    M: Matrix
    P: Matrix
    a: Vector = field(repr=False)
    b: Vector = field(repr=False)
    certificate: Certificate
    history: tuple[Record, ...] = field(repr=False)
    n_sweeps: int
    stopped: str


class Watch:
    """Keeps the best bounds, the metrics of the better upper bound, and the record of them."""

    def __init__(
        self, problem: MetricProblem, rng: np.random.Generator, progress: Callable[[Record], None] | None
    ):
        self.problem, self.progress = problem, progress
        self.began = time.perf_counter()
        self.hard = bool(problem.told.any() and np.isinf(problem.cap[problem.told]).any())
        self.inner = strictly_feasible(problem, rng) if self.hard else None
        self.test = FeasibilityTest.of(problem) if self.hard and self.inner is None else None
        self.before = np.zeros(problem.n_pairs)
        self.best: Solution | None = None
        self.lower = -np.inf
        self.proof: tuple[Vector, Vector] | None = None
        self.history: list[Record] = []

    def look(self, state: Multipliers) -> Certificate:
        if self.test is not None:  # multipliers of contradicting constraints grow for ever, along the proof
            for ray in (state.a, np.maximum(state.a - self.before, 0.0)):
                if self.test.proves(ray):
                    raise infeasible(self.problem, ray)
            self.before = state.a.copy()
        found = self.problem.certify(state, self.inner)
        if self.best is None or found.upper <= self.best.upper:
            self.best = found
        if found.lower > self.lower:
            self.lower, self.proof = found.lower, (state.a.copy(), state.b.copy())
        certificate = Certificate(self.best.upper, self.lower)
        seconds = time.perf_counter() - self.began
        self.history.append(Record(certificate, seconds, int(np.count_nonzero(state.a))))
        if self.progress is not None:
            self.progress(self.history[-1])
        return certificate

    def result(self, state: Multipliers, n_sweeps: int, stopped: str, as_left: bool) -> MetricResult:
        """Return the metrics of the upper bound, or those the state was left with."""
        assert self.best is not None
        M, P = (state.M, state.P) if as_left else (self.best.M, self.best.P)
        a, b = self.proof or (state.a, state.b)
        certificate = Certificate(self.best.upper, self.lower)
        return MetricResult(M, P, a, b, certificate, tuple(self.history), n_sweeps, stopped)


def solve(
    problem: MetricProblem,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    corrected: bool = True,
    progress: Callable[[Record], None] | None = None,
) -> MetricResult:
    """Sweep over the pairs until the relative gap is at most ``tol``, each time in a new random order.

    Without the correction [Xu14, Algorithm 6] multipliers only grow, the walk ends when they hardly change,
    and the certificate shows what is missing.
    """
    with blas_threads(1):
        watch = Watch(problem, rng, progress)
        state = problem.start()
        try:
            n_sweeps, stopped = _walk(problem, watch, state, tol, max_iter, rng, corrected)
        except KeyboardInterrupt:
            if watch.best is None:
                raise
            n_sweeps, stopped = len(watch.history), "interrupted"
        return watch.result(state, n_sweeps, stopped, as_left=not corrected)


def _walk(
    problem: MetricProblem,
    watch: Watch,
    state: Multipliers,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    corrected: bool,
) -> tuple[int, str]:
    if corrected and watch.look(state).relative_gap <= tol:  # the priors satisfy every pair
        return 0, "converged"
    due = 2
    for sweep in range(1, max_iter + 1):
        before = None if corrected else state.a.copy()
        broken = problem.sweep(state, rng.permutation(problem.n_pairs), corrected)
        steady = before is not None and _change(before, state.a) <= THESIS_CHANGE
        if sweep < due and sweep < max_iter and not (broken or steady):
            continue
        due = sweep + 2 + sweep // 8  # a look costs as much as a sweep or two
        try:
            certificate = watch.look(state)
        except np.linalg.LinAlgError:
            return sweep, "broken"
        if certificate.relative_gap <= tol:
            return sweep, "converged"
        if broken or steady:
            return sweep, "broken" if broken else "steady"
    return max_iter, "max_iter"


def _change(before: Vector, after: Vector) -> float:
    return float(np.linalg.norm(after - before) / max(np.linalg.norm(after), np.finfo(float).tiny))
