"""Learnt metrics: how well distances order pairs, where the distances lie, and which rank a probe gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.metrics import precision_recall_curve, roc_curve

from kernelweave._typing import AnyArray, Vector
from kernelweave.evaluation.pairs import check_distances, pair_average_precision, pair_roc_auc
from kernelweave.evaluation.ranking import cmc_curve
from kernelweave.plots._base import COLOURS, Display, _pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIMILAR: dict[str, Any] = {"marker": "*", "color": COLOURS[1], "label": "similar"}
DISSIMILAR: dict[str, Any] = {
    **{"marker": "o", "color": COLOURS[0], "label": "dissimilar"},
    "facecolors": "none",
}


class PairScoresDisplay:
    """Precision–recall and ROC curve of finding similar pairs by distance, as in [Xu14, Sec. 5.5.2].

    Examples
    --------
    >>> from kernelweave.plots import PairScoresDisplay
    >>> display = PairScoresDisplay([1, -1, 1, -1], [0.1, 0.2, 0.3, 0.4], name="ITML")
    >>> round(display.average_precision, 3), display.roc_auc
    (0.833, 0.75)

    """

    def __init__(self, y: Any, distances: Any, *, name: str | None = None) -> None:
        y, distances = check_distances(y, distances)
        self.precision, self.recall, _ = precision_recall_curve(y, -distances, pos_label=1)
        self.fpr, self.tpr, _ = roc_curve(y, -distances, pos_label=1)
        self.average_precision = pair_average_precision(y, distances)
        self.roc_auc = pair_roc_auc(y, distances)
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, pairs: Any, y: Any, *, name: str | None = None, ax: Any = None
    ) -> Self:
        """Draw the curves of a fitted metric on these pairs."""
        name = type(estimator).__name__ if name is None else name
        return cls(y, estimator.pair_distance(pairs), name=name).plot(ax)

    @classmethod
    def from_distances(cls, y: Any, distances: Any, *, name: str | None = None, ax: Any = None) -> Self:
        """Draw the curves of given distances."""
        return cls(y, distances, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on two axes: precision over recall, true over false positive rate."""
        if ax is None:
            ax = _pyplot().subplots(1, 2, figsize=(9.0, 4.0), layout="constrained")[1]
        if np.size(ax) != 2:
            raise ValueError(
                f"The two curves need two axes, as plt.subplots(1, 2)[1] makes them; got {type(ax).__name__}."
            )
        left, right = np.ravel(ax)
        prefix = f"{self.name}: " if self.name else ""
        left.step(self.recall, self.precision, where="post", label=f"{prefix}AP {self.average_precision:.3f}")
        left.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
        right.plot(self.fpr, self.tpr, label=f"{prefix}AUC {self.roc_auc:.3f}")
        right.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.02))
        for axes in (left, right):
            axes.legend(loc="lower right" if axes is right else "lower left", frameon=False)
        self.ax_, self.figure_ = (left, right), left.figure
        return self


class PairDistancesDisplay(Display):
    """Squared distances of similar and dissimilar pairs with the two bounds, as in [Xu14, Fig. 5.4].

    Examples
    --------
    >>> from kernelweave.plots import PairDistancesDisplay
    >>> PairDistancesDisplay([1, -1], [0.5, 2.0], bounds=(1.0, 3.0)).squared
    array([0.25, 4.  ])

    """

    def __init__(self, y: Any, distances: Any, *, bounds: Any = None, name: str | None = None) -> None:
        self.y, distances = check_distances(y, distances)
        self.squared: Vector = distances**2
        self.bounds, self.name = bounds, name

    @classmethod
    def from_estimator(
        cls, estimator: Any, pairs: Any, y: Any, *, name: str | None = None, ax: Any = None
    ) -> Display:
        """Draw the distances of a fitted metric with the bounds it was learnt with."""
        name = type(estimator).__name__ if name is None else name
        bounds = getattr(estimator, "bounds_", None)
        return cls(y, estimator.pair_distance(pairs), bounds=bounds, name=name).plot(ax)

    def _draw(self, ax: Axes) -> None:
        start = 0
        for sign, style in ((1, SIMILAR), (-1, DISSIMILAR)):  # similar pairs first
            heights: AnyArray = self.squared[self.y == sign]
            ax.scatter(np.arange(start, start + len(heights)), heights, s=18, linewidths=0.8, **style)
            start += len(heights)
        for value, label in zip(() if self.bounds is None else self.bounds, ("u", "l"), strict=False):
            ax.axhline(value, linestyle="--", color="0.3", linewidth=0.8)
            ax.annotate(label, (1.0, value), xycoords=("axes fraction", "data"), va="bottom", ha="right")
        if (self.squared > 0.0).all():
            ax.set_yscale("log")
        ax.set(xlabel="pair", ylabel="squared distance", title=self.name or "")
        ax.legend(frameon=False)


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
