"""The sum of the kernels at some weights, and how it follows them when few of the kernels move."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeGuard

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Vector
from kernelweave.gram.protocol import GramStack, Moves
from kernelweave.gram.rounding import EARLIER, of_rows

# A sum follows its weights where this share of the kernels, or more, keep their part in it.
KEPT = 0.25
# Of fewer samples than this it is added up in no time, and there are no digits to lose.
FEW = 100
# What rounding does to what was rounded.
SECOND = 1.0 + 2.0**-20
# Weights that differ by rounding alone.
EQUAL = 4.0 * float(np.finfo(np.float64).eps)


class Following(GramStack, Moves, Protocol):
    """A stack whose sums follow their weights."""


@dataclass(frozen=True)
class Sum:
    """K(eta) = Σ eta_m K_m.

    A sum in float32 that was made of earlier ones has their rounding beside its own: half a unit in the last
    place of rows that are as long as ``carried``, one entry per sample; None where it was added up afresh.
    """

    eta: Vector
    K: AnyArray = field(repr=False)
    carried: Vector | None = field(default=None, repr=False)
    n_moves: int = 0

    def at(self, stack: GramStack, eta: Vector) -> Sum:
        """Return the sum at other weights; this one's matrix is overwritten."""
        step = _step(self.eta, eta) if self.n_moves < EARLIER else None
        if step is None or not follows(stack):
            return summed(stack, eta, self.K)
        carried = self._carried_on(step[0], stack.n_threads)
        stack.move(self.K, *step)
        return Sum(eta, self.K, carried, self.n_moves + 1)

    def carried_by(self, coef: AnyArray) -> AnyArray:
        """Bound what earlier roundings change in K V, entry by entry."""
        return np.zeros(coef.shape) if self.carried is None else of_rows(self.carried, coef)

    def _carried_on(self, keep: float, n_threads: int) -> Vector | None:
        """Return what a sum carries that keeps this part of the present one."""
        if self.K.dtype != np.float32:  # rounding in double is allowed for in the errors of every kernel
            return None
        lengths = np.empty(self.K.shape[0])
        _core.lengths(self.K, lengths, n_threads)
        if self.carried is not None:
            lengths += self.carried
        return np.asarray(SECOND * keep * lengths)


def follows(stack: GramStack) -> TypeGuard[Following]:
    """Return whether a sum of few moved kernels is less work than one of all."""
    return stack.n_samples >= FEW and getattr(stack, "moves", False)  # asked before every machine


def summed(stack: GramStack, eta: Vector, out: AnyArray | None = None) -> Sum:
    """Return the sum of all kernels; ``out``, the matrix of an earlier one, may be overwritten."""
    return Sum(eta, stack.combine(eta, out))


def _step(before: Vector, after: Vector) -> tuple[float, Vector] | None:
    """Return (keep, change) with after = keep before + change; None where change has not enough zeros."""
    used = before > 0.0
    if not used.any():
        return None
    keep = _most_common(after[used] / before[used])
    change = after - keep * before
    change[np.abs(change) <= 2.0 * EQUAL * after] = 0.0
    moved = np.count_nonzero(change)
    return (keep, change) if keep > 0.0 and moved <= (1.0 - KEPT) * np.count_nonzero(after) else None


def _most_common(values: Vector) -> float:
    """Return the value that most are equal to, up to rounding."""
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, ordered * (1.0 + EQUAL), side="right") - np.arange(ordered.size)
    first = int(np.argmax(counts))
    return float(ordered[first + counts[first] // 2])
