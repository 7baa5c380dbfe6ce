"""The sum of the kernels at some weights, and how it follows them when few of the kernels move."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Vector
from kernelweave.gram.protocol import GramStack, Moves
from kernelweave.gram.rounding import SINGLE, SMALLEST, of_rows

# A sum follows its weights where this share of the kernels in use, or more, keep their part in it.
KEPT = 0.25
# So often before it is added up afresh.
TIMES = 4
# What is added and taken away may be so many times what is left, over all moves: digits are lost with it.
GROWTH = 4.0
# Of fewer samples than this sums are added up in no time, and there are no digits to lose.
FEW = 100
# What rounding does to what was rounded.
SECOND = 1.0 + 2.0**-20
# Weights that differ by rounding alone, and such that count as none beside the largest.
EQUAL, NONE = 4.0 * float(np.finfo(np.float64).eps), 1e-100


class Following(GramStack, Moves, Protocol):
    """A stack whose sums follow their weights."""


class Step(NamedTuple):
    """The way from weights to others: keep times them + change; and how much more is added than is left."""

    keep: float
    change: Vector
    growth: float


@dataclass(frozen=True, eq=False)
class Sum:
    """K(eta) = Σ eta_m K_m.

    A sum in float32 that was made of earlier ones has their rounding beside its own: half a unit in the last
    place of rows that are as long as ``carried``, one entry per sample. ``drawn`` are the weights of kernels
    that were taken away again, as they are stored: if the first sum was that of the originals, their rounding
    is left. Both are None where it was added up afresh.
    """

    eta: Vector
    K: AnyArray = field(repr=False)
    carried: Vector | None = field(default=None, repr=False)
    drawn: Vector | None = field(default=None, repr=False)
    n_moves: int = 0
    growth: float = 1.0

    @property
    def may_move(self) -> bool:
        """Whether it has digits left to follow its weights."""
        return self.n_moves < TIMES and self.growth < GROWTH

    def at(self, stack: GramStack, eta: Vector) -> Sum:
        """Return the sum at other weights; this one's matrix is overwritten."""
        if not self.may_move or not follows(stack):
            return summed(stack, eta, self.K)
        step = _step(self.eta, eta, stack.sizes)
        if step is None or step.growth * self.growth > GROWTH:
            return summed(stack, eta, self.K)
        carried = self._carried_on(step.keep, stack.n_threads)
        drawn = step.keep * self.weights_drawn + np.maximum(-step.change, 0.0)
        stack.move(self.K, step.keep, step.change)
        return Sum(eta, self.K, carried, drawn, self.n_moves + 1, step.growth * self.growth)

    @property
    def weights_drawn(self) -> Vector:
        """The weights of kernels that were taken away again."""
        return np.zeros_like(self.eta) if self.drawn is None else self.drawn

    def carried_by(self, coef: AnyArray) -> AnyArray:
        """Bound what earlier roundings change in K V, entry by entry."""
        return np.zeros(coef.shape) if self.carried is None else of_rows(self.carried, coef)

    def _carried_on(self, keep: float, n_threads: int) -> Vector | None:
        """Return what a sum carries that keeps this part of the present one."""
        if self.K.dtype != np.float32:  # in double it is far below what is allowed for every kernel
            return None
        lengths = np.empty(self.K.shape[0])
        _core.lengths(self.K, lengths, n_threads)
        lengths += np.sqrt(lengths.size) * SMALLEST / SINGLE  # entries too small for float32
        if self.carried is not None:
            lengths += self.carried
        return np.asarray(SECOND * keep * lengths)


def follows(stack: GramStack) -> TypeGuard[Following]:
    """Return whether a sum of few moved kernels is less work than one of all."""
    return stack.n_samples >= FEW and getattr(stack, "moves", False)  # asked before every machine


def summed(stack: GramStack, eta: Vector, out: AnyArray | None = None) -> Sum:
    """Return the sum of all kernels; ``out``, the matrix of an earlier one, may be overwritten."""
    return Sum(eta, stack.combine(eta, out))


def _step(before: Vector, after: Vector, sizes: Vector) -> Step | None:
    """Return the way between weights of kernels of these sizes; None where too many of them move."""
    used = before > NONE * before.max()
    if not used.any():
        return None
    keep = _most_common(after[used] / before[used])
    change = after - keep * before
    change[np.abs(change) <= 2.0 * EQUAL * after] = 0.0
    if keep <= 0.0 or np.count_nonzero(change) > (1.0 - KEPT) * np.count_nonzero(after):
        return None
    left = float(after @ sizes)
    growth = float((keep * before + np.abs(change)) @ sizes) / left if left > 0.0 else np.inf
    return Step(keep, change, max(growth, 1.0))


def _most_common(values: Vector) -> float:
    """Return the value that most are equal to, up to rounding."""
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, ordered * (1.0 + EQUAL), side="right") - np.arange(ordered.size)
    first = int(np.argmax(counts))
    return float(ordered[first + counts[first] // 2])
