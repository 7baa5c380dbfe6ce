"""The simplex with a ridge: squared hinge loss soft margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry import _capped, _power, _quadratic
from kernelweave.geometry._base import FEASIBILITY_SLACK, SOFT_GRID, Geometry, is_nonnegative


@dataclass
class RidgeSimplex(Geometry):
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

    theta: float = 1.0

    @property
    def tunable(self) -> str:
        return "theta"

    def grid(self, n_kernels: int) -> tuple[float, ...]:  # noqa: ARG002 - theta does not depend on it
        return SOFT_GRID

    def contains(self, eta: Vector) -> bool:
        return is_nonnegative(eta) and abs(float(eta.sum()) - 1.0) <= FEASIBILITY_SLACK

    def penalty(self, eta: Vector) -> float:
        return float(eta @ eta) / (2.0 * self.theta)

    def maximizer(self, h: Vector) -> Vector:
        return _capped.project(self.theta * h, 1.0)

    def start(self, n_kernels: int) -> Vector:
        return np.full(n_kernels, 1.0 / n_kernels)

    def restricted(self, n_kernels: int) -> RidgeSimplex:  # noqa: ARG002 - it does not depend on M
        """Return the geometry of some of ``n_kernels`` kernels while the others stay at zero."""
        return self

    def fewest(self, n_kernels: int) -> int:  # noqa: ARG002
        """Return the least number of kernels in use."""
        return 1

    def project(self, z: Vector) -> Vector:
        return _capped.project(z, 1.0)

    def prox(self, z: Vector, step: float) -> Vector:
        return _capped.project(z / (1.0 + step / self.theta), 1.0)

    def reweight(self, norms: Vector) -> Vector:
        return _power.reweight(norms, 1.0 / self.theta, 2.0)

    def model_step(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        return _quadratic.model_step(eta, h, H, 1.0, ridge=1.0 / self.theta)

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        if not 0.0 < self.theta < np.inf:
            raise ValueError(
                f"RidgeSimplex needs a finite theta > 0, got theta={self.theta}; "
                "for theta = infinity use Simplex()."
            )
