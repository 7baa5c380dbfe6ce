"""Differences between methods on the same splits, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kernelweave._typing import Vector
from kernelweave.evaluation import Paired, paired
from kernelweave.plots._base import COLOURS, Display

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
