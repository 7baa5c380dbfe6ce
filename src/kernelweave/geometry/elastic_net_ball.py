"""The elastic-net ball: between sparse and even weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry._projections import capped_maximizer, capped_projection_at_most, capped_reweight
from kernelweave.geometry._qp import Description, interior_point_minimiser
from kernelweave.geometry._roots import increasing_root, two_power_root
from kernelweave.geometry.base import FEASIBILITY_SLACK, Geometry, is_nonnegative
from kernelweave.geometry.lp_ball import LpBall


@dataclass
class ElasticNetBall(Geometry):
    r"""Indicator of the elastic-net ball.

    {eta >= 0, v ||eta||_1 + (1 - v) ||eta||_2^2 <= 1}

    Parameters
    ----------
    v : float
        The share of the 1-norm, 0 <= v <= 1: 0 is the 2-norm ball, 1 the simplex.

    Notes
    -----
    SGMKL of [Yang11]. With the multiplier lambda of the constraint the maximizer is
    eta = (h - lambda v)_+ / (2 lambda (1 - v)), lambda^2 = sum_k h^2 / (4 (1 - v) + v^2 k) over the k
    largest h, those above lambda v; in the block update eta_m is the positive root of
    2 (1 - v) eta^3 + v eta^2 = ||f_m||^2 / (2 lambda).
    Symbols: mu -> eta, v -> v.
    Differs from the paper: [Xu13, Sec. V-A] prints the 2-norm without its square, a slip.

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNetBall(v=0.5).maximizer(np.array([3.0, 0.1, 3.0])).round(6)
    array([0.618034, 0.      , 0.618034])

    """

    v: float = 0.5

    tunable = "v"

    def grid(self, n_kernels: int) -> tuple[float, ...]:  # noqa: ARG002 - v does not depend on it
        return (0.0, 0.25, 0.5, 0.75, 1.0)

    def contains(self, eta: Vector) -> bool:
        return is_nonnegative(eta) and self._level(eta) <= 1.0 + FEASIBILITY_SLACK

    def maximizer(self, h: Vector) -> Vector:
        v, top = self.v, float(h.max())
        if top <= 0.0:
            return np.where(h == 0.0, self._even(int(np.count_nonzero(h == 0.0))), 0.0)
        if v == 1.0:
            return capped_maximizer(h, 1.0)
        g = np.maximum(h / top, 0.0)
        largest = np.sort(g)[::-1]
        multipliers = np.sqrt(np.cumsum(largest**2) / (4.0 * (1.0 - v) + v * v * np.arange(1, len(h) + 1)))
        used = np.flatnonzero(largest > v * multipliers)[-1]  # the condition holds for the first ones only
        return self._retract(np.maximum(g - v * multipliers[used], 0.0))

    def start(self, n_kernels: int) -> Vector:
        return np.full(n_kernels, self._even(n_kernels))

    def project(self, z: Vector) -> Vector:
        v, positive, top = self.v, np.maximum(z, 0.0), float(z.max())
        if self._level(positive) <= 1.0:
            return positive
        if v == 1.0:
            return capped_projection_at_most(z, 1.0)
        below = top - z

        # eta = (z - lambda v)_+ / (1 + 2 lambda (1 - v)), with its largest entry x in place of lambda.
        def weights(x: float) -> Vector:
            reach = x * (v + 2.0 * (1.0 - v) * top) / (v + 2.0 * (1.0 - v) * x)
            return np.asarray(x * np.maximum(1.0 - below / reach, 0.0))

        def excess(x: float) -> tuple[float, float]:
            eta = weights(x)
            stretch = v / (v + 2.0 * (1.0 - v) * x)  # d log(reach) / d log(x)
            growth = np.where(eta > 0.0, eta / x + stretch * (1.0 - eta / x), 0.0)
            return self._level(eta) - 1.0, float(growth @ (v + 2.0 * (1.0 - v) * eta))

        return self._retract(weights(increasing_root(excess, self._even(len(z)), 1.0)))

    def reweight(self, norms: Vector) -> Vector:
        v, top = self.v, float(norms.max())
        if top <= 0.0:
            return self.start(len(norms))
        if v == 1.0:
            return capped_reweight(norms, 1.0)
        squares = (norms / top) ** 2
        active = squares > 0.0

        def weights(c: float) -> Vector:
            return two_power_root(2.0 * (1.0 - v), 3.0, v, 2.0, c * squares[active])

        def excess(c: float) -> tuple[float, float]:
            x = weights(c)
            growth = (2.0 * (1.0 - v) * x + v) / (6.0 * (1.0 - v) * x + 2.0 * v) * x / c
            return self._level(x) - 1.0, float(growth @ (v + 2.0 * (1.0 - v) * x))

        # The largest weight lies between the even one and 1, and c is its left-hand side.
        even = self._even(int(np.count_nonzero(active)))
        low, high = (2.0 * (1.0 - v) * x**3 + v * x**2 for x in (even, 1.0))
        eta = np.zeros(len(norms))
        eta[active] = weights(increasing_root(excess, low, high))
        return self._retract(eta)

    def _minimise_model(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        if self.v in (0.0, 1.0):
            return LpBall(2.0 - self.v).model_step(eta, h, H)
        inside = 0.9 * self.start(len(h))
        found = interior_point_minimiser(H, h + H @ eta, inside, self._describe, n_constraints=1)
        x = np.where(found.at_zero, 0.0, found.x)
        return x if self._level(x) <= 1.0 else self._retract(x)

    def _describe(self, x: Vector, multipliers: Vector) -> Description:
        slope = self.v + 2.0 * (1.0 - self.v) * x
        curvature = np.full(len(x), 2.0 * (1.0 - self.v) * multipliers[0])
        return Description(np.zeros_like(x), np.array([self._level(x) - 1.0]), slope[None, :], curvature)

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        if not 0.0 <= self.v <= 1.0:
            raise ValueError(
                f"ElasticNetBall needs 0 <= v <= 1, got v={self.v}; v=1 is the simplex, v=0 the 2-norm ball."
            )

    def _level(self, eta: Vector) -> float:
        return float(self.v * eta.sum() + (1.0 - self.v) * (eta @ eta))

    def _even(self, n: int) -> float:
        """Return the weight n equal kernels have on the boundary."""
        return 2.0 / (self.v * n + np.sqrt((self.v * n) ** 2 + 4.0 * (1.0 - self.v) * n)) if n else 0.0

    def _retract(self, eta: Vector) -> Vector:
        """Scale to the boundary."""
        ones, squares = self.v * float(eta.sum()), (1.0 - self.v) * float(eta @ eta)
        return np.asarray(eta * (2.0 / (ones + np.sqrt(ones * ones + 4.0 * squares))))
