"""What a learner is: it solves the problem of one kernel, and says what it can learn from and what to vary."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar

from kernelweave._part import Part
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.learners.program import DualProgram
from kernelweave.learners.solution import InnerSolution

# Prices of an error or of a margin violation.
COSTS = (0.01, 0.1, 1.0, 10.0, 100.0)


class Learner(Part, ABC):
    """Solve one kernel, warm-started, and return two bounds.

    A subclass defines `has_bias`, `check`, `measure`, `solve` and `for_columns`; what follows them are facts that
    solvers and searches read, and that it overrides where they do not hold.
    """

    # What y may be: "classes" (coded by signs), "real" numbers, or "none".
    learns_from: ClassVar[tuple[str, ...]] = ("classes",)
    # How many float64 matrices of all samples solving holds beside the combined one.
    held_matrices: ClassVar[int] = 0
    # The parameter that a search varies, None where there is nothing to vary, and values worth trying.
    tunable: ClassVar[str | None] = None
    tried: ClassVar[tuple[float, ...]] = ()

    # ------------------------------------------------------------------------- what a subclass brings

    @property
    @abstractmethod
    def has_bias(self) -> bool:
        """Whether the coefficients sum to zero, so that centring the kernels changes nothing."""

    @abstractmethod
    def check(self, y: AnyArray, weight: Vector) -> None:
        """Raise ValueError when the parameters do not fit the labels and weights.

        DegenerateSamplesError where other samples, or more of them, might do.
        """

    @abstractmethod
    def measure(
        self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
    ) -> InnerSolution:
        """Return the solution with these coefficients, whose decision values K v are f."""

    @abstractmethod
    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,
        tol: float = 1e-3,
    ) -> InnerSolution:
        """Solve for the Gram K from the coefficients ``warm`` until the relative gap is at most tol."""

    @abstractmethod
    def for_columns(self) -> Learner:
        """Return the learner of several columns of y on the same kernel."""

    # ------------------------------------------------------------------- what it overrides where it is so

    @property
    def streams_from(self) -> int | None:
        """From how many samples on `StreamedDescent`, without a matrix of them, is faster; None: never."""
        return None

    @property
    def decreases_with_margin(self) -> bool:
        """Whether no sample pays more as its margin y f grows."""
        return False

    @property
    def reads_kernel(self) -> bool:
        """Whether a parameter is yet to be chosen by `for_kernel`."""
        return False

    def for_kernel(self, K: Matrix | None, y: AnyArray, weight: Vector) -> Learner:  # noqa: ARG002 - for those that do
        """Return the learner with the parameters it chooses by a kernel of some samples; None: without seeing one."""
        return self

    def programs(self, y: AnyArray, weight: Vector) -> list[DualProgram]:  # noqa: ARG002 - for those that have some
        """Return the dual program of every column of y; none where the dual is a linear system."""
        return []

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
