"""Cyclic Bregman projections: sweep over the pairs in a new random order until primal and dual bounds meet.

`BregmanProjections` is the solver and `BestBounds` what it remembers. The second half is about the hard form
of ITML+, which may have no solution: `find_interior_point` looks for metrics well inside the constraints,
`proves_infeasible` recognises a proof that there are none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.errors import InfeasibleError
from kernelweave.metric.central_path import follow_central_path, n_unknowns
from kernelweave.metric.problem import LogDetProblem, PairSpace, PointPairs, PrimalPoint, ProjectionState
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.problem import Record


@dataclass(frozen=True)
class MetricResult:
    """The metrics of the best upper bound, the multipliers of the best lower bound, and how the fit went.

    ``stopped`` is "converged", "max_iter", "steady" (uncorrected steps at rest), "broken" (distances have
    left the range of numbers) or "interrupted".
    """

    M: Matrix
    P: Matrix
    a: Vector = field(repr=False)
    b: Vector = field(repr=False)
    certificate: Certificate
    history: tuple[Record, ...] = field(repr=False)
    n_sweeps: int
    stopped: str


@dataclass(frozen=True)
class BregmanProjections:
    r"""Cyclic Bregman projections with corrections, stopped by the duality gap.

    A visit to a pair moves its multiplier a, and b where the slack is a privileged distance, to the optimum
    with all others fixed; M and P follow by rank-one updates.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative duality gap to stop at.
    max_iter : int, default=1000
        Most sweeps, each a visit to every pair.
    corrected : bool, default=True
        Whether multipliers are given back where a constraint has become slack. Without it they only grow, as
        in [Xu14, Algorithm 6], and the metrics come to rest away from the optimum.
    resting_change : float, default=1e-3
        Relative change of the multipliers in one sweep that counts as rest; used without corrections only.
    newton_after : int, default=10
        After so many sweeps an interior point takes over, which costs no more than a few more of them where
    max_unknowns : int, default=500
        the metrics have at most so many entries. Sweeps go on if it does not close the gap.

    Notes
    -----
    [Davis07], [Xu14, Algorithm 6].
    Differs from the paper: corrections; a new random order every sweep, which saves most of the sweeps; it
    stops on the duality gap. The default of ``resting_change`` is [Xu14, Sec. 5.4.4].

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.metric import BregmanProjections, LogDetProblem, PairSpace
    >>> rng = np.random.default_rng(0)
    >>> points, ends = rng.normal(size=(40, 3)), np.arange(40).reshape(20, 2)
    >>> problem = LogDetProblem.itml(
    ...     PairSpace(points, ends, prior=np.eye(3)), np.repeat([1.0, -1.0], 10), (1.0, 9.0), np.ones(20)
    ... )
    >>> result = BregmanProjections(tol=1e-6).solve(problem, rng)
    >>> result.stopped, result.certificate.relative_gap < 1e-6
    ('converged', True)

    """

    tol: float = 1e-6
    max_iter: int = 1000
    corrected: bool = True
    resting_change: float = 1e-3
    newton_after: int = 10
    max_unknowns: int = 500

    def solve(
        self,
        problem: LogDetProblem,
        rng: np.random.Generator,
        progress: Callable[[Record], None] | None = None,
    ) -> MetricResult:
        """Return the metrics; Ctrl-C ends the sweeps and keeps the best so far."""
        with blas_threads(1):
            bounds = BestBounds(problem, self._feasible_point(problem, rng), progress, self.corrected)
            state = problem.initial_state()
            try:
                stopped = self._sweep_until_converged(problem, state, bounds, rng)
            except KeyboardInterrupt:
                if bounds.best is None:
                    raise
                stopped = "interrupted"
        return bounds.result(stopped, use_last=not self.corrected)

    def _feasible_point(self, problem: LogDetProblem, rng: np.random.Generator) -> PrimalPoint | None:
        """Return a strictly feasible point of the hard form; uncorrected steps are taken where there is none too."""
        if not problem.is_hard:
            return None
        try:
            return find_interior_point(problem, rng)
        except InfeasibleError:
            if self.corrected:
                raise
            return None

    def _sweep_until_converged(
        self, problem: LogDetProblem, state: ProjectionState, bounds: BestBounds, rng: np.random.Generator
    ) -> str:
        if self.corrected and bounds.update(state, 0).relative_gap <= self.tol:
            return "converged"  # the priors satisfy every pair
        small, tried_newton = n_unknowns(problem) <= self.max_unknowns, False
        next_check = 2
        for sweep in range(1, self.max_iter + 1):
            # 1. Visit every pair once, in an order of its own for every sweep.
            before = state.a.copy()
            n_failed = problem.sweep(state, rng.permutation(problem.n_pairs), self.corrected)
            at_rest = not self.corrected and _relative_change(before, state.a) <= self.resting_change
            # 2. Bounds cost as much as a sweep or two: compute them at growing distances.
            if sweep < min(next_check, self.max_iter) and not (n_failed or at_rest):
                continue
            next_check = sweep + 2 + sweep // 8
            try:
                certificate = bounds.update(state, sweep)
            except np.linalg.LinAlgError:  # the multipliers' metrics are no longer positive definite
                return "broken"
            # 3. Stop where the bounds meet, or where more sweeps would change nothing.
            if certificate.relative_gap <= self.tol:
                return "converged"
            if n_failed or at_rest:
                return "broken" if n_failed else "steady"
            # 4. Where few features leave many pairs tight, Newton steps in the metrics end what sweeps began.
            if self.corrected and not tried_newton and sweep >= self.newton_after and small:
                tried_newton = True
                follow_central_path(
                    problem, state, lambda at: bounds.update(at, bounds.n_sweeps).relative_gap <= self.tol
                )
                if bounds.certificate.relative_gap <= self.tol:
                    return "converged"
        return "max_iter"


def _relative_change(before: Vector, after: Vector) -> float:
    return float(np.linalg.norm(after - before) / max(np.linalg.norm(after), np.finfo(float).tiny))


class BestBounds:
    """The best bounds of the optimum so far, their metrics and multipliers, and how they came about."""

    def __init__(
        self,
        problem: LogDetProblem,
        interior: PrimalPoint | None,
        progress: Callable[[Record], None] | None,
        needs_feasible: bool = True,
    ) -> None:
        self.problem, self.interior, self.progress = problem, interior, progress
        self.needs_feasible = needs_feasible
        self.started = time.perf_counter()
        self.best: PrimalPoint | None = None
        self.last = problem.space.prior, problem.privileged.prior
        self.upper, self.lower = np.inf, -np.inf
        self.multipliers = np.zeros(problem.n_pairs), np.zeros(problem.n_pairs)
        self.previous_a = np.zeros(problem.n_pairs)
        self.history: list[Record] = []
        self.n_sweeps = 0

    def update(self, state: ProjectionState, n_sweeps: int) -> Certificate:
        """Certify the state, remember what is better than before, and return the best bounds."""
        self.n_sweeps = n_sweeps
        if self.problem.is_hard and self.interior is None and self.needs_feasible:
            raise_if_infeasible(self.problem, state.a, self.previous_a)
            self.previous_a = state.a.copy()
        point, found = self.problem.certify(state, self.interior)
        self.last = state.M.copy(), state.P.copy()
        if self.best is None or found.upper <= self.upper:
            self.best, self.upper = point, found.upper
        if found.lower > self.lower:
            self.lower, self.multipliers = found.lower, (state.a.copy(), state.b.copy())
        certificate = self.certificate
        seconds = time.perf_counter() - self.started
        self.history.append(Record(certificate, seconds, int(np.count_nonzero(state.a))))
        if self.progress is not None:
            self.progress(self.history[-1])
        return certificate

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.upper, self.lower)

    def result(self, stopped: str, use_last: bool) -> MetricResult:
        """Return the metrics of the upper bound, or the last ones as the multipliers made them."""
        assert self.best is not None
        M, P = self.last if use_last else (self.best.M, self.best.P)
        return MetricResult(
            M, P, *self.multipliers, self.certificate, tuple(self.history), self.n_sweeps, stopped
        )


def find_interior_point(problem: LogDetProblem, rng: np.random.Generator) -> PrimalPoint | None:
    """Return metrics that satisfy every hard constraint with room to spare, or None where none were found.

    They are feasible for the same problem with privileged distances of similar pairs shortened, of dissimilar
    ones lengthened by a margin. Raises InfeasibleError with a proof that no metrics are feasible.
    """
    # A wide margin is reached soon, if it can be reached at all; a narrow one is worth more sweeps.
    for margin, max_sweeps in ((0.3, 30), (0.1, 60), (0.03, 120), (0.01, 240), (0.001, 480)):
        tight = _with_margin(problem, margin)
        state, previous_a, next_check = tight.initial_state(), np.zeros(problem.n_pairs), 1
        for sweep in range(1, max_sweeps + 1):
            n_failed = tight.sweep(state, rng.permutation(problem.n_pairs))
            if sweep < next_check and not n_failed:
                continue
            next_check = sweep + 1 + sweep // 4
            raise_if_infeasible(problem, state.a, previous_a)
            if n_failed or proves_infeasible(tight, state.a):
                break
            try:
                metrics = tight.metrics(state)
            except np.linalg.LinAlgError:  # multipliers that grow without end, too large for an inverse
                break
            point = problem.primal_point(*metrics)
            if (-point.excess > 1e-6 * point.s)[problem.has_privileged].all():
                return point
            state.M, state.P = point.M.copy(), point.P.copy()
            previous_a = state.a.copy()
    return None


def _with_margin(problem: LogDetProblem, margin: float) -> LogDetProblem:
    """Return the problem with s replaced by (1 - sign margin) s, and the goals with it."""
    factor = np.where(problem.has_privileged, 1.0 - margin * problem.sign, 1.0)
    # Every pair has a factor of its own, so its difference becomes a point, paired with the origin.
    W = np.concatenate(list(problem.privileged.differences())) * np.sqrt(factor)[:, None]
    origin = len(W)
    ends = np.column_stack([np.arange(origin), np.full(origin, origin)])
    privileged = PairSpace(np.vstack([W, np.zeros(W.shape[1])]), ends, problem.privileged.prior)
    cap = np.full(problem.n_pairs, np.inf)
    return replace(problem, privileged=privileged, goal=problem.goal * factor, cap=cap)


def raise_if_infeasible(problem: LogDetProblem, a: Vector, previous_a: Vector) -> None:
    """Raise InfeasibleError where the multipliers, or their growth since the last check, prove it.

    The multipliers of contradicting constraints grow without end, in the direction of such a proof.
    """
    for ray in (a, np.maximum(a - previous_a, 0.0)):
        if proves_infeasible(problem, ray):
            involved = np.where(problem.has_privileged, ray, 0.0)
            count = int((involved > 1e-6 * involved.max()).sum())
            raise InfeasibleError(
                "The hard form of ITML+ (kappa=None) has no solution for these pairs: a nonnegative "
                f"combination of the constraints of {count} of {int(problem.has_privileged.sum())} pairs "
                "contradicts itself for every metric and every privileged metric; use the soft form, for "
                "example kappa=1, or fewer pairs."
            )


def proves_infeasible(problem: LogDetProblem, a: Vector) -> bool:
    """Return whether multipliers a >= 0 prove that no metrics satisfy all hard constraints.

    For feasible M and P, Σ a sign (v'Mv - w'Pw) <= 0. If both Σ a sign vv' and -Σ a sign ww' are positive
    definite on the span of their pairs, the left side is positive whatever M and P: there are none.
    """
    signed = np.where(problem.has_privileged, a * problem.sign, 0.0)
    return (
        bool(signed.any())
        and _is_positive_on_span(problem.space, signed, problem.has_privileged)
        and _is_positive_on_span(problem.privileged, -signed, problem.has_privileged)
    )


def _is_positive_on_span(pairs: PointPairs, weight: Vector, used: AnyArray) -> bool:
    """Return whether Σ weight vv' is clearly positive definite on the span of the used pairs' differences."""
    values, vectors = np.linalg.eigh(pairs.scatter(used.astype(np.float64)))
    basis = vectors[:, values > 1e-10 * values[-1]]  # below are directions that only rounding makes
    values = np.linalg.eigvalsh(basis.T @ pairs.scatter(weight) @ basis)
    return bool(values[0] > 1e-9 * np.abs(values).max())  # an eigenvalue that rounding cannot have made
