"""What geometries on the simplex share: the set, whatever the penalty on it."""

from __future__ import annotations

from typing import Self

import numpy as np

from kernelweave._typing import Vector
from kernelweave.geometry import _capped
from kernelweave.geometry._base import FEASIBILITY_SLACK, SOFT_GRID, Geometry, is_nonnegative


class OnSimplex(Geometry):
    """A geometry whose set is {eta >= 0, sum_m eta_m = 1}."""

    def contains(self, eta: Vector) -> bool:
        return is_nonnegative(eta) and abs(float(eta.sum()) - 1.0) <= FEASIBILITY_SLACK

    def start(self, n_kernels: int) -> Vector:
        return np.full(n_kernels, 1.0 / n_kernels)

    def restricted(self, n_kernels: int) -> Self:  # noqa: ARG002 - it does not depend on M
        """Return the geometry of some of ``n_kernels`` kernels while the others stay at zero."""
        return self

    def fewest(self, n_kernels: int) -> int:  # noqa: ARG002
        """Return the least number of kernels in use."""
        return 1

    def project(self, z: Vector) -> Vector:
        return _capped.project(z, 1.0)


class SoftSimplex(OnSimplex):
    """The simplex with a penalty that ``theta`` lowers."""

    theta: float

    @property
    def tunable(self) -> str:
        return "theta"

    def grid(self, n_kernels: int) -> tuple[float, ...]:  # noqa: ARG002 - theta does not depend on it
        return SOFT_GRID

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        if not 0.0 < self.theta < np.inf:
            raise ValueError(
                f"{type(self).__name__} needs a finite theta > 0, got theta={self.theta}; "
                "for theta = infinity use Simplex()."
            )
