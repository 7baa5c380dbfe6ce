"""What passes between the steps of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from kernelweave._typing import AnyArray, Vector
from kernelweave.bank.gram_bank import GramBank
from kernelweave.solvers import Result


@dataclass(frozen=True)
class Task:
    """Stored kernels and what to learn on them: one target per problem, by the problem's name."""

    kernels: GramBank
    targets: dict[str, AnyArray]
    weight: Vector
    classes: AnyArray


@dataclass(frozen=True)
class Solved:
    """One solved problem, with its intercepts in terms of the kernels as the user knows them."""

    result: Result
    intercept: Vector
