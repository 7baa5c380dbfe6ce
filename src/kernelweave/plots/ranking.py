"""The cumulative matching characteristic, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave.evaluation.ranking import cmc_curve
from kernelweave.plots._base import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CMCDisplay(Display):
    """Share of probes whose identity is found by each rank.

    Examples
    --------
    >>> from kernelweave.plots import CMCDisplay
    >>> CMCDisplay([0.5, 1.0], name="ITML").curve
    array([0.5, 1. ])

    """

    def __init__(self, curve: Any, *, name: str | None = None) -> None:
        self.curve = np.asarray(curve, dtype=np.float64)
        self.name = name

    @classmethod
    def from_distances(
        cls,
        distances: Any,
        probes: Any,
        gallery: Any,
        *,
        max_rank: int | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Display:
        """Draw the curve of distances (probes, gallery) between identities."""
        return cls(cmc_curve(distances, probes, gallery, max_rank=max_rank), name=name).plot(ax)

    def _draw(self, ax: Axes) -> None:
        label = f"{self.name + ': ' if self.name else ''}rank-1 {self.curve[0]:.3f}"
        ax.plot(np.arange(1, len(self.curve) + 1), self.curve, marker=".", label=label)
        ax.set(xlabel="rank", ylabel="share of probes found", ylim=(0, 1.02))
        ax.legend(loc="lower right", frameon=False)
