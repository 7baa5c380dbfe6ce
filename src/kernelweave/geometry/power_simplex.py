"""The simplex with a power penalty: the general soft margin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry._projections import power_maximizer, power_prox, power_reweight
from kernelweave.geometry._qp import Description, interior_point_minimiser
from kernelweave.geometry.simplex import PenalisedSimplex


@dataclass
class PowerSimplex(PenalisedSimplex):
    r"""The simplex with the penalty that is dual to a power of the kernel slacks.

    r(eta) = (1/p) (2 / (q theta))^(p-1) sum_m eta_m^p on {eta >= 0, sum_m eta_m = 1}, q = p/(p-1)

    Parameters
    ----------
    theta : float
        The price of a kernel slack, positive: near 0 the average kernel, at infinity the simplex.
    p : float
        The power, p > 1; 2 is RidgeSimplex.

    Notes
    -----
    The loss (theta/2) zeta^q on the kernel slacks at the end of [Xu13, Sec. III-B]; r is its conjugate,
    max over zeta >= 0 of eta zeta - (theta/2) zeta^q. Maximizer, prox and block update are 1-D roots.
    Symbols: mu -> eta, zeta -> the kernel slack, p/(p-1) -> q.
    Differs from the paper: it states the loss only; the penalty and its updates are derived here.

    Examples
    --------
    >>> import numpy as np
    >>> PowerSimplex(theta=1.0, p=2.0).maximizer(np.array([1.0, 1.5, 0.0])).round(6)
    array([0.25, 0.75, 0.  ])

    """

    theta: float = 1.0
    p: float = 2.0

    @property
    def kappa(self) -> float:
        """The factor of sum_m eta_m^p / p."""
        return float((2.0 * (self.p - 1.0) / (self.p * self.theta)) ** (self.p - 1.0))

    def penalty(self, eta: Vector) -> float:
        return self.kappa / self.p * float((np.maximum(eta, 0.0) ** self.p).sum())

    def maximizer(self, h: Vector) -> Vector:
        return power_maximizer(h, self.kappa, self.p)

    def prox(self, z: Vector, step: float) -> Vector:
        return power_prox(z, step * self.kappa, self.p)

    def reweight(self, norms: Vector) -> Vector:
        return power_reweight(norms, self.kappa, self.p)

    def _minimise_model(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        found = interior_point_minimiser(H, h + H @ eta, self.start(len(h)), self._describe, unit_sum=True)
        return np.asarray(found.x / found.x.sum())

    def _describe(self, x: Vector, _multipliers: Vector) -> Description:
        slope = self.kappa * x ** (self.p - 1.0)
        return Description(slope, np.zeros(0), np.zeros((0, len(x))), (self.p - 1.0) * slope / x)

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        if not 1.0 < self.p < np.inf:
            raise ValueError(f"PowerSimplex needs a finite p > 1, got p={self.p}; for p = 1 use Simplex().")
        log_kappa = (self.p - 1.0) * np.log(2.0 * (self.p - 1.0) / (self.p * self.theta))
        if abs(log_kappa) > 200.0:  # leaves room for squares and for energies of any usual scale
            raise ValueError(
                f"PowerSimplex(theta={self.theta}, p={self.p}) has a penalty beyond floating point; "
                "take theta closer to 1 or a smaller p."
            )
