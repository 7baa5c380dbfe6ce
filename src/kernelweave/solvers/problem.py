"""One evaluation of the saddle point: combine, solve, measure, bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import IndefiniteKernelError
from kernelweave.geometry.base import Geometry, fenchel_young_gap
from kernelweave.gram.protocol import GramStack, images_at
from kernelweave.gram.sums import follows, summed
from kernelweave.learners.machine import Machine
from kernelweave.learners.protocol import Learner
from kernelweave.solvers.bounds import DualPoint, LowerBound
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.result import Point, Record, Result, Visited

Progress = Callable[[Record], None]
# Machines are solved to this part of the gap still open: what they leave adds to it, and passes cost more.
# With a smaller problem ahead the next step closes more of it.
INNER, INNER_AHEAD, LOOSEST = 0.02, 0.005, 2e-3
# A negative energy counts when it exceeds this share of what entries of the kernel's size could add up to:
# far above the rounding of double arithmetic, and of storing in float32.
INDEFINITE, INDEFINITE_ROUNDED = 1e-9, 5e-7


@dataclass(frozen=True)
class Problem:
    r"""min over eta in 𝓜 of max over α of g(α) − Σ eta_m h_m(α) + r(eta), on stored Gram matrices."""

    bank: GramStack
    y: AnyArray
    learner: Learner
    geometry: Geometry
    weight: Vector | None = None


class Ahead(Protocol):
    """A smaller problem like the one at hand, whose machines cost little."""

    def energies(self, eta: Vector) -> Vector | None:
        """Return the energies of its machine at these weights, or None where there is none."""
        ...


class Walk:
    """The record of a solver's walk: evaluates points, keeps the best one, both bounds and the history."""

    def __init__(
        self,
        problem: Problem,
        tol: float,
        max_iter: int,
        progress: Progress | None = None,
        images: bool = False,
        warm: AnyArray | None = None,
        ahead: Ahead | None = None,
        known: Visited | None = None,
    ) -> None:
        problem.geometry.check(problem.bank.n_kernels)
        self.problem, self.tol, self.max_iter, self.ahead = problem, tol, max_iter, ahead
        self.history: list[Record] = []
        self.best: Point | None = None
        self._lower = LowerBound(problem.geometry)
        self._progress, self._images = progress, images
        self._coef = warm
        self._known = known
        self._total = None if known is None else known.hand_over()
        self._start = time.perf_counter()

    @property
    def certificate(self) -> Certificate:
        assert self.best is not None
        # Where the bounds meet up to the last digit they may pass each other by it.
        return Certificate(self.best.upper, min(self._lower.value, self.best.upper))

    @property
    def finished(self) -> bool:
        closed = self.certificate.relative_gap <= self.tol
        return closed or self._n_solved >= self.max_iter or self._only_rounding_is_left

    @property
    def _only_rounding_is_left(self) -> bool:
        """Whether the gap would be closed but for the slack that pays for rounding in storage."""
        if self.best is None:
            return False
        point, geometry = self.best, self.problem.geometry
        rounding = point.slack + geometry.conjugate(point.ceiling) - geometry.conjugate(point.h)
        if rounding < 0.5 * self.tol * abs(point.upper):  # then it is not what keeps an open gap open
            return False
        weights = fenchel_young_gap(geometry, point.eta, point.h)
        return weights + point.machine.gap <= max(0.2 * self.tol * abs(point.upper), 0.25 * rounding)

    @property
    def left(self) -> int:
        """How many more machines may be solved."""
        return max(1, self.max_iter - self._n_solved)

    @property
    def _n_solved(self) -> int:
        return sum(record.solved for record in self.history)

    def note(self, part: Result) -> None:
        """Count the machines that a part of the problem took, and go on from its coefficients."""
        for record in part.history:
            self._report(record.n_active, record.solved)
        self._coef = part.machine.coef

    def inner_tol(self) -> float:
        """Return the relative gap to ask of the machine: a small part of what is still open, never loose."""
        open_gap = self.certificate.relative_gap if self.best is not None else 1.0
        share = INNER if self.ahead is None else INNER_AHEAD
        return float(np.clip(share * open_gap, 0.1 * self.tol, LOOSEST))

    def matrix(self, eta: Vector) -> AnyArray:
        """Return K(eta). Only the last one is kept: it is the largest thing a walk holds."""
        before, bank = self._total, self.problem.bank
        if before is None or not np.array_equal(before.eta, eta):
            self._total = None  # what is being overwritten is no sum of anything
            self._total = summed(bank, eta) if before is None else before.at(bank, eta)
        assert self._total is not None
        return self._total.K

    @property
    def follows(self) -> bool:
        """Whether the next sum costs less if few kernels move."""
        return self._total is not None and self._total.may_move and follows(self.problem.bank)

    def visit(self, eta: Vector, inner_tol: float | None = None) -> Point:
        """Solve the machine at eta and account for it."""
        known, self._known = self._known, None
        if known is not None and inner_tol is None and np.array_equal(known.point.eta, eta):
            self._coef = known.point.machine.coef
            return self._account(known.point, solved=False)
        p = self.problem
        machine = p.learner.solve(self.matrix(eta), p.y, p.weight, self._coef, inner_tol or self.inner_tol())
        self._coef = machine.coef
        images = images_at(p.bank, machine.coef, machine.sees) if self._images else None
        h = p.bank.energies(machine.coef) if images is None else energies(machine.coef, images)
        ceiling = h + machine.energy_slack(p.bank.errors)
        _require_psd(p.bank, machine, ceiling)
        slack = machine.rounding(eta, p.bank.errors)
        return self._account(Point(eta, machine, h, images, np.inf, slack, ceiling))

    def _account(self, measured: Point, solved: bool = True) -> Point:
        """Draw the bounds that a point proves under this geometry."""
        machine, eta = measured.machine, measured.eta
        upper = self.problem.geometry.value(eta) + machine.primal + measured.slack
        point = replace(measured, upper=upper)
        self._lower.add(DualPoint(machine.coef, machine.linear, point.ceiling))
        if self.best is None or point.upper < self.best.upper:
            self.best = point
        self._report(int(np.count_nonzero(eta)), solved)
        return point

    def _report(self, n_active: int, solved: bool) -> None:
        record = Record(self.certificate, time.perf_counter() - self._start, n_active, solved)
        self.history.append(record)
        if self._progress is not None:
            self._progress(record)

    def bound(self, point: DualPoint) -> None:
        """Take a mixture of the dual points visited into account."""
        self._lower.add(point)

    def prove(self, coef: AnyArray) -> Vector:
        """Bound the optimum by other coefficients than those of a machine; return their energies."""
        p = self.problem
        h = p.bank.energies(coef)
        machine = p.learner.measure(np.zeros_like(coef), coef, p.y, p.weight)
        self.bound(DualPoint(coef, machine.linear, h + machine.energy_slack(p.bank.errors)))
        return h

    def result(self, stopped: str | None = None) -> Result:
        assert self.best is not None
        if self.certificate.relative_gap <= self.tol:
            reason = "converged"
        else:
            reason = stopped or ("rounding" if self._only_rounding_is_left else "max_iter")
        assert self._lower.point is not None
        return Result(
            self.best.eta,
            self.best.machine,
            self.certificate,
            self._lower.point,
            tuple(self.history),
            reason,
            self._visited(self.best),
        )

    def _visited(self, point: Point) -> Visited | None:
        if self._total is None or not np.array_equal(self._total.eta, point.eta):
            return None
        return Visited(point, self._total)


def energies(coef: AnyArray, images: AnyArray) -> Vector:
    """Return ½ tr(V'K_mV) for every m, given the images K_m V."""
    return np.asarray(0.5 * images.reshape(images.shape[0], -1) @ coef.ravel())


def _require_psd(bank: GramStack, machine: Machine, ceiling: Vector) -> None:
    """Raise when an energy is negative beyond rounding: |v'Kv| can reach ||v||_1² times the largest entry."""
    reach = 0.5 * float(np.abs(machine.coef).sum(axis=0).max()) ** 2 * bank.sizes
    allowed = (INDEFINITE_ROUNDED if bank.is_rounded else INDEFINITE) * reach
    worst = int(np.argmin(ceiling + allowed))
    if ceiling[worst] < -allowed[worst]:
        raise IndefiniteKernelError(worst, float(ceiling[worst]))
