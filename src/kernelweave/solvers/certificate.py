r"""The certificate: lower ≤ optimum ≤ upper, how both bounds are drawn, and what rounding adds to them.

The problem is a saddle point, the minimum over weights eta of the maximum over dual points α of

    g(α) − Σ_m eta_m h_m(α) + r(eta),    h_m(α) = ½ v'K_m v,  v = α∘y

- Upper bound: at fixed weights the learner's primal value r(eta) + ½ v'K(eta)v + loss is attained.
- Lower bound: at a fixed dual point the best weights leave g(α) − Ω*(h(α)), Ω* the geometry's conjugate.
  g is concave and h convex in α, so mixtures of dual points prove at least the mixture of their values.

Two kinds of rounding are allowed for. Arithmetic in double precision is bounded by its usual size, in every
evaluation on kernels (`InnerSolution.rounding_allowance`; on explicit features there is no allowance). Storage
in float32 is bounded by its worst case, entry by entry, once at the end (`certify`); where that leaves the gap
open, the kernels are read once more as given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.optimize import minimize_scalar

from kernelweave._typing import AnyArray, Indices, Vector
from kernelweave.geometry.base import Geometry
from kernelweave.gram.protocol import GramStack
from kernelweave.learners.solution import InnerSolution

if TYPE_CHECKING:
    from kernelweave.solvers.problem import Problem, Result


@dataclass(frozen=True)
class Certificate:
    """lower ≤ optimum ≤ upper, for kernels without negative eigenvalues.

    ``tol`` is the relative gap that was asked for, None where nothing was.

    Examples
    --------
    >>> from kernelweave.solvers import Certificate
    >>> certificate = Certificate(upper=10.0, lower=9.0, tol=1e-3)
    >>> certificate.gap, certificate.relative_gap
    (1.0, 0.1)
    >>> print(certificate)
    objective 10, lower bound 9, gap 1 (0.1 of the objective): above the tolerance of 0.001

    """

    upper: float
    lower: float
    tol: float | None = field(default=None, compare=False)

    def __str__(self) -> str:
        bounds = f"objective {self.upper:.8g}, lower bound {self.lower:.8g}, gap {self.gap:.2g}"
        if self.tol is None:
            return f"{bounds} ({self.relative_gap:.2g} of the objective)"
        where = "within" if self.relative_gap <= self.tol else "above"
        return f"{bounds} ({self.relative_gap:.2g} of the objective): {where} the tolerance of {self.tol:g}"

    def __repr__(self) -> str:
        tol = "" if self.tol is None else f", tol={float(self.tol)!r}"
        return f"Certificate(upper={float(self.upper)!r}, lower={float(self.lower)!r}{tol})"

    @classmethod
    def enclosing(cls, upper: float, lower: float) -> Self:
        """Return the certificate of two bounds, which may pass each other in their last digits.

        Bounds that cross by more prove that a premise fails, as for a kernel with negative eigenvalues: then
        nothing is known from below.
        """
        crossed = lower - upper > 1e-7 * max(abs(upper), abs(lower))
        return cls(upper, -np.inf if crossed else min(lower, upper))

    @classmethod
    def total(cls, certificates: Sequence[Certificate]) -> Self:
        """Return the bounds of a sum of problems that share nothing."""
        return cls(sum(c.upper for c in certificates), sum(c.lower for c in certificates))

    @property
    def gap(self) -> float:
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective, never of max(1, objective): small objectives count too.

        Bounds that are no numbers prove nothing: their gap is infinite.
        """
        if np.isnan(self.gap):
            return float("inf")
        scale = max(abs(self.upper), abs(self.lower))
        return self.gap / scale if scale > 0.0 and np.isfinite(scale) else float(self.gap > 0.0)


@dataclass(frozen=True)
class DualPoint:
    """Coefficients v = α∘y with g(α), and energies that h(α) does not exceed.

    The energies of a mixture are mixed too. That bounds those of the mixed coefficients only for kernels
    without negative eigenvalues, which storing in float32 may have given them.
    """

    coef: AnyArray
    g: float
    h: Vector
    is_mixture: bool = False

    def mixed_with(self, other: DualPoint, share: float) -> DualPoint:
        """Return the mixture with that share of the other point."""
        return DualPoint(
            (1.0 - share) * self.coef + share * other.coef,
            (1.0 - share) * self.g + share * other.g,
            (1.0 - share) * self.h + share * other.h,
            is_mixture=True,
        )

    def value(self, geometry: Geometry) -> float:
        """Return the lower bound g − Ω*(h) that the point proves."""
        return self.g - geometry.conjugate(self.h)


def dual_point(problem: Problem, grams: GramStack, coef: AnyArray, which: Indices | None = None) -> DualPoint:
    """Return coefficients with the energies of (some of) the kernels, and room for the rounding of arithmetic."""
    weightless = np.zeros_like(coef)  # g and its rounding need no decision values
    inner = problem.learner.measure(weightless, coef, problem.y, problem.weight)
    errors = grams.errors if which is None else grams.errors[which]
    return DualPoint(coef, inner.g, grams.energies(coef, which) + inner.energy_allowance(errors))


class LowerBound:
    """The best lower bound over mixtures of all dual points evaluated so far.

    A new point that is better alone replaces the mixture; otherwise one line search finds its best share in
    it. That matters where the coefficients are not unique and no single point closes the gap.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self.point: DualPoint | None = None
        self.value = -np.inf

    def add(self, new: DualPoint) -> None:
        """Take a dual point into account."""
        alone = new.value(self._geometry)
        if self.point is None or alone > self.value:
            self.point, self.value = new, alone
            return
        old = self.point

        def minus_bound(share: float) -> float:
            h = (1.0 - share) * old.h + share * new.h
            return self._geometry.conjugate(h) - (1.0 - share) * old.g - share * new.g

        best = minimize_scalar(minus_bound, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-4})
        if -best.fun > self.value:
            self.point, self.value = old.mixed_with(new, float(best.x)), -float(best.fun)


def certify(problem: Problem, result: Result, exact: Callable[[], GramStack], tol: float) -> Result:
    """Return a result on stored kernels with the certificate of the kernels as they were given.

    The bounds of the stored kernels are widened by what rounding can have done to them. Where that leaves
    the relative gap above ``tol``, the bounds are drawn again from ``exact()``, the kernels as given; no
    problem is solved again. The certificate replaces that of the last record in the history.

    The solution returned is the one whose value the upper bound is: its coefficients may be a multiple
    slightly above 1 of those found, and so exceed C, and its intercept is the best one in the worst case
    (`robust_primal`).
    """
    h_most = _most_energies(problem, result.proof)
    lower = _value_at(problem, result.proof, h_most)
    inner, upper = _upper_bound(problem, problem.grams, result)
    if not _is_closed(upper, lower, tol):
        grams = exact()
        inner, upper = _upper_bound(problem, grams, result)
        if not _is_closed(upper, lower, tol):
            lower = max(lower, _exact_lower_bound(problem, grams, result.proof, h_most))
    certificate = Certificate.enclosing(upper, lower)
    stopped = result.stopped
    if certificate.relative_gap <= tol:
        stopped = "converged"
    elif stopped == "converged":
        stopped = "rounding"
    history = (*result.history[:-1], replace(result.history[-1], certificate=certificate))
    return replace(result, inner=inner, certificate=certificate, stopped=stopped, history=history)


def _is_closed(upper: float, lower: float, tol: float) -> bool:
    return Certificate.enclosing(upper, lower).relative_gap <= tol


def _most_energies(problem: Problem, point: DualPoint) -> Vector:
    """Return the largest energies that the kernels as given may have at a dual point of the stored ones."""
    h = dual_point(problem, problem.grams, point.coef).h if point.is_mixture else point.h
    most = h + problem.grams.energy_errors(point.coef)
    return np.where(np.isfinite(most), most, np.inf)


def _exact_lower_bound(problem: Problem, exact: GramStack, point: DualPoint, h_most: Vector) -> float:
    """Return g − Ω*(h) with the energies of the kernels as given, wherever they count.

    Kernels that the best weights for ``h_most`` leave out have too little energy at most: theirs are not
    measured again. Those of the others replace their bounds, until the best weights use no bound.
    """
    if not np.isfinite(h_most).all():
        return _value_at(problem, point, dual_point(problem, exact, point.coef).h)
    h, known = h_most.copy(), np.zeros(h_most.size, dtype=bool)
    while (counted := np.flatnonzero((problem.geometry.maximizer(h) > 0.0) & ~known)).size:
        h[counted] = dual_point(problem, exact, point.coef, counted).h
        known[counted] = True
    return _value_at(problem, point, h)


def _value_at(problem: Problem, point: DualPoint, h: Vector) -> float:
    """Return g − Ω*(h); energies without a bound prove nothing."""
    return float(point.g - problem.geometry.conjugate(h)) if np.isfinite(h).all() else -np.inf


def _upper_bound(problem: Problem, grams: GramStack, result: Result) -> tuple[InnerSolution, float]:
    """Return the primal value at the result's weights, whatever rounding did, and the solution it is of."""
    eta, coef = result.eta, result.inner.coef
    f, error = grams.matvec_with_error(eta, coef)
    if not np.isfinite(f).all() or not np.isfinite(error).all():
        return result.inner, np.inf
    inner, primal = robust_primal(problem, f, error, coef)
    return inner, problem.geometry.value(eta) + primal + inner.rounding_allowance(eta, grams.errors)


def robust_primal(
    problem: Problem, f: AnyArray, error: AnyArray, coef: AnyArray
) -> tuple[InnerSolution, float]:
    """Return the best multiple of the coefficients if K v is f up to ``error``, and its value at worst.

    Where the loss falls with the margin y f, the worst case is that every margin is as small as it may be.
    Slightly larger coefficients are tried too: they raise ½ v'Kv, but samples on the margin need not pay for
    their error, which is the lesser evil where the price C of a violation is high.
    """
    p = problem
    if not p.learner.decreases_with_margin:
        inner = p.learner.measure(f, coef, p.y, p.weight)
        return inner, inner.primal + inner.primal_growth(error)
    quadratic = float(np.vdot(coef, f) + np.vdot(np.abs(coef), error))
    smallest = f - error * p.y

    def at(scale: float) -> tuple[float, InnerSolution]:
        inner = p.learner.measure(scale * smallest, scale * coef, p.y, p.weight)
        return 0.5 * scale**2 * quadratic + inner.loss, inner

    # Larger by as much as margins may be too small: by the rounding of support vectors, and by what the
    # solver left open besides.
    tried = {1.0: at(1.0)}
    rounding = float(error[coef != 0.0].max(initial=0.0))
    for share in (rounding, rounding + _margin_shortfall(tried[1.0][1], smallest, p.y)):
        if 0.0 < share < 0.1:
            tried[1.0 / (1.0 - share)] = at(1.0 / (1.0 - share))
    scale = min(tried, key=lambda scale: tried[scale][0])
    primal, worst = tried[scale]
    inner = p.learner.measure(scale * f, scale * coef, p.y, p.weight)
    # The intercept is that of the worst case: the best one for f may do worse on the kernels as given.
    return replace(inner, intercept=worst.intercept, margin=worst.margin, scale=worst.scale), primal


def _margin_shortfall(inner: InnerSolution, f: AnyArray, y: AnyArray) -> float:
    """Return how far inside the margin samples lie whose coefficients are free, so that they belong on it."""
    below = np.atleast_2d((inner.margin - y * (f + inner.intercept)).T)
    free = [column[program.free(v)] for column, (program, v) in zip(below, inner.programs, strict=True)]
    return max(float(column.max(initial=0.0)) for column in free)
