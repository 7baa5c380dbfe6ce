"""Bars in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.plots._base import COLOURS, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
