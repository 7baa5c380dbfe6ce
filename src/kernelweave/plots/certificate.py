"""The certificate against time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kernelweave._typing import Vector
from kernelweave.plots._base import COLOURS, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class CertificateDisplay(Display):
    r"""The two bounds of the optimum against the seconds of a fit.

    Parameters
    ----------
    seconds, lower, upper : arrays of shape (steps,)
        When the bounds were known, and what they were.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.plots import CertificateDisplay
    >>> CertificateDisplay(np.array([0.1]), np.array([1.0]), np.array([2.0])).upper
    array([2.])

    """

    seconds: Vector
    lower: Vector
    upper: Vector

    @classmethod
    def from_estimator(cls, estimator: Any, *, problem: int = 0, ax: Any = None) -> Self:
        """Draw the history of a fitted model; ``problem`` is the position of the class, if several."""
        history = getattr(estimator, "history_", None)
        if not history:
            raise ValueError(
                f"CertificateDisplay draws a fitted model with a history_; got {type(estimator).__name__}: "
                "call fit first, and pass the last step of a pipeline."
            )
        records = history[problem] if isinstance(history[0], list) else history
        columns = [(r.seconds, r.certificate.lower, r.certificate.upper) for r in records]
        return cls(*np.array(columns, dtype=np.float64).T).plot(ax)

    def _draw(self, ax: Axes) -> None:
        best = np.maximum.accumulate(self.lower), np.minimum.accumulate(self.upper)
        ax.fill_between(self.seconds, *best, color=COLOURS[0], alpha=0.15, step="post")
        for values, name, colour in (
            (best[1], "upper bound", COLOURS[1]),
            (best[0], "lower bound", COLOURS[0]),
        ):
            ax.step(self.seconds, values, where="post", color=colour, marker=".", label=name)
        ax.set(xlabel="seconds", ylabel="objective")
        ax.legend(frameon=False)
