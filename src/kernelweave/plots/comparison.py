"""Methods compared: paired differences, critical differences of ranks, lines with bands, grouped bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.evaluation import Paired, paired
from kernelweave.plots._base import COLOURS, MARKERS, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class ComparisonDisplay(Display):
    r"""One interval per method: how far it is from a reference on the same splits; a line at no difference.

    Parameters
    ----------
    names : sequence of str
        The methods.
    differences, lower, upper : arrays of shape (methods,)
        Mean differences and the ends of their intervals.
    label : str
        What is compared.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> from kernelweave.plots import ComparisonDisplay
    >>> scores = {"average": [0.8, 0.9, 0.8], "learnt": [0.9, 0.9, 0.9]}
    >>> display = ComparisonDisplay.from_scores(scores, "average")
    >>> display.differences.round(3).tolist()
    [0.067]

    """

    names: Sequence[str]
    differences: Vector
    lower: Vector = field(repr=False)
    upper: Vector = field(repr=False)
    label: str = "difference"

    @classmethod
    def from_scores(
        cls,
        scores: Mapping[str, Any],
        reference: str,
        *,
        test_share: float | None = None,
        level: float = 0.95,
        ax: Any = None,
    ) -> Self:
        """Draw scores by method, one per split, minus those of the reference."""
        if reference not in scores:
            raise ValueError(f"There are no scores of {reference!r}; there are {', '.join(scores)}.")
        found = {
            name: paired(values, scores[reference], test_share=test_share, level=level)
            for name, values in scores.items()
            if name != reference
        }
        return cls.from_differences(found, f"score minus that of {reference}", ax=ax)

    @classmethod
    def from_costs(cls, costs: Any, *, ax: Any = None) -> Self:
        """Draw what `kernelweave.explain.leave_view_out` found: the drop of the score without each view."""
        return cls.from_differences(costs.costs(), "score lost without the view", ax=ax)

    @classmethod
    def from_differences(cls, found: Mapping[str, Paired], label: str, *, ax: Any = None) -> Self:
        """Draw differences that `kernelweave.evaluation.paired` found, by name."""
        rows = np.array([[one.difference, *one.interval] for one in found.values()]).reshape(-1, 3)
        return cls(list(found), rows[:, 0], rows[:, 1], rows[:, 2], label).plot(ax)

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, max(2.0, 0.34 * len(self.names) + 1.0)

    def _draw(self, ax: Axes) -> None:
        rows = np.arange(len(self.names))
        ax.axvline(0.0, color="black", lw=0.8)
        ax.hlines(rows, self.lower, self.upper, color=COLOURS[0], lw=2.5)
        ax.plot(self.differences, rows, "o", color=COLOURS[1], ms=6)
        ax.set_yticks(rows, list(self.names))
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_xlabel(self.label)


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


class BandsDisplay(Display):
    """One line per method over ``x`` with a band: rows of (value, lower, upper).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.plots import BandsDisplay
    >>> BandsDisplay(np.arange(2.0), {"a": np.ones((2, 3))}, "x", "y").x_label
    'x'

    """

    def __init__(self, x: Vector, bands: Mapping[str, Matrix], x_label: str, y_label: str) -> None:
        self.x, self.bands, self.x_label, self.y_label = x, bands, x_label, y_label

    def _draw(self, ax: Axes) -> None:
        for k, (name, rows) in enumerate(self.bands.items()):
            colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
            ax.fill_between(self.x, rows[:, 1], rows[:, 2], color=colour, alpha=0.12, lw=0)
            ax.plot(self.x, rows[:, 0], color=colour, marker=marker, ms=4, lw=1.4, label=name)
        ax.set_xlabel(self.x_label)
        ax.set_ylabel(self.y_label)
        ax.legend(fontsize=8, frameon=False)


class GroupedBarsDisplay(Display):
    """One group per row of ``heights``, one bar per column.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.plots import GroupedBarsDisplay
    >>> GroupedBarsDisplay(["heart"], ["a", "b"], np.ones((1, 2)), "kernels").label
    'kernels'

    """

    def __init__(self, groups: Sequence[str], bars: Sequence[str], heights: Matrix, label: str) -> None:
        self.groups, self.bars, self.heights, self.label = groups, bars, heights, label

    def _draw(self, ax: Axes) -> None:
        x = np.arange(len(self.groups))
        width = 0.8 / len(self.bars)
        for j, name in enumerate(self.bars):
            left = x - 0.4 + (j + 0.5) * width
            ax.bar(left, self.heights[:, j], width, color=COLOURS[j % len(COLOURS)], label=name)
        ax.set_xticks(x, self.groups, rotation=20, ha="right", fontsize=8)
        ax.set_ylabel(self.label)
        ax.legend(fontsize=8, frameon=False, ncols=2)
