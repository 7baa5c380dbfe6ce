"""The patterns of switches seen in training, and which of them suits a new sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.adaptive.switches import Switches

# Scores of all patterns are formed for so many rows at a time that they stay near 32 MB.
SCORES = 4_000_000


@dataclass(frozen=True)
class Patterns:
    """Distinct rows of switches, the most frequent first, how often each occurs, and where."""

    table: Switches
    counts: Indices
    members: Indices

    @classmethod
    def of(cls, switches: Switches) -> Patterns:
        """Return the distinct rows of ``switches`` (n, M)."""
        table, members, counts = np.unique(switches, axis=0, return_inverse=True, return_counts=True)
        order = np.lexsort((np.arange(counts.size), -counts))
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return cls(table[order], counts[order], places[members.ravel()])


def decide(
    contributions: Matrix, intercept: float, table: Switches, *, signed: bool
) -> tuple[Vector, Indices]:
    r"""Return the score of every sample and the pattern it was reached with.

    ``signed`` takes the pattern with the largest |f_h(x)| ([Liu14, Eq. (17)]: the best pair of label and
    pattern), otherwise that with the largest f_h(x) ([Liu14, Eq. (18)], one class against the rest); of
    equals the more frequent one.

    Parameters
    ----------
    contributions : array of shape (rows, M)
        What every kernel says of a sample when it is on.
    intercept : float
        b.
    table : bool array of shape (P, M)
        The patterns.
    signed : bool
        Whether both signs count.
    """
    n = contributions.shape[0]
    values, chosen = np.empty(n), np.empty(n, dtype=np.intp)
    weights = table.T.astype(np.float64)
    step = max(1, SCORES // max(table.shape[0], 1))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        scores = contributions[rows] @ weights + intercept
        best = (np.abs(scores) if signed else scores).argmax(axis=1)
        chosen[rows] = best
        values[rows] = np.take_along_axis(scores, best[:, None], axis=1)[:, 0]
    return values, chosen


def association(switches: Switches, y: AnyArray) -> Vector:
    """Return per kernel the correlation of its switch with the label ±1, 0 where it is never or always on."""
    n = y.size
    on = switches - switches.mean(axis=0)
    label = y - y.mean()
    size = np.sqrt((on**2).sum(axis=0) * (label @ label))
    found = np.zeros(switches.shape[1])
    np.divide(label @ on, size, out=found, where=size > 1e-12 * n)
    return found
