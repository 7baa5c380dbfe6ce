"""What passes between the steps of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.gram_bank import GramBank
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import Storage
from kernelweave.solvers import Problem, Result, Visited


@dataclass(frozen=True)
class Setting:
    """The data as checked, before any kernel is stored: ``columns`` has one target per machine."""

    fitted: FittedKernels
    columns: Matrix
    weight: Vector
    classes: AnyArray | None


@dataclass(frozen=True)
class Task:
    """Stored kernels and what to learn on them: one target per problem, by the problem's name."""

    kernels: GramBank
    targets: dict[str, AnyArray]
    weight: Vector
    classes: AnyArray | None


@dataclass(frozen=True)
class Start:
    """Where to start a problem from: weights, which need not be in the set, and coefficients.

    ``solution`` is the problem they solve, with all that is known there; it holds a matrix of all samples.
    """

    eta: Vector
    coef: AnyArray
    solution: Solution | None = None

    @property
    def light(self) -> Start:
        """The same without the solution."""
        return replace(self, solution=None)


def starts(solved: Sequence[Solved]) -> list[Start]:
    """Return solutions as starts for similar problems; several do without a matrix of all samples each."""
    return [one.start if len(solved) == 1 else one.start.light for one in solved]


@dataclass(frozen=True)
class Solution:
    """A problem and what is known of the weights that solve it."""

    problem: Problem
    visited: Visited


@dataclass(frozen=True)
class Solved:
    """One solved problem, with its intercepts in terms of the kernels as the user knows them."""

    result: Result
    intercept: Vector
    storage: Storage
    problem: Problem | None = field(default=None, kw_only=True)

    @property
    def start(self) -> Start:
        """The solution, as a start for a similar problem."""
        visited = self.result.visited
        solution = None
        if self.problem is not None and visited is not None:
            solution = Solution(self.problem, visited)
        return Start(self.result.eta, self.result.machine.coef, solution)
