"""The average kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Vector
from kernelweave.geometry.base import FEASIBILITY_SLACK
from kernelweave.geometry.point import OnePoint


@dataclass
class Uniform(OnePoint):
    r"""The one point eta_m = 1/M: nothing is learnt about the kernels.

    {eta : eta_m = 1/M}

    Notes
    -----
    The support function is mean(h). The baseline AveKernel of [Xu13, Sec. V-A], and their soft margin at
    theta = 1/M.
    Symbols: mu -> eta.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> Uniform().maximizer(np.array([1.0, 5.0]))
    array([0.5, 0.5])

    """

    def contains(self, eta: Vector) -> bool:
        return bool(np.abs(eta - 1.0 / len(eta)).max() <= FEASIBILITY_SLACK)

    def conjugate(self, h: Vector) -> float:
        return float(np.mean(h))

    def start(self, n_kernels: int) -> Vector:
        return np.full(n_kernels, 1.0 / n_kernels)

    def linear_bounds(self, n_kernels: int) -> list[tuple[float, float]]:
        return [(1.0 / n_kernels, 1.0 / n_kernels)] * n_kernels
