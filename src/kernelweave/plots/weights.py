"""Kernel weights: of one model, and along a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.plots._base import COLOURS, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class WeightsDisplay(Display):
    r"""One bar per kernel.

    Parameters
    ----------
    names : sequence of str
        Names of the kernels.
    weights : array of shape (M,)
        Their weights.
    lower, upper : arrays of shape (M,) or None, default=None
        Ends of intervals.
    frequency : array of shape (M,) or None, default=None
        Share of resamples in which a kernel is selected, written beside its bar.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.plots import WeightsDisplay
    >>> WeightsDisplay(["a", "b"], np.array([0.7, 0.3])).size
    (7.0, 2.0)

    """

    names: Sequence[str]
    weights: Vector
    lower: Vector | None = field(default=None, repr=False)
    upper: Vector | None = field(default=None, repr=False)
    frequency: Vector | None = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the weights of a fitted model; with weights per class, their mean."""
        if not hasattr(estimator, "kernel_weights_"):
            raise ValueError(
                f"WeightsDisplay draws a fitted model with kernel_weights_; got {type(estimator).__name__}: "
                "call fit first, and pass the last step of a pipeline."
            )
        weights = np.atleast_2d(estimator.kernel_weights_).mean(axis=0)
        return cls(list(estimator.kernel_names_), weights).plot(ax)

    @classmethod
    def from_stability(cls, stability: Any, *, ax: Any = None) -> Self:
        """Draw what `kernelweave.explain.weight_stability` found; with weights per class, their mean."""
        s = stability.over_classes()
        return cls(list(s.names), s.weights, s.lower, s.upper, s.frequency).plot(ax)

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, max(2.0, 0.28 * len(self.names) + 0.8)

    def _draw(self, ax: Axes) -> None:
        rows = np.arange(len(self.names))
        ax.barh(rows, self.weights, color=COLOURS[0])
        if self.lower is not None and self.upper is not None:
            ax.hlines(rows, self.lower, self.upper, color=COLOURS[1], lw=2.0)
        if self.frequency is not None:
            ends = self.weights if self.upper is None else np.maximum(self.weights, self.upper)
            for row, end, share in zip(rows, ends, self.frequency, strict=True):
                ax.annotate(f"{share:.0%}", (end, row), (4, 0), textcoords="offset points", va="center")
        ax.set_yticks(rows, list(self.names))
        ax.invert_yaxis()
        ax.set_xlabel("kernel weight")


@dataclass
class PathDisplay(Display):
    r"""One line per kernel: its weight against a parameter.

    Parameters
    ----------
    param : str
        The parameter.
    values : array of shape (V,)
        Its values.
    weights : array of shape (V, M)
        The weights at each.
    names : sequence of str
        Names of the kernels.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.plots import PathDisplay
    >>> PathDisplay("geometry__theta", np.array([0.5, 1.0]), np.ones((2, 1)), ["a"]).label
    'geometry theta'

    """

    param: str
    values: Vector
    weights: Matrix = field(repr=False)
    names: Sequence[str]

    @property
    def label(self) -> str:
        """The parameter as people write it."""
        return self.param.replace("__", " ")

    @classmethod
    def from_path(cls, path: Any, *, ax: Any = None) -> Self:
        """Draw what `kernelweave.path` found; with weights per class, their mean."""
        weights = path.kernel_weights.reshape(len(path.values), -1, len(path.kernel_names)).mean(axis=1)
        return cls(path.param, np.asarray(path.values, dtype=np.float64), weights, path.kernel_names).plot(ax)

    def _draw(self, ax: Axes) -> None:
        named = self.weights.shape[1] <= 12  # a legend of more kernels does not fit
        for m, name in enumerate(self.names):
            style = "-" if m < len(COLOURS) else "--"
            label = str(name) if named else None
            ax.plot(self.values, self.weights[:, m], style, color=COLOURS[m % len(COLOURS)], label=label)
        if self.values.min() > 0.0 and self.values.max() > 20.0 * self.values.min():
            ax.set_xscale("log")
        ax.set(xlabel=self.label, ylabel="kernel weight")
        if named:
            ax.legend(fontsize=8, frameon=False)
