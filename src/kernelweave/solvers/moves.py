"""Steps of the weights that leave most kernels behind: their part of the sum need not be read again."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import Indices, Vector
from kernelweave.geometry.protocol import Scales

# Rounds of choosing what stays behind, and the multiple it stays at.
ROUNDS = 3
# A step that leaves a smaller share of the kernels behind is taken whole.
BEHIND = 0.25


def mostly(geometry: Scales, before: Vector, after: Vector, off: float) -> Vector:
    """Return weights near ``after`` that are one multiple of ``before`` for many kernels.

    Before they are scaled into the set, they are off by at most ``off`` times |after|, in Euclidean length.
    Where that leaves few kernels behind, it is ``after`` itself.
    """
    used = before > 0.0
    if not used.any():
        return after
    allowed = off**2 * float(after @ after)
    ratios = np.sort(after[used] / before[used])
    keep = float(ratios[ratios.size // 2])
    for _ in range(ROUNDS):
        behind = _smallest((after - keep * before) ** 2, allowed)
        size = float(before[behind] @ before[behind])
        if behind.size < BEHIND * after.size or size == 0.0:
            return after
        keep = float(before[behind] @ after[behind]) / size  # the best for them
    near = after.copy()
    near[behind] = keep * before[behind]
    return geometry.scaled(near)


def _smallest(parts: Vector, total: float) -> Indices:
    """Return the places of the smallest parts that add up to no more than the total."""
    order = np.argsort(parts)
    return order[: int(np.searchsorted(np.cumsum(parts[order]), total, side="right"))]
