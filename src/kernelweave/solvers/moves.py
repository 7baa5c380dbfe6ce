"""Steps of the weights that leave most kernels behind: their part of the sum need not be read again."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._typing import Indices, Vector

# Rounds of choosing what stays behind, and the multiple it stays at.
ROUNDS = 3
# A step that leaves a smaller share of the kernels in use behind is taken whole.
BEHIND = 0.25
# The part of the way that may be given up, so that every step leads on.
GIVEN_UP = 0.3
# A weight that counts as none beside the largest.
NONE = 1e-100


def mostly(geometry: Any, before: Vector, after: Vector, off: float) -> Vector:
    """Return weights near ``after`` that are one multiple of ``before`` for many kernels.

    Before they are scaled into the set, they are off by at most ``off`` times |after|, in Euclidean length,
    and by no more than a part of the way. Where that leaves few kernels behind, it is ``after`` itself.
    """
    used = np.flatnonzero(before > NONE * before.max())
    if used.size == 0:
        return after
    start, end, way = before[used], after[used], after - before
    allowed = min(off**2 * float(after @ after), GIVEN_UP**2 * float(way @ way))
    ratios = np.sort(end / start)
    keep = float(ratios[ratios.size // 2])
    for _ in range(ROUNDS):
        behind = _smallest((end - keep * start) ** 2, allowed)
        size = float(start[behind] @ start[behind])
        if behind.size < BEHIND * np.count_nonzero(after) or size == 0.0:
            return after
        keep = float(start[behind] @ end[behind]) / size  # the best for them
    near = after.copy()
    near[used[behind]] = keep * start[behind]
    return np.asarray(geometry.scaled(near))


def _smallest(parts: Vector, total: float) -> Indices:
    """Return the places of the smallest parts that add up to no more than the total."""
    order = np.argsort(parts)
    return order[: int(np.searchsorted(np.cumsum(parts[order]), total, side="right"))]
