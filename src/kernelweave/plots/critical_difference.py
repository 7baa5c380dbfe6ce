"""Average ranks on a line, and bars over those that do not differ beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernelweave.plots._base import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CriticalDifferenceDisplay(Display):
    """Critical-difference diagram [Demsar06] of methods ranked over data sets.

    Examples
    --------
    >>> from kernelweave.plots import CriticalDifferenceDisplay
    >>> CriticalDifferenceDisplay(["a", "b", "c"], [1.2, 1.9, 2.9], 1.0).groups()
    [(0, 1), (1, 2)]

    """

    def __init__(
        self, methods: Sequence[str], average_ranks: Sequence[float], critical_difference: float
    ) -> None:
        order = np.argsort(average_ranks, kind="stable")
        self.methods = [methods[i] for i in order]
        self.ranks = np.asarray(average_ranks, dtype=float)[order]
        self.critical_difference = critical_difference

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, 1.2 + 0.28 * len(self.methods)

    def groups(self) -> list[tuple[int, int]]:
        """Return the widest runs of methods (by rank) within the critical difference: (first, last)."""
        runs: list[tuple[int, int]] = []
        for first in range(len(self.ranks)):
            last = int(np.flatnonzero(self.ranks - self.ranks[first] <= self.critical_difference)[-1])
            if last > first and (not runs or last > runs[-1][1]):
                runs.append((first, last))
        return runs

    def _draw(self, ax: Axes) -> None:
        n = len(self.methods)
        half = (n + 1) // 2  # the better half has its names on the left
        depth = half + 1.0
        ax.set_xlim(1 - 0.9, n + 0.9)
        ax.set_ylim(depth + 0.6, -1.4)
        ax.axis("off")
        ax.plot([1, n], [0, 0], color="black", lw=1)
        for tick in range(1, n + 1):
            ax.plot([tick, tick], [0, -0.15], color="black", lw=1)
            ax.text(tick, -0.25, str(tick), ha="center", va="bottom", fontsize=8)
        for k, (name, rank) in enumerate(zip(self.methods, self.ranks, strict=True)):
            left = k < half
            level = 1.2 + (k if left else n - 1 - k)
            edge = 0.85 if left else n + 0.15
            ax.plot([rank, rank, edge], [0, level, level], color="black", lw=0.8)
            ax.text(
                edge - 0.05 if left else edge + 0.05,
                level,
                f"{name} {rank:.2f}",
                ha="right" if left else "left",
                va="center",
                fontsize=8,
            )
        for level, (first, last) in enumerate(self.groups()):
            height = 0.25 + 0.22 * level
            ax.plot(
                [self.ranks[first] - 0.04, self.ranks[last] + 0.04], [height, height], color="black", lw=3
            )
        ax.plot([1, 1 + self.critical_difference], [-1.0, -1.0], color="black", lw=2)
        ax.text(
            1,
            -1.05,
            f"critical difference {self.critical_difference:.2f}",
            ha="left",
            va="bottom",
            fontsize=8,
        )
