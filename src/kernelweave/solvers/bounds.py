"""Lower bounds from everything seen: convex mixtures of dual points are dual points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from kernelweave._typing import AnyArray, Vector
from kernelweave.geometry.base import Geometry


@dataclass(frozen=True)
class DualPoint:
    """Coefficients v = α∘y with g(α), and energies that h(α) does not exceed.

    Energies of a mixture are mixtures too, which is right for kernels without negative eigenvalues only.
    """

    coef: AnyArray
    g: float
    h: Vector

    def towards(self, other: DualPoint, t: float) -> DualPoint:
        """Return the mixture: g is concave and h convex in α, so mixed values bound those of mixed α."""
        return DualPoint(
            (1.0 - t) * self.coef + t * other.coef,
            (1.0 - t) * self.g + t * other.g,
            (1.0 - t) * self.h + t * other.h,
        )


class LowerBound:
    r"""The best bound g − Ω*(h) over mixtures of the dual points reported so far.

    Σπ g_r − Ω*(Σπ h_r) never exceeds the optimum. A new point that is better alone replaces the mixture; for
    another one line search finds the best share. That matters where the machine's coefficients are not
    unique and no single one of them closes the gap.
    """

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry
        self.point: DualPoint | None = None
        self.value = -np.inf

    def add(self, new: DualPoint) -> None:
        """Take a dual point into account."""
        alone = self._bound(new)
        if self.point is None or alone > self.value:
            self.point, self.value = new, alone
            return
        old = self.point
        best = minimize_scalar(
            lambda t: -self._mixed(old, new, t), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-4}
        )
        if -best.fun > self.value:
            self.point, self.value = old.towards(new, float(best.x)), -float(best.fun)

    def _bound(self, point: DualPoint) -> float:
        return point.g - self._geometry.conjugate(point.h)

    def _mixed(self, old: DualPoint, new: DualPoint, t: float) -> float:
        return (1.0 - t) * old.g + t * new.g - self._geometry.conjugate((1.0 - t) * old.h + t * new.h)
