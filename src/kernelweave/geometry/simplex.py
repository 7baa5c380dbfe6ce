"""The simplex: sparse kernel weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry import _capped, _quadratic
from kernelweave.geometry._simplex import OnSimplex


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

    def conjugate(self, h: Vector) -> float:
        return float(h.max())

    def maximizer(self, h: Vector) -> Vector:
        return _capped.fill(h, 1.0)

    def reweight(self, norms: Vector) -> Vector:
        return _capped.share(norms, 1.0)

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

    def model_step(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        return _quadratic.model_step(eta, h, H, 1.0)
