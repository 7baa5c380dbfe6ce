"""The quadratic program that the dual of every SVM here is, and its solution by SMO."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Vector

# A stop for degenerate problems only: one step costs O(n), ordinary fits need 1 to 50 steps per sample.
STEPS_PER_SAMPLE = 5_000
# Sums may be off by this share of all coefficients.
SUMS = 1e-11
# The compiled loop works with finite numbers only.
UNBOUNDED = 1e300


@dataclass(frozen=True)
class DualProgram:
    r"""min ½ v'(K + diag(d))v − s'v + kink'|v| over lo ≤ v ≤ hi, with the sum of v over each group fixed.

    Here v = α∘y, so one group is the constraint y'α = 0 and one group per class adds 1'α = const. Only
    regression has a ``kink``; None is zero.
    """

    s: Vector
    d: Vector
    lo: Vector
    hi: Vector
    group: AnyArray
    sums: Vector
    kink: Vector | None = None

    def gain(self, v: Vector) -> float:
        """Return g = s'v − ½ v'diag(d)v − kink'|v|: the dual value without the kernel's part."""
        kinked = 0.0 if self.kink is None else float(self.kink @ np.abs(v))
        return float(self.s @ v - 0.5 * self.d @ v**2) - kinked

    def free(self, v: Vector) -> AnyArray:
        """Return the coordinates that are neither at a bound nor at their kink."""
        inside = (v > self.lo) & (v < self.hi)
        return np.flatnonzero(inside if self.kink is None else inside & ((v != 0.0) | (self.kink == 0.0)))

    def feasible(self, v: Vector | None) -> Vector:
        """Return a feasible point near v: clipped to the box, then each group moved back to its sum."""
        x = np.clip(np.zeros_like(self.s) if v is None else v, self.lo, self.hi)
        for g, total in enumerate(self.sums):
            inside = self.group == g
            x[inside] = _move_to_sum(x[inside], self.lo[inside], self.hi[inside], float(total))
        return np.clip(x, self.lo, self.hi)

    def descend(
        self, K: AnyArray, v: Vector, tolerance: float, f: Vector | None = None
    ) -> tuple[Vector, Vector, float]:
        """Run SMO from v until no pair violates optimality by more than the tolerance; f is K v if known.

        Returns the point, f = K v, and the violation left.
        """
        v = v.copy()
        gradient = np.empty_like(v) if f is None else f - self.s + self.d * v
        limit = STEPS_PER_SAMPLE * v.size
        lo, hi = np.maximum(self.lo, -UNBOUNDED), np.minimum(self.hi, UNBOUNDED)
        kink = np.zeros_like(v) if self.kink is None else self.kink
        args = (K, self.s, self.d, kink, lo, hi, self.group)
        _, violation = _core.smo(*args, v, gradient, tolerance, limit, f is not None)
        f = gradient + self.s - self.d * v
        return *self._moved_back(K, v, f), violation

    def _moved_back(self, K: AnyArray, v: Vector, f: Vector) -> tuple[Vector, Vector]:
        """Return v with its sums, and K v: a start much larger than the end leaves them its own rounding."""
        off = np.abs(self.sums - np.bincount(self.group, weights=v, minlength=self.sums.size))
        if off.max(initial=0.0) <= SUMS * np.abs(v).sum():
            return v, f
        x = self.feasible(v)
        return x, f + (K @ (x - v)).astype(np.float64)


def _move_to_sum(x: Vector, lo: Vector, hi: Vector, total: float) -> Vector:
    missing = total - x.sum()
    if missing < 0.0:
        return -_move_to_sum(-x, -hi, -lo, -total)
    # Coefficients of the other sign shrink towards zero first: legal in every box, also in one without a top.
    opposite = np.minimum(x, 0.0)
    shrink = min(missing, -float(opposite.sum()))
    if shrink > 0.0:
        x = x - opposite * (shrink / -float(opposite.sum()))
        missing -= shrink
    room = hi - x
    if missing > 0.0 and np.isfinite(room).all() and room.sum() > 0.0:
        x = x + missing * room / room.sum()
    return x
