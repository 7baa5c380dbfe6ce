"""Which kernels each sample uses: on, switched off though it has weight, off and without weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.plots._base import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Names and colours of the states, by their number in the picture.
STATES = ("on", "off, kernel has weight", "off, kernel has no weight", "missing")
PALETTE = ("#c0392b", "#2e6da4", "#7fb77e", "#e6e6e6")


@dataclass
class SwitchesDisplay(Display):
    r"""A picture of the switches of a `SampleAdaptiveMKLClassifier`, samples down, kernels across.

    Parameters
    ----------
    switches : bool array of shape (n, M)
        Which kernels are on.
    weights : array of shape (M,)
        Kernel weights: what is off matters only where there is weight.
    names : sequence of str
        Names of the kernels.
    available : bool array of shape (n, M) or None, default=None
        Which kernels a sample has; None is all.

    Attributes
    ----------
    states : int array of shape (n, M)
        0 on, 1 off with weight ("active"), 2 off without weight ("inactive"), 3 missing.
    ax_, figure_ : of matplotlib, after `plot`

    Notes
    -----
    [Liu14, Figure 1]. Differs from the paper: missing views are shown as such.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.plots import SwitchesDisplay
    >>> switches = np.array([[True, False, False], [False, True, True]])
    >>> SwitchesDisplay(switches, np.array([0.7, 0.3, 0.0]), ["a", "b", "c"]).states
    array([[0, 1, 2],
           [1, 0, 0]])

    """

    switches: AnyArray = field(repr=False)
    weights: Vector
    names: Sequence[str]
    available: AnyArray | None = field(default=None, repr=False)

    @property
    def states(self) -> AnyArray:
        off = np.where(np.asarray(self.weights) > 0.0, 1, 2)
        states = np.where(self.switches, 0, off)
        return states if self.available is None else np.where(self.available, states, 3)

    @classmethod
    def from_estimator(cls, estimator: Any, *, label: Any = None, order: bool = True, ax: Any = None) -> Self:
        """Draw the switches of the training samples of a fitted model.

        Parameters
        ----------
        estimator : SampleAdaptiveMKLClassifier
            A fitted one.
        label : class label or None, default=None
            Whose switches, and whose weights, to draw beyond two classes; None is the first class.
        order : bool, default=True
            Bring samples with the same switches together.
        ax : matplotlib axes or None, default=None
            Where to draw; None makes a figure.
        """
        if not hasattr(estimator, "switches_"):
            raise ValueError(
                "SwitchesDisplay draws a fitted SampleAdaptiveMKLClassifier; got "
                f"{type(estimator).__name__} without switches_: call fit first."
            )
        switches, weights = estimator.switches_, estimator.kernel_weights_
        available = getattr(estimator.bank_, "available", None)
        problem = 0 if label is None else _class_index(estimator.classes_, label)
        switches = switches[problem] if switches.ndim == 3 else switches  # classes may share theirs
        weights = weights[problem] if weights.ndim == 2 else weights
        if order:
            rows = np.lexsort(switches.T[::-1])
            switches = switches[rows]
            available = None if available is None else available[rows]
        return cls(switches, weights, estimator.kernel_names_, available).plot(ax)

    @property
    def size(self) -> tuple[float, float]:
        return max(4.0, 0.25 * self.states.shape[1] + 2.0), 5.0

    def _draw(self, ax: Axes) -> None:
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        states = self.states
        limits: dict[str, Any] = {"vmin": -0.5, "vmax": len(PALETTE) - 0.5}
        ax.imshow(states, aspect="auto", interpolation="nearest", cmap=ListedColormap(PALETTE), **limits)
        if states.shape[1] <= 40:  # names of more kernels do not fit beside each other
            ax.set_xticks(range(states.shape[1]), list(self.names), rotation=90)
        ax.set_xlabel("kernel")
        ax.set_ylabel("training sample")
        shown = [k for k in range(len(STATES)) if (states == k).any()]
        handles = [Patch(color=PALETTE[k], label=f"{STATES[k]} ({(states == k).mean():.0%})") for k in shown]
        ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)


def _class_index(classes: AnyArray, label: Any) -> int:
    found = np.flatnonzero(classes == label)
    if found.size == 0:
        raise ValueError(f"label must be one of the classes {classes.tolist()}; got {label!r}.")
    return int(found[0])
