"""Where streamed descent stands: weights, coefficients, the products of both with the kernels, and the bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.geometry.base import Geometry, SupportsWorkingSet, fenchel_young_gap
from kernelweave.gram.streamed import StreamedGrams
from kernelweave.learners.solution import InnerSolution
from kernelweave.solvers.block_descent import block_norms
from kernelweave.solvers.certificate import Certificate, DualPoint, LowerBound, dual_point
from kernelweave.solvers.problem import Problem, WarmStart, energies_of


@dataclass(frozen=True)
class BestIterate:
    """The iterate with the lowest objective: kernels in use, their weights and energies, the learner's solution."""

    working: Indices
    eta: Vector
    inner: InnerSolution
    upper: float
    h: Vector


@dataclass
class StreamedState:
    """Weights and coefficients on some samples, with the products that bounds are drawn from.

    ``working`` are the kernels in use; ``grams``, ``geometry`` and ``eta`` belong to them, and G are their
    products K_m V. Every move is followed by `measure`.
    """

    # Weights move where their part of the gap is at least this share of the tolerance: less is not worth a step ...
    worthwhile: ClassVar[float] = 0.3
    # ... and the learner's gap is below this share of the objective: before, energies say little about weights.
    trusted: ClassVar[float] = 0.03
    # The ridge on the Hessian, relative to its mean diagonal, grows by the first factor after a step uphill, from
    # `first_damping` on, and shrinks by the second after one downhill. Steps are not taken back, as Newton's are:
    # every one is followed by a block of coefficients.
    more_damping: ClassVar[float] = 4.0
    less_damping: ClassVar[float] = 0.25
    first_damping: ClassVar[float] = 1e-3

    problem: Problem
    working: Indices
    grams: StreamedGrams
    geometry: Geometry
    eta: Vector
    coef: AnyArray
    G: AnyArray
    inner: InnerSolution = field(init=False)
    best: BestIterate = field(init=False)
    damping: float = 0.0
    # Whether the last move led to infinity; then only the best iterate counts.
    is_lost: bool = False
    _upper: float = np.inf
    _upper_before: float = np.inf
    _lower: LowerBound = field(init=False)

    def __post_init__(self) -> None:
        self._lower = LowerBound(self.geometry)
        self.measure()

    @classmethod
    def at(cls, problem: Problem, start: WarmStart) -> StreamedState:
        """Return the state at weights and coefficients; kernels without weight are not in use."""
        geometry, grams, coef = problem.geometry, problem.grams, start.coef
        assert isinstance(grams, StreamedGrams)
        assert coef is not None
        working = np.arange(grams.n_kernels)
        if isinstance(geometry, SupportsWorkingSet):
            enough = max(1, geometry.min_active(grams.n_kernels), np.count_nonzero(start.eta))
            working = np.sort(np.argsort(-start.eta, kind="stable")[:enough])
            geometry, grams = geometry.restricted(grams.n_kernels), grams.streamed_subset(working)
        eta = start.eta[working]
        if not np.isfinite(geometry.value(eta)):
            eta = geometry.project(eta)
        return cls(problem, working, grams, geometry, eta, coef, grams.matvecs(coef))

    # -- what is known at the present point

    @property
    def n_samples(self) -> int:
        return self.grams.n_samples

    @property
    def f(self) -> AnyArray:
        """The decision values K(eta) V."""
        return np.asarray(np.tensordot(self.eta, self.G, 1))

    @property
    def h(self) -> Vector:
        """The energies of the kernels in use."""
        return energies_of(self.coef, self.G)

    @property
    def certificate(self) -> Certificate:
        """The bounds over the kernels in use."""
        return Certificate.enclosing(self.best.upper, self._lower.value)

    def measure(self) -> None:
        """Bound the optimum over the kernels in use from both sides at the present point."""
        p, errors = self.problem, self.grams.errors
        inner = p.learner.measure(self.f, self.coef, p.y, p.weight)
        upper = self.geometry.value(self.eta) + inner.primal + inner.rounding_allowance(self.eta, errors)
        self.is_lost = not np.isfinite(upper)
        if self.is_lost and not np.isfinite(self._upper):
            raise ValueError(
                "The decision values are not finite: a kernel is not, on some samples; standardise the columns."
            )
        if self.is_lost:  # rounding has made the program of a block unbounded: what is known stays
            return
        self._lower.add(DualPoint(self.coef, inner.g, self.h + inner.energy_allowance(errors)))
        first = not np.isfinite(self._upper)
        self.inner, self._upper = inner, upper
        if first or upper < self.best.upper:
            self.best = BestIterate(self.working, self.eta, inner, upper, self.h)

    @property
    def vanishes(self) -> bool:
        """Whether both bounds say that the objective is zero."""
        best, grams, certificate = self.best, self.grams, self.certificate
        if best.working.size != self.eta.size:  # kernels have come since
            return False
        objective = max(abs(certificate.upper), abs(certificate.lower))
        diagonal = best.eta @ grams.diagonals
        return best.inner.is_zero(objective, diagonal, lambda a: float(best.eta @ grams.energies(a)))

    def weights_dominate(self, tol: float, inner_share: float) -> bool:
        """Whether the weights account for most of the gap, and the coefficients are good enough to tell."""
        size = abs(self._upper)
        weights_gap = fenchel_young_gap(self.geometry, self.eta, self.h)
        matters = weights_gap > max(self.worthwhile * tol * size, self.inner.gap / inner_share)
        return matters and self.inner.gap < self.trusted * size

    # -- moves

    def move_weights(self, H: Matrix | None) -> None:
        """Step to the minimiser of a quadratic model, or to the closed form where that settles quickly."""
        if self._upper > self._upper_before:  # the last step led uphill: trust the model less
            self.damping = max(self.more_damping * self.damping, self.first_damping)
        else:
            self.damping *= self.less_damping
        self._upper_before = self._upper
        if H is None or self.geometry.fast_block_update:
            self.eta = self.geometry.reweight(block_norms(self.eta, self.h))
            return
        ridge = self.damping * float(np.trace(H)) / H.shape[0]
        self.eta = self.geometry.model_step(self.eta, self.h, H + ridge * np.eye(H.shape[0]))

    def set_coefficients(self, block: Indices, values: AnyArray) -> None:
        """Set the coefficients of a block, and bring the products up to date: one pass over its pairs."""
        change = values - self.coef[block]
        moved = np.flatnonzero(change.reshape(block.size, -1).any(axis=1))
        self.coef = self.coef.copy()  # the best point so far may be this one
        self.coef[block] = values
        self.G += self.grams.products(block[moved], change[moved])

    def move_along(self, direction: AnyArray, products: AnyArray, lengths: Vector) -> None:
        """Add multiples of a direction, one for each column, to the coefficients; its products are known."""
        lengths = lengths.reshape(self.coef.shape[1:])
        self.coef = self.coef + lengths * direction
        self.G += lengths * products

    # -- kernels that are not in use

    def proof_over_all(self) -> tuple[DualPoint, Certificate]:
        """Return the best dual point with the energies of all kernels, and the certificate it gives."""
        p, point = self.problem, self._lower.point
        assert point is not None
        # Measured afresh even if all kernels are in use: energies on the way are of products added up block by block.
        point = dual_point(p, p.grams, point.coef)
        return point, Certificate.enclosing(self.best.upper, point.value(p.geometry))

    def entering(self, h: Vector) -> Indices:
        """Return the kernels outside that have as much energy as one in use, at most eight at a time."""
        outside = np.setdiff1d(np.arange(h.size), self.working)
        used = self.working[self.eta > 0.0]
        counts = self.problem.geometry.maximizer(h)[outside] > 0.0  # with a penalty they need less energy
        steep = outside[counts | (h[outside] > (1.0 - 1e-3) * h[used].min(initial=np.inf))]
        return np.sort(steep[np.argsort(-h[steep])][:8])

    def add_kernels(self, entering: Indices) -> None:
        """Add kernels to those in use, with weight zero."""
        grams = self.problem.grams
        assert isinstance(grams, StreamedGrams)
        working = np.concatenate([self.working, entering])
        order = np.argsort(working)
        self.G = np.concatenate([self.G, grams.streamed_subset(entering).matvecs(self.coef)])[order]
        self.eta = np.concatenate([self.eta, np.zeros(entering.size)])[order]
        self.working = working[order]
        self.grams = grams.streamed_subset(self.working)
        self._lower = LowerBound(self.geometry)
        self.measure()

    def best_start(self, near: float) -> WarmStart:
        """Return the best iterate, with a trace on kernels nearly in use (`with_near_kernels`)."""
        best, eta = self.best, np.zeros(self.problem.grams.n_kernels)
        eta[best.working] = with_near_kernels(self.geometry, best.eta, best.h, near)
        return WarmStart(eta, best.inner.coef)


def with_near_kernels(geometry: Geometry, eta: Vector, h: Vector, near: float) -> Vector:
    """Return the weights with a trace on kernels that have nearly the energy of one in use.

    Which kernels are in use is told by their weights being positive; more samples may let these in.
    """
    if not isinstance(geometry, SupportsWorkingSet):
        return eta
    close = (eta == 0.0) & (h > near * h[eta > 0.0].min(initial=np.inf))
    return np.where(close, 1e-12, eta)
