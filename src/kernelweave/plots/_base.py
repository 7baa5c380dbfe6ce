"""What all displays share: matplotlib on demand, and saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that colour-blind people can distinguish, after Okabe and Ito.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vPX*"


class Display(ABC):
    """Something to draw, in the manner of scikit-learn's displays."""

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on ``ax``, or on a new figure; keeps ``ax_`` and ``figure_``."""
        if ax is None:
            ax = _pyplot().subplots(figsize=self.size, layout="constrained")[1]
        self.ax_: Axes = ax
        self.figure_: Any = ax.figure
        self._draw(ax)
        return self

    def save(self, file: str | Path) -> None:
        """Draw on a figure of its own and write it to a file; its name gives the format."""
        plt = _pyplot()
        with plt.rc_context({"svg.hashsalt": type(self).__name__}):  # equal results give equal files
            self.plot()
            self.figure_.savefig(file, dpi=150, metadata=_without_date(file))
        plt.close(self.figure_)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 7.0, 4.2

    @abstractmethod
    def _draw(self, ax: Axes) -> None: ...


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Drawing needs matplotlib: pip install 'kernelweave[plot]'.") from None
    return plt


def _without_date(file: str | Path) -> dict[str, Any] | None:
    """Leave out the date, for the same reason."""
    return {"Date": None} if str(file).endswith(".svg") else None
