"""What a machine is for, and what a search varies of it if it is not told."""

from __future__ import annotations

from typing import ClassVar

from kernelweave._part import Part
from kernelweave._typing import AnyArray, Vector

# Prices of an error or of a margin violation.
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)


class Tuned(Part):
    """A machine with a parameter to search; ``tunable`` is None where there is nothing to vary."""

    # What y may be: "classes" (told apart by signs), "real" numbers, or "none".
    learns_from: ClassVar[tuple[str, ...]] = ("classes",)
    tunable: ClassVar[str | None] = None
    tried: ClassVar[tuple[float, ...]] = ()

    def grid(self, y: AnyArray, weight: Vector) -> tuple[float, ...]:  # noqa: ARG002 - some depend on them
        """Return values of `tunable` worth trying, from smooth machines to those that fit closely.

        ``y`` has one column per machine; the values are legal for each.
        """
        return self.tried
