"""The saddle point, an evaluation of it, and the state that every outer loop keeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import IndefiniteKernelError
from kernelweave.geometry.base import Geometry, fenchel_young_gap
from kernelweave.gram.protocol import GramStack
from kernelweave.learners.base import Learner
from kernelweave.learners.solution import InnerSolution
from kernelweave.solvers.certificate import Certificate, DualPoint, LowerBound


@dataclass(frozen=True)
class Problem:
    r"""min over eta in 𝓜 of max over α of g(α) − Σ eta_m h_m(α) + r(eta), on stored Gram matrices."""

    grams: GramStack
    y: AnyArray
    learner: Learner
    geometry: Geometry
    weight: Vector | None = None


@dataclass(frozen=True)
class Evaluation:
    """The learner's solution at given weights, its energies h, and the objective ``upper`` it attains.

    Both bounds allow for the rounding of arithmetic: ``upper`` contains the ``rounding_allowance``, and
    ``h_upper``, from which lower bounds are drawn, is h plus its own.
    """

    eta: Vector
    inner: InnerSolution = field(repr=False)
    h: Vector
    h_upper: Vector
    matvecs: AnyArray | None = field(repr=False)  # K_m v, where the solver asks for them
    rounding_allowance: float
    upper: float


@dataclass(frozen=True)
class Record:
    """The state after one evaluation: bounds so far, seconds since the start, number of weights in use.

    The bounds are those of the kernels as stored: with float32 they may differ from the originals' in the
    last digits. The certificate of a fitted estimator, and its last record, speak of the kernels as given.
    ``solved`` is False for an evaluation that was known from a similar problem.
    """

    certificate: Certificate
    seconds: float
    n_active: int
    solved: bool = True


Progress = Callable[[Record], None]


@dataclass
class RecordLog:
    """The records of a solver, in order; who follows its progress is told of each."""

    progress: Progress | None = None
    records: list[Record] = field(default_factory=list)
    _began: float = field(default_factory=time.perf_counter)

    def add(self, certificate: Certificate, n_active: int, solved: bool = True) -> None:
        """Append a record of what is known now."""
        record = Record(certificate, time.perf_counter() - self._began, n_active, solved)
        self.records.append(record)
        if self.progress is not None:
            self.progress(record)


@dataclass(frozen=True)
class Result:
    """Weights, the learner's solution at them, and the certificate that holds for both.

    ``proof`` is the dual point whose value is the certificate's lower bound: a mixture of those of all
    evaluations, each of which has a record in ``history``. ``evaluation`` is the one at the best weights.
    ``stopped`` is "converged", "max_iter", "stalled" (no descent was found), "rounding" (what is left of the
    gap is rounding), "vanishing" (the objective is zero, see `InnerSolution.is_zero`) or "interrupted".
    """

    eta: Vector
    inner: InnerSolution
    certificate: Certificate
    proof: DualPoint = field(repr=False)
    history: tuple[Record, ...] = field(repr=False)
    stopped: str
    evaluation: Evaluation | None = field(default=None, repr=False)

    @property
    def n_iter(self) -> int:
        """How many times the learner was solved."""
        return sum(record.solved for record in self.history)

    def followed_by(self, later: Result) -> Result:
        """Return a result that goes on where this one stopped, with the history of both."""
        seconds = self.history[-1].seconds
        records = tuple(replace(record, seconds=seconds + record.seconds) for record in later.history)
        return replace(later, history=self.history + records)


@dataclass(frozen=True)
class WarmStart:
    """Where to start: weights, which need not lie in the set, and coefficients for the first inner solve.

    ``evaluation`` is what is known at these weights if they solve ``problem``: where the new problem differs
    in its geometry alone, the learner is not solved again there.
    """

    eta: Vector
    coef: AnyArray | None = None
    evaluation: Evaluation | None = field(default=None, repr=False)
    problem: Problem | None = field(default=None, repr=False)

    def known_evaluation(self, problem: Problem) -> Evaluation | None:
        """Return the evaluation if it holds for this problem as well, and was solved well enough."""
        known, other = self.evaluation, self.problem
        if known is None or other is None or known.inner.relative_gap > 1e-4:
            return None
        same_data = other.grams is problem.grams and other.y is problem.y and other.weight is problem.weight
        return known if same_data and _same_but_tol(other.learner, problem.learner) else None


def _same_but_tol(one: Any, other: Any) -> bool:
    """Tell whether two learners state the same problem, be it to other tolerances."""
    if type(one) is not type(other) or not is_dataclass(one):
        return bool(np.array_equal(one, other))
    names = {part.name for part in fields(one)} - {"tol"}
    return all(_same_but_tol(getattr(one, name), getattr(other, name)) for name in names)


class OuterState:
    """What every outer loop keeps: evaluates weights, remembers the best, both bounds and the history.

    ``certificate`` has both bounds, ``best`` the weights that attain the upper one, from the first evaluation on.

    Parameters
    ----------
    problem : the problem.
    tol : relative duality gap to stop at.
    max_iter : most inner solves.
    progress : called with every record.
    keep_matvecs : whether evaluations hold the products K_m v, which curvature needs.
    start : coefficients for the first inner solve, and what is known of the first weights.
    """

    def __init__(
        self,
        problem: Problem,
        tol: float,
        max_iter: int,
        progress: Progress | None = None,
        keep_matvecs: bool = False,
        start: WarmStart | None = None,
    ) -> None:
        problem.geometry.check(problem.grams.n_kernels)
        self.problem, self.tol, self.max_iter = problem, tol, max_iter
        self.best: Evaluation
        self.certificate = Certificate(np.inf, -np.inf)
        self.log = RecordLog(progress)
        self._lower = LowerBound(problem.geometry)
        self._keep_matvecs = keep_matvecs
        self._coef = None if start is None else start.coef
        self._known = None if start is None else start.known_evaluation(problem)
        self._latest: InnerSolution | None = None
        self._matrix: AnyArray | None = None  # K(eta) at the weights _matrix_eta
        self._matrix_eta: Vector | None = None

    # -- bounds and the stopping rule

    @property
    def finished(self) -> bool:
        """Whether the gap is closed, the budget is used up, or only rounding is left of the gap."""
        closed = self.certificate.relative_gap <= self.tol or self._vanishes
        return closed or self.n_solved >= self.max_iter or self._only_rounding_is_left

    @property
    def _vanishes(self) -> bool:
        """Whether both bounds say that the objective is zero."""
        best, grams = self.best, self.problem.grams
        objective = max(abs(self.certificate.upper), abs(self.certificate.lower))
        most = np.full(grams.n_samples, float(best.eta @ grams.sizes))
        if not best.inner.is_zero(objective, most, lambda _: 0.0):  # no matrix is needed to tell
            return False
        K = self.combined(best.eta)
        return best.inner.is_zero(objective, np.diagonal(K), lambda a: float(0.5 * np.vdot(a, K @ a)))

    @property
    def _only_rounding_is_left(self) -> bool:
        """Whether the gap would be closed but for the allowances that pay for rounding."""
        best, geometry = self.best, self.problem.geometry
        rounding = best.rounding_allowance + geometry.conjugate(best.h_upper) - geometry.conjugate(best.h)
        if rounding < 0.5 * self.tol * abs(best.upper):  # then it is not what keeps an open gap open
            return False
        without = fenchel_young_gap(geometry, best.eta, best.h) + best.inner.gap
        return without <= max(0.2 * self.tol * abs(best.upper), 0.25 * rounding)

    @property
    def n_solved(self) -> int:
        """How many times the learner was solved."""
        return sum(record.solved for record in self.log.records)

    def inner_tol(self) -> float:
        """Return the relative gap to ask of the learner.

        A small part of the gap still open, to which it adds; passes over the kernels cost more than a
        tighter solve.
        """
        return float(np.clip(0.02 * self.certificate.relative_gap, 0.1 * self.tol, 2e-3))

    # -- evaluating weights

    def combined(self, eta: Vector) -> AnyArray:
        """Return K(eta). Only the last one is kept: it is the largest array of a solver."""
        if self._matrix is None or self._matrix_eta is None or not np.array_equal(self._matrix_eta, eta):
            self._matrix_eta = None  # while it is overwritten
            self._matrix = self.problem.grams.combine(eta, self._matrix)
            self._matrix_eta = eta
        return self._matrix

    def evaluate(self, eta: Vector, inner_tol: float | None = None) -> Evaluation:
        """Solve the learner at eta, measure the energies, and update both bounds."""
        p = self.problem
        known, self._known = self._known, None
        if known is not None and inner_tol is None and np.array_equal(known.eta, eta):
            self._coef = known.inner.coef
            upper = p.geometry.value(eta) + known.inner.primal + known.rounding_allowance
            matvecs = known.matvecs
            if matvecs is None and self._keep_matvecs:  # it comes from a solver without use for them
                matvecs = p.grams.matvecs(known.inner.coef, known.inner.needed_matvecs)
            return self._update_bounds(replace(known, matvecs=matvecs, upper=upper), solved=False)
        if self._latest is not None:
            self._latest.forget()
        inner = self._latest = p.learner.solve(
            self.combined(eta), p.y, p.weight, self._coef, inner_tol or self.inner_tol()
        )
        self._coef = inner.coef
        matvecs = p.grams.matvecs(inner.coef, inner.needed_matvecs) if self._keep_matvecs else None
        h = p.grams.energies(inner.coef) if matvecs is None else energies_of(inner.coef, matvecs)
        h_upper = h + inner.energy_allowance(p.grams.errors)
        _require_psd(p.grams, inner, h_upper)
        allowance = inner.rounding_allowance(eta, p.grams.errors)
        upper = p.geometry.value(eta) + inner.primal + allowance
        return self._update_bounds(Evaluation(eta, inner, h, h_upper, matvecs, allowance, upper))

    def tightened(self, point: Evaluation) -> Evaluation | None:
        """Solve the learner ten times as exactly at the same weights; None where more digits would not count."""
        if point.inner.relative_gap <= 0.1 * self.tol:
            return None
        return self.evaluate(point.eta, inner_tol=0.1 * point.inner.relative_gap)

    def _update_bounds(self, new: Evaluation, solved: bool = True) -> Evaluation:
        if not self.log.records or new.upper < self.best.upper:
            self.best = new
        self.add_dual_point(DualPoint(new.inner.coef, new.inner.g, new.h_upper))
        self.log.add(self.certificate, int(np.count_nonzero(new.eta)), solved)
        return new

    def add_dual_point(self, point: DualPoint) -> None:
        """Take the lower bound into account that a dual point proves, be it that of an evaluation or not."""
        self._lower.add(point)
        self.certificate = Certificate.enclosing(self.best.upper, self._lower.value)

    def add_history(self, part: Result) -> None:
        """Count the inner solves that a part of the problem took, and go on from its coefficients."""
        for record in part.history:
            self.log.add(self.certificate, record.n_active, record.solved)
        self._coef = part.inner.coef

    def result(self, stopped: str | None = None) -> Result:
        """Return the best weights; ``stopped`` says why a solver gave up before it was finished."""
        best, proof = self.best, self._lower.point
        if self._latest is not None:
            self._latest.forget()
        assert proof is not None
        if self.certificate.relative_gap <= self.tol:
            stopped = "converged"
        elif stopped is None:
            stopped = "rounding" if self._only_rounding_is_left else "max_iter"
            stopped = "vanishing" if self._vanishes else stopped
        return Result(best.eta, best.inner, self.certificate, proof, tuple(self.log.records), stopped, best)


def energies_of(coef: AnyArray, matvecs: AnyArray) -> Vector:
    """Return ½ tr(V'K_mV) for every m, given the products K_m V."""
    return np.asarray(0.5 * matvecs.reshape(matvecs.shape[0], -1) @ coef.ravel())


def _require_psd(grams: GramStack, inner: InnerSolution, h_upper: Vector) -> None:
    """Raise where an energy is negative beyond rounding: the kernel is not positive semidefinite.

    |v'Kv| can reach ||v||_1² times the largest entry; the shares of it allowed here are far above the
    rounding of double arithmetic, and of storing in float32.
    """
    share = 5e-7 if grams.is_rounded else 1e-9
    allowed = share * 0.5 * float(np.abs(inner.coef).sum(axis=0).max()) ** 2 * grams.sizes
    worst = int(np.argmin(h_upper + allowed))
    if h_upper[worst] < -allowed[worst]:
        raise IndefiniteKernelError(worst, float(h_upper[worst]))
