"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelweave._typing import Vector
from kernelweave.learners.machine import Machine
from kernelweave.solvers.bounds import DualPoint
from kernelweave.solvers.certificate import Certificate


@dataclass(frozen=True)
class Record:
    """The state after one machine was solved: bounds so far, seconds since the start, weights in use.

    The bounds are those of the kernels as stored: with float32 they may differ from the originals' in the
    last digits. The certificate of a fitted estimator, and its last record, speak of the kernels as given.
    """

    certificate: Certificate
    seconds: float
    n_active: int


@dataclass(frozen=True)
class Result:
    """Weights, machine and the certificate that holds for them.

    ``proof`` is the dual point whose value is the certificate's lower bound: a mixture of those of all
    machines solved, each of which has a record in ``history``.
    """

    eta: Vector
    machine: Machine
    certificate: Certificate
    proof: DualPoint = field(repr=False)
    history: tuple[Record, ...] = field(repr=False)
    stopped: str

    @property
    def n_iter(self) -> int:
        return len(self.history)
