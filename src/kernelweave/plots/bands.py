"""Lines with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernelweave._typing import Matrix, Vector
from kernelweave.plots._base import COLOURS, MARKERS, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
