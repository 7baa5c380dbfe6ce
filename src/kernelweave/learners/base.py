"""What learners share: what a search varies of them, and how their parameters are checked."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar

from kernelweave._part import Part
from kernelweave._typing import AnyArray, Vector

# Prices of an error or of a margin violation.
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)


class TunableLearner(Part):
    """A learner with a parameter to search; ``tunable`` is None where there is nothing to vary."""

    # What y may be: "classes" (coded by signs), "real" numbers, or "none".
    learns_from: ClassVar[tuple[str, ...]] = ("classes",)
    # From how many samples on solving without a matrix of all samples is faster (see StreamedDescent); None: never.
    streams_from: ClassVar[int | None] = None
    # How many float64 matrices of all samples solving holds beside the combined one.
    held_matrices: ClassVar[int] = 0
    tunable: ClassVar[str | None] = None
    tried: ClassVar[tuple[float, ...]] = ()

    def grid(self, y: AnyArray, weight: Vector) -> tuple[float, ...]:  # noqa: ARG002 - some depend on them
        """Return values of `tunable` worth trying, from smooth solutions to those that fit closely.

        ``y`` has one column per target; the values are legal for each.
        """
        return self.tried


def positive(name: str, value: Any) -> float:
    """Return the value, or say that it must be a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")
    return float(value)
