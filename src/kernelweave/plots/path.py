"""Kernel weights along a parameter."""

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
