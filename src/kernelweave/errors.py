"""Errors of our own; everything else is a ValueError or TypeError of Python's."""

from __future__ import annotations


class DataError(ValueError):
    """A data file, store or name that is not what it should be, with what would work."""


class IncompatiblePartsError(TypeError):
    """Two parts that cannot work together, with the ones that can."""


class NotOfferedError(TypeError):
    """Something a model of this kind does not have, with why not."""


class IndefiniteKernelError(ValueError):
    """A kernel gave some combination of samples a negative squared length."""

    def __init__(self, index: int, energy: float, name: str | None = None) -> None:
        self.index, self.energy, self.name = index, energy, name
        label = f"Kernel {index}" if name is None else f"Kernel {name!r} (number {index})"
        super().__init__(
            f"{label} is not positive semidefinite: a combination of samples has the squared length "
            f"{2 * energy:.3g}; clip its negative eigenvalues or use another kernel."
        )

    def __reduce__(self) -> tuple[type, tuple[int, float, str | None]]:
        return type(self), (self.index, self.energy, self.name)


class DegenerateSamplesError(ValueError):
    """Samples that a learner cannot learn from, as where a class is missing; others, or more, might do."""


class InfeasibleError(ValueError):
    """Constraints that contradict each other, shown by a combination of them."""
