"""Steps of the weights that leave most kernels where they are: their part of the sum need not be read again."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from kernelweave._typing import Vector

# Rounds of choosing what stays behind and the multiple it stays at.
ROUNDS = 3
# A step that leaves fewer kernels behind than this is taken whole.
BEHIND = 0.25


@runtime_checkable
class Scales(Protocol):
    """A geometry that can tell the multiple of some weights to use."""

    def scaled(self, eta: Vector) -> Vector:
        """Return the multiple of eta, which is not zero, on the boundary of the set."""
        ...


def mostly(geometry: Scales, before: Vector, after: Vector, slack: float) -> Vector:
    """Return weights near ``after`` that are one multiple of ``before`` for most kernels.

    They are off by at most ``slack`` of |after|, in the Euclidean norm, before they are scaled into the set.
    Where that leaves few kernels behind, it is ``after`` itself.
    """
    allowed = slack**2 * float(after @ after)
    used = before > 0.0
    if not used.any():
        return after
    keep = float(np.median(after[used] / before[used]))
    behind = np.zeros(after.size, dtype=bool)
    for _ in range(ROUNDS):
        off = (after - keep * before) ** 2
        order = np.argsort(off)
        last = int(np.searchsorted(np.cumsum(off[order]), allowed, side="right"))
        behind[:] = False
        behind[order[:last]] = True
        base = before[behind]
        size = float(base @ base)
        if size == 0.0:
            return after
        keep = float(base @ after[behind]) / size
    if keep <= 0.0 or last < BEHIND * after.size:
        return after
    near = np.where(behind, keep * before, after)
    return geometry.scaled(near)
