"""What every kernel adds to the decision of each sample."""

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
class ContributionsDisplay(Display):
    r"""One stacked bar per sample: positive parts to the right, negative to the left, a dot at their sum.

    Parameters
    ----------
    values : array of shape (n, M)
        What each kernel (or view) adds.
    intercept : float, or array of shape (n,)
        The part that none adds, drawn as one of its own.
    names : sequence of str
        Names of the kernels (or views).
    samples : sequence of str or None, default=None
        Names of the samples; None numbers them.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.plots import ContributionsDisplay
    >>> ContributionsDisplay(np.array([[1.0, -3.0]]), 0.5, ["a", "b"]).decision
    array([-1.5])

    """

    values: Matrix = field(repr=False)
    intercept: float | Vector
    names: Sequence[str]
    samples: Sequence[str] | None = None

    @property
    def decision(self) -> Vector:
        """The sums: the decision values."""
        return np.asarray(self.values.sum(axis=1) + self.intercept)

    @classmethod
    def from_contributions(cls, found: Any, *, problem: int = 0, samples: Any = None, ax: Any = None) -> Self:
        """Draw what `kernelweave.explain.contributions` found; ``problem`` is the position of the class."""
        several = found.values.ndim == 3
        values = found.values[:, problem] if several else found.values
        intercept = float(found.intercept[problem] if several else found.intercept)
        return cls(values, intercept, list(found.names), samples).plot(ax)

    @property
    def size(self) -> tuple[float, float]:
        return 7.0, max(2.4, 0.28 * len(self.values) + 1.0)

    def _draw(self, ax: Axes) -> None:
        rows = np.arange(len(self.values))
        right, left = np.zeros(len(rows)), np.zeros(len(rows))  # how far the bars reach on either side
        parts = [*self.values.T, np.broadcast_to(self.intercept, len(rows))]
        for m, (name, part) in enumerate(zip([*self.names, "intercept"], parts, strict=True)):
            colour = "#cccccc" if m == len(self.names) else COLOURS[m % len(COLOURS)]
            ax.barh(rows, part, left=np.where(part > 0.0, right, left), color=colour, label=str(name))
            right = right + np.maximum(part, 0.0)
            left = left + np.minimum(part, 0.0)
        ax.plot(self.decision, rows, "o", color="black", ms=4, label="decision")
        ax.axvline(0.0, color="black", lw=0.8)
        ax.set_yticks(rows, [str(k) for k in rows] if self.samples is None else list(self.samples))
        ax.invert_yaxis()
        ax.set(xlabel="decision value", ylabel="sample")
        ax.legend(fontsize=8, frameon=False)
