"""Lower bounds from everything seen: convex mixtures of dual points are dual points."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from kernelweave._typing import Vector
from kernelweave.geometry.protocol import WeightGeometry


class LowerBound:
    r"""The best bound g − Ω*(h) over mixtures of the dual points (g, h) reported so far.

    g is concave and h convex in α, so a mixture of the values bounds the value of the mixture:
    Σπ g_r − Ω*(Σπ h_r) never exceeds the optimum. One line search per new point keeps the best mixture; it
    matters where the machine's coefficients are not unique and no single one of them closes the gap.
    """

    def __init__(self, geometry: WeightGeometry) -> None:
        self._geometry = geometry
        self._g = -np.inf
        self._h: Vector = np.empty(0)
        self.value = -np.inf

    def add(self, g: float, h: Vector) -> None:
        """Take a dual point into account."""
        alone = g - self._geometry.conjugate(h)
        if not np.isfinite(self.value):
            self._g, self._h, self.value = g, h, alone
            return
        old_g, old_h = self._g, self._h

        def bound(t: float) -> float:
            return (1.0 - t) * old_g + t * g - self._geometry.conjugate((1.0 - t) * old_h + t * h)

        best = minimize_scalar(
            lambda t: -bound(t), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-4}
        )
        t, value = max([(float(best.x), -float(best.fun)), (1.0, alone)], key=lambda pair: pair[1])
        if value > self.value:
            self._g, self._h, self.value = (1.0 - t) * old_g + t * g, (1.0 - t) * old_h + t * h, value
