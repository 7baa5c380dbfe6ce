"""The quadratic program that the dual of every SVM here is, and its solution by SMO."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Vector

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

    @classmethod
    def of_classes(
        cls, y: Vector, C: Vector, s: Vector, d: Vector | None = None, class_sum: float | None = None
    ) -> DualProgram:
        """Return the program of v = α∘y with 0 ≤ α ≤ C and y'α = 0, or with Σ α = ``class_sum`` in each class."""
        up, d = y > 0, np.zeros(y.size) if d is None else d
        group = np.zeros(y.size, dtype=np.int64) if class_sum is None else up.astype(np.int64)
        sums = np.zeros(1) if class_sum is None else np.array([-class_sum, class_sum])
        return cls(s, d, np.where(up, 0.0, -C), np.where(up, C, 0.0), group, sums)

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

    def warm_coefficients_from(self, f: Vector) -> Vector:
        """Return feasible coefficients for decision values of a similar problem.

        A coefficient is at its bound where f is far on one side of what the sample asks for, and on a ramp
        between: which samples come to lie on the margin, f of other samples cannot tell exactly.
        """
        residual, v = self.s - f, np.empty_like(f)
        width = 0.4 * float(np.abs(residual - residual.mean()).mean())
        for g, total in enumerate(self.sums):
            inside = np.flatnonzero(self.group == g)
            part = self.at(inside)
            low, high = float(residual[inside].min()), float(residual[inside].max())
            reach = 2.0 * width + high - low + float(0.0 if part.kink is None else part.kink.max())
            low, high = low - reach, high + reach
            for _ in range(40):  # the sum falls as the level rises
                level = 0.5 * (low + high)
                v[inside] = part._on_ramp(residual[inside] - level, width)
                low, high = (level, high) if float(v[inside].sum()) > total else (low, level)
        return self.feasible(v)

    def _on_ramp(self, residual: Vector, width: float) -> Vector:
        """Return bounded coefficients by how far residuals lie beyond their kinks, others as their slope says."""
        kink = np.zeros_like(residual) if self.kink is None else self.kink
        sloped = (
            self.d > 0.0
        )  # there the best coefficient grows in proportion, elsewhere it jumps to its bound
        slope = np.divide(1.0, self.d, out=np.zeros_like(self.d), where=sloped)

        def beyond(distance: Vector, bound: Vector) -> Vector:
            ramp = np.clip(0.5 + distance / (2.0 * width or 1.0), 0.0, 1.0)
            flat = np.where(sloped, 0.0, bound) * ramp
            return np.where(sloped, np.minimum(np.maximum(distance, 0.0) * slope, bound), flat)

        return beyond(residual - kink, self.hi) - beyond(-residual - kink, -self.lo)

    def smoothed(self, width: float) -> DualProgram:
        """Return the program of losses without corners, at most ½ width |v| below those of this one.

        Where a coefficient would jump from 0 to its bound as its residual grows, it climbs over this width instead:
        d grows by width / bound.
        """
        bound = np.maximum(self.hi, -self.lo)
        finite = (bound > 0.0) & np.isfinite(bound)
        return replace(self, d=self.d + np.divide(width, bound, out=np.zeros_like(bound), where=finite))

    def losses(self, residual: Vector) -> Vector:
        """Return max over the box of v r − ½ d v² − kink |v| for residuals r = s − f − b: what samples pay."""
        v, x = self._best(residual)
        return np.asarray(v * x - 0.5 * self.d * v**2)

    def slopes(self, residual: Vector) -> tuple[Vector, Vector]:
        """Return the v where that maximum is, and how fast they change with the residuals."""
        v, x = self._best(residual)
        bound = np.where(residual < 0.0, -self.lo, self.hi)
        inside = (x > 0.0) & (v < bound)
        rate = np.divide(1.0, self.d, out=np.zeros_like(v), where=inside)
        return np.where(residual < 0.0, -v, v), rate

    def _best(self, residual: Vector) -> tuple[Vector, Vector]:
        """Return |v| of the maximum, and how far residuals are beyond their kinks."""
        x = np.maximum(np.abs(residual) - (0.0 if self.kink is None else self.kink), 0.0)
        bound = np.where(residual < 0.0, -self.lo, self.hi)
        v = np.minimum(np.divide(x, self.d, out=np.full_like(x, np.inf), where=self.d > 0.0), bound)
        return np.where(x > 0.0, v, 0.0), x

    def at(self, samples: Indices) -> DualProgram:
        """Return the program of some of the samples; sums are left as they are."""
        kink = None if self.kink is None else self.kink[samples]
        parts = {name: getattr(self, name)[samples] for name in ("s", "d", "lo", "hi", "group")}
        return replace(self, kink=kink, **parts)

    def on_block(self, samples: Indices, K: AnyArray, v: Vector, f: Vector) -> DualProgram:
        """Return the program in the coefficients of some samples while the others stay at v, where K v = f.

        ``K`` is the kernel between these samples; their sums are held.
        """
        part, own = self.at(samples), v[samples]
        sums = np.bincount(part.group, weights=own, minlength=self.sums.size).astype(np.float64)
        others = f[samples] - (K @ own.astype(K.dtype)).astype(np.float64)
        return replace(part, s=part.s - others, sums=sums)

    def violations(self, v: Vector, f: Vector) -> tuple[Vector, Vector]:
        """Return how steeply the objective falls when a coefficient grows, and when it shrinks.

        −infinity where it cannot; only differences within a group mean something.
        """
        gradient = f + self.d * v - self.s
        kink = np.zeros_like(v) if self.kink is None else self.kink
        up = np.where(v < self.hi, np.where(v < 0.0, kink, -kink) - gradient, -np.inf)
        down = np.where(v > self.lo, np.where(v > 0.0, kink, -kink) + gradient, -np.inf)
        return up, down

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
