"""The squared hinge without intercept: Newton steps on the support, exact after a few."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.learners.base import COSTS, Learner, positive
from kernelweave.learners.one_vs_rest import OneVsRest
from kernelweave.learners.solution import InnerSolution

# The support settles in 3 to 10 steps; more than this only happens where rounding decides who belongs to it.
MOST_STEPS = 100
# Halvings of the line search's interval: far more than the digits of a double.
HALVINGS = 60
# A solution is exact when its residual is this share of the right side; refinements that help take 2 to 6.
EXACT, REFINEMENTS = 1e-11, 12
# Rows of a block that are copied at a time.
ROWS = 128


@dataclass
class UnbiasedSquaredHinge(Learner):
    r"""Support vector classification with the squared hinge loss and no intercept.

    .. math:: \min_{f} \tfrac12\|f\|^2 + \sum_i \tfrac{C_i}{2} \max(0, 1 - y_i f(x_i))^2
       = \max_{\alpha \ge 0} 1'\alpha - \tfrac12 (\alpha∘y)'K(\alpha∘y) - \sum_i \tfrac{1}{2C_i}\alpha_i^2

    Parameters
    ----------
    C : float, default=1.0
        Price of a squared margin violation, C > 0; sample i pays C times its weight.
    tol : float or None, default=None
        Relative gap of every inner solve; None lets the outer solver ask for what it needs.

    Notes
    -----
    The SVM of [Xu14, Eq. (4.12)] in its C form: with β the solution here, α = β / 1'β solves the ν form,
    whose value is −1 / (4P) with P = ½ 1'β the optimum here. Solved by Newton steps on the primal, which end
    after finitely many: each solves (K + diag(1/C)) v = y on the samples inside the margin.
    Symbols: paper α → β / 1'β, ρ → 1 / 1'β.
    Differs from the paper: 1'α is free instead of fixed at one, so that C_i and the decision values keep the
    usual meaning, and C may differ between samples.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import UnbiasedSquaredHinge
    >>> inner = UnbiasedSquaredHinge(C=1.0).solve(np.eye(2), np.array([1.0, -1.0]))
    >>> inner.coef
    array([ 0.5, -0.5])

    """

    tunable: ClassVar[str] = "C"
    tried: ClassVar[tuple[float, ...]] = COSTS

    C: float = 1.0
    tol: float | None = None

    @property
    def has_bias(self) -> bool:
        return False

    def for_columns(self) -> Learner:
        return OneVsRest(self)

    def check(self, y: AnyArray, weight: Vector) -> None:  # noqa: ARG002 - any labels and weights will do
        positive("C", self.C)

    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,
        tol: float = 1e-3,
    ) -> InnerSolution:
        y = np.ascontiguousarray(y, dtype=np.float64)
        C = self._prices(y, weight)
        tol = tol if self.tol is None else positive("tol", self.tol)
        v = np.zeros_like(y) if warm is None else np.where(C > 0.0, y * np.maximum(0.0, y * warm), 0.0)
        f = K @ v
        inner = _solution(v, f, y, C)
        for _ in range(MOST_STEPS):
            inside = np.flatnonzero((y * f < 1.0) & (C > 0.0))
            target = np.zeros_like(v)
            target[inside] = _on_support(K, y, C, inside)
            move = target - v
            rise = K @ move
            step = _best_step(f, move, rise, y, C)
            v, f = v + step * move, f + step * rise
            legal = y * np.maximum(0.0, y * v)
            # Where no coefficient has the wrong sign, f is the product already, up to the last digits.
            inner = _solution(legal, K @ legal, y, C)
            if inner.relative_gap <= tol or step * np.abs(move).max() <= 1e-15 * np.abs(v).max():
                break
        return inner

    def measure(
        self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
    ) -> InnerSolution:
        y = np.ascontiguousarray(y, dtype=np.float64)
        return _solution(coef, f, y, self._prices(y, weight))

    def _prices(self, y: Vector, weight: Vector | None) -> Vector:
        return positive("C", self.C) * (np.ones(y.size) if weight is None else weight)


@dataclass(frozen=True)
class UnbiasedSolution(InnerSolution):
    """A solution without sums to hold: its curvature is one linear system on the support."""

    prices: Vector = field(default_factory=lambda: np.zeros(0), repr=False)

    def curvature(self, K: AnyArray, matvecs: Matrix, n_threads: int = 1) -> Matrix:
        support = np.flatnonzero(self.coef)
        if support.size == 0:
            return np.zeros((matvecs.shape[0], matvecs.shape[0]))
        U = matvecs[:, support].T
        with blas_threads(n_threads):
            H = U.T @ _solved(K, self.prices, support, U)
        return np.asarray(0.5 * (H + H.T))


def _solved(K: AnyArray, C: Vector, which: Indices, rhs: AnyArray) -> AnyArray:
    """Return (K + diag(1/C))^-1 rhs on some samples.

    A Cholesky factor in float32, half the memory and twice as fast, is enough where a few refinements with
    the matrix itself make up for its rounding; where they do not, it is done in float64.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what float32 cannot hold, it does not solve
        x = _refined(K, C, which, rhs)
    if x is None:
        x = cho_solve(_factor(K, C, which, np.float64), rhs, check_finite=False)
    return np.asarray(x)


def _refined(K: AnyArray, C: Vector, which: Indices, rhs: AnyArray) -> AnyArray | None:
    """Return the solution by a factor in float32, or None where that is not to be had."""
    try:
        factor = _factor(K, C, which, np.float32)
    except LinAlgError:
        return None
    x, before = np.zeros_like(rhs), np.inf
    goal, size = EXACT * float(np.abs(rhs).max()), float(np.diagonal(K).max())
    for _ in range(REFINEMENTS):
        left = rhs - _product(K, C, which, x)
        error = float(np.abs(left).max())
        rounding = np.finfo(np.float64).eps * size * float(np.abs(x).sum(axis=0).max())
        if error <= max(goal, rounding):
            return x
        if not error < 0.5 * before:
            break
        before = error
        x = x + cho_solve(factor, left.astype(np.float32), check_finite=False)
    return None


def _factor(K: AnyArray, C: Vector, which: Indices, dtype: Any) -> tuple[Matrix, bool]:
    """Return the Cholesky factor of K + diag(1/C) on some samples: one copy of that block, no more."""
    A = np.empty((which.size, which.size), dtype=dtype)
    for start in range(0, which.size, ROWS):
        A[start : start + ROWS] = K[which[start : start + ROWS]][:, which]
    A[np.diag_indices_from(A)] += 1.0 / C[which]
    # Symmetric, so its transpose is the same matrix in the order that LAPACK overwrites.
    return cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)


def _product(K: AnyArray, C: Vector, which: Indices, x: AnyArray) -> AnyArray:
    """Return (K + diag(1/C)) x on some samples."""
    whole = np.zeros((K.shape[0], *x.shape[1:]))
    whole[which] = x
    return (K @ whole)[which] + (x.T / C[which]).T


def _on_support(K: AnyArray, y: Vector, C: Vector, inside: Indices) -> Vector:
    if inside.size == 0:
        return np.zeros(0)
    return np.asarray(_solved(K, C, inside, y[inside]))


def _best_step(f: Vector, move: Vector, rise: Vector, y: Vector, C: Vector) -> float:
    """Return the t in [0, 1] with the least primal value at v + t move; its slope grows with t."""
    linear, quadratic = float(move @ f), float(move @ rise)

    def slope(t: float) -> float:
        xi = np.maximum(0.0, 1.0 - y * (f + t * rise))
        return linear + t * quadratic - float((C * xi * y) @ rise)

    if slope(1.0) <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    return 0.5 * (low + high)


def _solution(v: Vector, f: Vector, y: Vector, C: Vector) -> UnbiasedSolution:
    xi = np.maximum(0.0, 1.0 - y * f)
    used = C > 0.0
    return UnbiasedSolution(
        coef=v,
        intercept=np.zeros(()),
        margin=np.ones(()),
        g=float(y @ v - 0.5 * np.sum(v[used] ** 2 / C[used])),
        quadratic=float(v @ f),
        loss=float(0.5 * C @ xi**2),
        gradient_bound=float(np.linalg.norm(C * xi)),
        curvature_bound=float(C.max()),
        programs=(),
        prices=C,
    )
