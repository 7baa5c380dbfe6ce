"""Two-sided bounds of the optimum: what every convex fit ends with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Certificate:
    """lower ≤ optimum ≤ upper.

    Examples
    --------
    >>> from kernelweave.solvers import Certificate
    >>> certificate = Certificate(upper=10.0, lower=9.0)
    >>> certificate.gap, certificate.relative_gap
    (1.0, 0.1)

    """

    upper: float
    lower: float

    @classmethod
    def total(cls, certificates: Sequence[Certificate]) -> Self:
        """Return the bounds of a sum of problems that share nothing."""
        return cls(sum(c.upper for c in certificates), sum(c.lower for c in certificates))

    @property
    def gap(self) -> float:
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective, never of max(1, objective): small objectives count too.

        Bounds that are no numbers prove nothing: their gap is infinite.
        """
        if np.isnan(self.gap):
            return float("inf")
        scale = max(abs(self.upper), abs(self.lower))
        return self.gap / scale if scale > 0.0 and np.isfinite(scale) else float(self.gap > 0.0)
