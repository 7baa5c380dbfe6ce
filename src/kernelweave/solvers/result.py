"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelweave._typing import Vector
from kernelweave.learners.machine import Machine
from kernelweave.solvers.certificate import Certificate


@dataclass(frozen=True)
class Record:
    """The state after one machine was solved: bounds so far, seconds since the start, weights in use."""

    certificate: Certificate
    seconds: float
    n_active: int


@dataclass(frozen=True)
class Result:
    """Weights, machine and the certificate that holds for them; history has one record per machine solved."""

    eta: Vector
    machine: Machine
    certificate: Certificate
    history: tuple[Record, ...] = field(repr=False)
    stopped: str

    @property
    def n_iter(self) -> int:
        return len(self.history)
