"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelweave._typing import AnyArray, Vector
from kernelweave.learners.machine import Machine
from kernelweave.solvers.bounds import DualPoint
from kernelweave.solvers.certificate import Certificate


@dataclass(frozen=True)
class Record:
    """The state after one machine was solved: bounds so far, seconds since the start, weights in use.

    The bounds are those of the kernels as stored: with float32 they may differ from the originals' in the
    last digits. The certificate of a fitted estimator, and its last record, speak of the kernels as given.
    ``solved`` is False for a machine that was known from a similar problem.
    """

    certificate: Certificate
    seconds: float
    n_active: int
    solved: bool = True


@dataclass(frozen=True)
class Point:
    """The machine at given weights, its energies h, and the objective ``upper`` it proves attainable.

    Both allow for rounding in storage: ``upper`` contains the ``slack`` that pays for it, and ``ceiling``
    is h plus what rounding may have taken from it, from which dual bounds are drawn.
    """

    eta: Vector
    machine: Machine = field(repr=False)
    h: Vector
    images: AnyArray | None = field(repr=False)
    upper: float
    slack: float
    ceiling: Vector


@dataclass(frozen=True, eq=False)
class Visited:
    """A point for which no machine need be solved again, whatever the geometry."""

    point: Point


@dataclass(frozen=True)
class Result:
    """Weights, machine and the certificate that holds for them.

    ``proof`` is the dual point whose value is the certificate's lower bound: a mixture of those of all
    machines solved, each of which has a record in ``history``. ``visited`` is what the solver knows of the
    weights it ends at.
    """

    eta: Vector
    machine: Machine
    certificate: Certificate
    proof: DualPoint = field(repr=False)
    history: tuple[Record, ...] = field(repr=False)
    stopped: str
    visited: Visited | None = field(default=None, repr=False)

    @property
    def n_iter(self) -> int:
        """How many machines were solved."""
        return sum(record.solved for record in self.history)
