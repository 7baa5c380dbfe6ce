"""The mathematics of SVM-2K: its dual variables, and from any of them two bounds of the optimum."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.gram.rounding import arithmetic_errors
from kernelweave.learners.bias import hinge_bias
from kernelweave.learners.solution import rounding_of_product
from kernelweave.solvers.certificate import Certificate


@dataclass(frozen=True)
class SVM2KSolution:
    """Coefficients and intercepts of both views, by column, bounds of the optimum, and why it stopped."""

    coef: Matrix = field(repr=False)
    intercept: Vector
    certificate: Certificate
    steps: int = 0
    stopped: str = "converged"

    @property
    def gap(self) -> float:
        return self.certificate.gap

    @property
    def relative_gap(self) -> float:
        return self.certificate.relative_gap


@dataclass(frozen=True)
class SVM2KPrices:
    """What each sample pays per unit of missing either margin, and of views that differ by more than ε."""

    margin_a: Vector
    margin_b: Vector
    disagreement: Vector
    epsilon: float


@dataclass(frozen=True)
class TwoViews:
    r"""SVM-2K on two kernels, with dual variables x = (a, b, c) by row, a = α_A∘y and b = α_B∘y.

    .. math:: \max y'(a + b) - \epsilon\|c\|_1 - \tfrac12 u_A'K_Au_A - \tfrac12 u_B'K_Bu_B, \quad
       u_A = a - c,\; u_B = b + c,\; 1'u_A = 1'u_B = 0, \quad lo \le x \le hi
    """

    K_a: Matrix = field(repr=False)
    K_b: Matrix = field(repr=False)
    y: Vector = field(repr=False)
    prices: SVM2KPrices = field(repr=False)

    @cached_property
    def lo(self) -> Matrix:
        p, negative = self.prices, self.y < 0
        return np.array(
            [np.where(negative, -p.margin_a, 0.0), np.where(negative, -p.margin_b, 0.0), -p.disagreement]
        )

    @cached_property
    def hi(self) -> Matrix:
        p, positive = self.prices, self.y > 0
        return np.array(
            [np.where(positive, p.margin_a, 0.0), np.where(positive, p.margin_b, 0.0), p.disagreement]
        )

    def coefficients(self, x: Matrix) -> Matrix:
        """Return u_A and u_B, by row."""
        return np.array([x[0] - x[2], x[1] + x[2]])

    def images(self, u: Matrix) -> Matrix:
        """Return K_A u_A and K_B u_B, by row."""
        return np.array([self.K_a @ u[0], self.K_b @ u[1]])

    def feasible(self, x: Matrix) -> Matrix:
        """Return a point of the box near x with both sums zero: in each view one class's α shrinks."""
        x = np.clip(x, self.lo, self.hi)
        for own, excess in zip(x[:2], self.coefficients(x).sum(axis=1), strict=True):
            side = own * excess > 0.0
            total = float(np.abs(own[side]).sum())
            if total < abs(excess):  # shrinking cannot do it; zero is always feasible
                return np.zeros_like(x)
            if total > 0.0:
                own[side] *= (total - abs(excess)) / total
        return x

    def evaluate(self, x: Matrix) -> SVM2KSolution:
        """Return the solution of a feasible x with the best intercepts, and both bounds."""
        u = self.coefficients(x)
        f = self.images(u)
        intercept = self._best_intercepts(f)
        energy = 0.5 * float(np.vdot(u, f))
        upper = energy + self._loss(f, intercept)
        gain = float(self.y @ (x[0] + x[1])) - self.prices.epsilon * float(np.abs(x[2]).sum())
        slack = self._rounding(u)
        return SVM2KSolution(
            u.T.copy(), intercept, Certificate(upper + slack, min(gain - energy - slack, upper))
        )

    def _rounding(self, u: Matrix) -> float:
        """Bound what the rounding of entries changes in either bound."""
        sizes = np.array([float(np.diagonal(K).max()) for K in (self.K_a, self.K_b)])
        errors, norms = arithmetic_errors(sizes, self.y.size), np.linalg.norm(u, axis=1)
        slope = float(np.linalg.norm(self.hi - self.lo))
        moved = [rounding_of_product(error, size) for error, size in zip(errors, norms, strict=True)]
        return float(sum(move * (slope + 0.5 * size) for move, size in zip(moved, norms, strict=True)))

    def _best_intercepts(self, f: Matrix) -> Vector:
        """Return the intercepts that cost least at these values.

        All kinks of the loss lie where one intercept, the other, or their difference is fixed. Between two of
        these three lines through a point the loss has one slope, so where exact steps along the lines gain
        nothing, nothing does.
        """
        p, y = self.prices, self.y
        best = np.array([hinge_bias(f[0], y, p.margin_a), hinge_bias(f[1], y, p.margin_b)])
        value, improved = self._loss(f, best), True
        while improved:
            improved = False
            for way in (self._best_in_a, self._best_in_b, self._best_in_both):
                trial = way(f, best)
                reached = self._loss(f, trial)
                if reached < value * (1.0 - 1e-12):
                    best, value, improved = trial, reached, True
        return best

    def _best_in_a(self, f: Matrix, b: Vector) -> Vector:
        return np.array([self._best_alone(f[0], self.prices.margin_a, f[1] + b[1]), b[1]])

    def _best_in_b(self, f: Matrix, b: Vector) -> Vector:
        return np.array([b[0], self._best_alone(f[1], self.prices.margin_b, f[0] + b[0])])

    def _best_in_both(self, f: Matrix, b: Vector) -> Vector:
        prices = np.concatenate([self.prices.margin_a, self.prices.margin_b])
        return b + hinge_bias((f + b[:, None]).ravel(), np.tile(self.y, 2), prices)

    def _best_alone(self, f: Vector, price: Vector, other: Vector) -> float:
        """Return the best intercept of one view: being ε above or below the other is a hinge loss too."""
        p, one = self.prices, np.ones(self.y.size)
        values = np.concatenate([f, 1.0 + f - other + p.epsilon, f - other - p.epsilon - 1.0])
        signs = np.concatenate([self.y, one, -one])
        return hinge_bias(values, signs, np.concatenate([price, p.disagreement, p.disagreement]))

    def _loss(self, f: Matrix, intercept: Vector) -> float:
        p = self.prices
        a, b = f + intercept[:, None]
        first = p.margin_a @ np.maximum(0.0, 1.0 - self.y * a)
        second = p.margin_b @ np.maximum(0.0, 1.0 - self.y * b)
        apart = p.disagreement @ np.maximum(0.0, np.abs(a - b) - p.epsilon)
        return float(first + second + apart)
