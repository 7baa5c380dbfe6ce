"""The simplex with a ridge: squared hinge loss soft margin."""

from __future__ import annotations

from dataclasses import dataclass

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry._projections import capped_projection, power_reweight
from kernelweave.geometry._qp import capped_simplex_step
from kernelweave.geometry.simplex import PenalisedSimplex


@dataclass
class RidgeSimplex(PenalisedSimplex):
    r"""The simplex with a squared penalty: weights are drawn towards each other.

    r(eta) = ||eta||_2^2 / (2 theta) on {eta >= 0, sum_m eta_m = 1}

    Parameters
    ----------
    theta : float
        The price of a kernel slack, positive: near 0 the average kernel, at infinity the simplex.

    Notes
    -----
    SM2MKL, the squared hinge loss on the kernel slacks [Xu13, Eq. (13)]. The maximizer is the projection of
    theta h on the simplex. In the block update eta_m is the positive root of
    eta^3 / theta + lambda eta^2 = ||f_m||^2 / 2 with one lambda for all; for a norm of 0 it is
    max(0, -lambda theta).
    Symbols: mu -> eta, theta -> theta.
    Differs from the paper: the block update is an exact root where [Xu13, Eq. (27)] takes projected
    gradient steps.

    Examples
    --------
    >>> import numpy as np
    >>> RidgeSimplex(theta=1.0).maximizer(np.array([1.0, 1.5, 0.0]))
    array([0.25, 0.75, 0.  ])

    """

    fast_model_step = True

    theta: float = 1.0

    def penalty(self, eta: Vector) -> float:
        return float(eta @ eta) / (2.0 * self.theta)

    def maximizer(self, h: Vector) -> Vector:
        return capped_projection(self.theta * h, 1.0)

    def prox(self, z: Vector, step: float) -> Vector:
        return capped_projection(z / (1.0 + step / self.theta), 1.0)

    def reweight(self, norms: Vector) -> Vector:
        return power_reweight(norms, 1.0 / self.theta, 2.0)

    def _minimise_model(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        return capped_simplex_step(eta, h, H, 1.0, ridge=1.0 / self.theta)
