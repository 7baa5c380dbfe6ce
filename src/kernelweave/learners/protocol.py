"""What solvers ask of a learner."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from kernelweave._typing import AnyArray, Vector
from kernelweave.learners.solution import InnerSolution


@runtime_checkable
class Learner(Protocol):
    """Solve one kernel, warm-started, and return two bounds."""

    @property
    def has_bias(self) -> bool:
        """Whether the coefficients sum to zero, so that centring the kernels changes nothing."""
        ...

    def check(self, y: AnyArray, weight: Vector) -> None:
        """Raise ValueError when the parameters do not fit the labels and weights."""
        ...

    def measure(
        self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
    ) -> InnerSolution:
        """Return the solution with these coefficients, whose decision values K v are f."""
        ...

    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,
        tol: float = 1e-3,
    ) -> InnerSolution:
        """Solve for the Gram K from the coefficients ``warm`` until the relative gap is at most tol."""
        ...
