"""The geometry's share of the duality gap."""

from __future__ import annotations

from kernelweave._typing import Vector
from kernelweave.geometry.protocol import WeightGeometry


def fenchel_young_gap(geometry: WeightGeometry, eta: Vector, h: Vector) -> float:
    """Return Omega(eta) + Omega*(h) - <eta, h>: zero exactly when eta answers h best.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.geometry import Simplex, fenchel_young_gap
    >>> fenchel_young_gap(Simplex(), np.array([0.5, 0.5]), np.array([1.0, 3.0]))
    1.0

    """
    return geometry.value(eta) + geometry.conjugate(h) - float(eta @ h)
