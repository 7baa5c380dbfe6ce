"""What every solver of the p-norm problem offers."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from kernelweave._part import Part
from kernelweave.multiclass.checkpoint import Checkpoint
from kernelweave.multiclass.problem import PNormProblem
from kernelweave.multiclass.result import PNormResult
from kernelweave.solvers.problem import Progress


class PNormSolver(Part, ABC):
    """A solver of the multiclass p-norm problem [Orabona10, Eq. (9)]."""

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError when a parameter is out of range."""

    def require_counts(self, **least: int) -> None:
        """Raise ValueError unless these parameters are whole numbers of at least so much."""
        for name, fewest in least.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < fewest:
                raise ValueError(
                    f"{type(self).__name__} needs {name} to be a whole number of at least {fewest}; "
                    f"got {name}={value!r}."
                )

    @abstractmethod
    def solve(
        self,
        problem: PNormProblem,
        rng: np.random.Generator,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> PNormResult:
        """Return coefficients with two bounds of the optimum; goes on from the checkpoint if there is one."""
