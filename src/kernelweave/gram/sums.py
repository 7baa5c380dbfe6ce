"""The sum of the kernels at some weights, and how it follows them when few of the kernels move."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.gram.protocol import GramStack, move

# A sum follows its weights where so many of the kernels keep their share of it, or more.
KEPT = 0.5
# So often before it is added up afresh: every time it is rounded once more.
TIMES = 4
# Of fewer samples than this sums are added up in no time, and digits are few to spare.
FEW = 100
# What rounding does to roundings.
SECOND = 1.0 + 2.0**-20
# Weights that differ by rounding alone.
EQUAL = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Sum:
    """K(eta) = Σ eta_m K_m.

    A sum that was made of others ``carries`` their rounding: beside its own, entry (i, j) may be off by half
    a unit in the last place of Σ carried_m |K_m,ij|, where the K_m are what the stack holds.
    """

    eta: Vector
    K: AnyArray = field(repr=False)
    carried: Vector = field(repr=False)
    n_moves: int = 0

    def at(self, stack: GramStack, eta: Vector) -> Sum:
        """Return the sum at other weights; this one's matrix is overwritten."""
        step = self._step(eta)
        if step is None or not move(stack, self.K, *step):
            return summed(stack, eta, self.K)
        return Sum(eta, self.K, SECOND * step[0] * (self.carried + self.eta), self.n_moves + 1)

    def _step(self, eta: Vector) -> tuple[float, Vector] | None:
        """Return (keep, change) with eta = keep times the present weights + change, if that has many zeros."""
        used = self.eta > 0.0
        if self.K.shape[0] < FEW or self.n_moves == TIMES or not used.any():
            return None
        keep = float(np.median(eta[used] / self.eta[used]))
        change = eta - keep * self.eta
        change[np.abs(change) <= EQUAL * eta] = 0.0
        moved = np.count_nonzero(change)
        return (keep, change) if keep > 0.0 and moved <= (1.0 - KEPT) * np.count_nonzero(eta) else None


def summed(stack: GramStack, eta: Vector, out: AnyArray | None = None) -> Sum:
    """Return the sum of all kernels; ``out``, the matrix of an earlier one, may be overwritten."""
    return Sum(eta, stack.combine(eta, out), np.zeros_like(eta))
