"""What passes between the steps of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.gram_bank import GramBank
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import Storage
from kernelweave.solvers import Result


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
    """Where to start a problem from: weights, which need not be in the set, and coefficients."""

    eta: Vector
    coef: AnyArray


@dataclass(frozen=True)
class Solved:
    """One solved problem, with its intercepts in terms of the kernels as the user knows them."""

    result: Result
    intercept: Vector
    storage: Storage

    @property
    def start(self) -> Start:
        """The solution, as a start for a similar problem."""
        return Start(self.result.eta, self.result.machine.coef)
