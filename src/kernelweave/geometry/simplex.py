"""The simplex: sparse kernel weights; and what all sets of weights on it share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry._projections import capped_maximizer, capped_projection, capped_reweight
from kernelweave.geometry._qp import capped_simplex_step
from kernelweave.geometry.base import Geometry, has_unit_sum, is_nonnegative


class OnSimplex(Geometry):
    """A geometry whose set is {eta >= 0, sum_m eta_m = 1}."""

    def contains(self, eta: Vector) -> bool:
        return is_nonnegative(eta) and has_unit_sum(eta)

    def start(self, n_kernels: int) -> Vector:
        return np.full(n_kernels, 1.0 / n_kernels)

    def project(self, z: Vector) -> Vector:
        return capped_projection(z, 1.0)

    def restricted(self, n_kernels: int) -> Self:  # noqa: ARG002 - it does not depend on M
        return self

    def min_active(self, n_kernels: int) -> int:  # noqa: ARG002
        return 1


class PenalisedSimplex(OnSimplex):
    """The simplex with a penalty that falls as ``theta`` grows."""

    theta: float

    tunable = "theta"

    def grid(self, n_kernels: int) -> tuple[float, ...]:  # noqa: ARG002 - theta does not depend on it
        return (0.01, 0.1, 1.0, 10.0, 100.0)  # the penalty has no natural scale

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        if not 0.0 < self.theta < np.inf:
            raise ValueError(
                f"{type(self).__name__} needs a finite theta > 0, got theta={self.theta}; "
                "for theta = infinity use Simplex()."
            )


@dataclass
class Simplex(OnSimplex):
    r"""Indicator of the simplex: the hard margin, with sparse weights.

    {eta >= 0, sum_m eta_m = 1}

    Notes
    -----
    L1MKL of [Xu13, Eq. (5)], SimpleMKL [Rakotomamonjy08], SILP [Sonnenburg06]. The block update is
    eta_m = ||f_m|| / sum_k ||f_k||, the support function max(h).
    Symbols: mu -> eta, M -> this set.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex().maximizer(np.array([1.0, 5.0, 5.0]))
    array([0. , 0.5, 0.5])
    >>> Simplex().reweight(np.array([1.0, 0.0, 3.0]))
    array([0.25, 0.  , 0.75])

    """

    fast_model_step = True

    def conjugate(self, h: Vector) -> float:
        return float(h.max())

    def maximizer(self, h: Vector) -> Vector:
        return capped_maximizer(h, 1.0)

    def reweight(self, norms: Vector) -> Vector:
        return capped_reweight(norms, 1.0)

    def linear_bounds(self, n_kernels: int) -> list[tuple[float, float]]:
        return [(0.0, 1.0)] * n_kernels

    def reduced_direction(self, eta: Vector, gradient: Vector) -> Vector:
        # [Rakotomamonjy08, Eq. (12)]: the largest weight absorbs what the others give or take.
        pivot = int(np.argmax(eta))
        reduced = gradient - gradient[pivot]
        direction = np.where((eta <= 0.0) & (reduced > 0.0), 0.0, -reduced)
        direction[pivot] = 0.0
        direction[pivot] = -direction.sum()
        return direction

    def _minimise_model(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        return capped_simplex_step(eta, h, H, 1.0)
