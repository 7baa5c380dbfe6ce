"""The capped simplex: hinge loss soft margin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry._projections import (
    capped_conjugate,
    capped_maximizer,
    capped_projection,
    capped_reweight,
)
from kernelweave.geometry._qp import capped_simplex_step
from kernelweave.geometry.base import (
    FEASIBILITY_SLACK,
    Geometry,
    cap_grid,
    has_unit_sum,
    is_nonnegative,
)


@dataclass
class BoxSimplex(Geometry):
    r"""Indicator of the capped simplex: no kernel may take more than theta.

    {0 <= eta_m <= theta, sum_m eta_m = 1}

    Parameters
    ----------
    theta : float or None
        The cap, at least 1/M: 1/M is the average kernel, 1 or more the simplex.
    nu : float or None
        The cap as a share, theta = 1/(nu M), 0 < nu <= 1: at least a share nu of the kernels is used.
        Give theta or nu; without either nu = 0.5.

    Notes
    -----
    SM1MKL, the hinge loss on the kernel slacks: the set of [Xu13, Eq. (11)], the block update of
    [Xu13, Eq. (25)] with omega of Lemma 8. The support function fills the largest h with theta each.
    Symbols: mu -> eta, theta -> theta, omega -> the number of weights at the cap.
    Differs from the paper: norms may be zero. Where fewer than 1/theta are positive those get theta and
    the others share the rest evenly.

    Examples
    --------
    >>> import numpy as np
    >>> BoxSimplex(theta=0.5).reweight(np.array([8.0, 1.0, 3.0]))
    array([0.5  , 0.125, 0.375])

    """

    fast_model_step = True

    theta: float | None = None
    nu: float | None = None

    @property
    def tunable(self) -> str:
        return "theta" if self.nu is None else "nu"

    def grid(self, n_kernels: int) -> tuple[float, ...]:
        caps = cap_grid(n_kernels)
        return caps if self.nu is None else caps[::-1]  # theta = 1/(nu M): both lie between 1/M and 1

    def cap(self, n_kernels: int) -> float:
        """Return the cap for this many kernels, never above 1, exactly 1/M where it rounds to that."""
        even = 1.0 / n_kernels
        nu = 0.5 if self.nu is None else self.nu
        theta = even / nu if self.theta is None else self.theta
        return even if abs(theta * n_kernels - 1.0) <= FEASIBILITY_SLACK else min(theta, 1.0)

    def contains(self, eta: Vector) -> bool:
        fits = bool(eta.max() <= self.cap(len(eta)) + FEASIBILITY_SLACK)
        return fits and is_nonnegative(eta) and has_unit_sum(eta)

    def maximizer(self, h: Vector) -> Vector:
        return capped_maximizer(h, self.cap(len(h)))

    def conjugate(self, h: Vector) -> float:
        return capped_conjugate(h, self.cap(len(h)))

    def start(self, n_kernels: int) -> Vector:
        return np.full(n_kernels, 1.0 / n_kernels)

    def restricted(self, n_kernels: int) -> BoxSimplex:
        return BoxSimplex(theta=self.cap(n_kernels))

    def min_active(self, n_kernels: int) -> int:
        return math.ceil(1.0 / self.cap(n_kernels) - FEASIBILITY_SLACK)

    def project(self, z: Vector) -> Vector:
        return capped_projection(z, self.cap(len(z)))

    def reweight(self, norms: Vector) -> Vector:
        return capped_reweight(norms, self.cap(len(norms)))

    def linear_bounds(self, n_kernels: int) -> list[tuple[float, float]]:
        return [(0.0, self.cap(n_kernels))] * n_kernels

    def _minimise_model(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        return capped_simplex_step(eta, h, H, self.cap(len(h)))

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        if self.theta is not None and self.nu is not None:
            raise ValueError(
                f"BoxSimplex takes theta or nu, got theta={self.theta} and nu={self.nu}; set one to None."
            )
        if self.nu is not None and not 0.0 < self.nu <= 1.0:
            raise ValueError(
                f"BoxSimplex needs 0 < nu <= 1, got nu={self.nu}; nu=0.5 caps each weight at 2/M."
            )
        if self.theta is not None and not self.theta * n_kernels >= 1.0 - FEASIBILITY_SLACK:
            raise ValueError(
                f"BoxSimplex with {n_kernels} kernels needs theta >= 1/{n_kernels} = {1.0 / n_kernels:.6g}, "
                f"got theta={self.theta}; theta=1/{n_kernels} is the average kernel, theta=1 the simplex."
            )
