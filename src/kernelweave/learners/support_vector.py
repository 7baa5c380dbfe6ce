"""What the support vector learners share: from a dual program to a solution with two bounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import IncompatiblePartsError
from kernelweave.learners.base import Learner, positive
from kernelweave.learners.one_vs_rest import OneVsRest
from kernelweave.learners.program import DualProgram
from kernelweave.learners.solution import InnerSolution


@dataclass(frozen=True)
class Loss:
    """The loss at given decision values with the best intercept, and how fast it can grow."""

    value: float
    intercept: float
    margin: float
    gradient_bound: float
    curvature_bound: float
    scale: float = 1.0


class SupportVectorLearner(Learner, ABC):
    """A learner whose dual is a box-constrained quadratic program with sums held.

    ``tol`` is the relative gap of every inner solve; None lets the outer solver ask for what it needs.
    """

    has_bias = True
    streams_from = 2_001
    # The power of a margin violation that is paid for; None where the margin itself is learnt.
    degree: ClassVar[int | None] = None
    # Whether what a sample pays depends on its own target and decision value alone, beside the intercept.
    is_elementwise: ClassVar[bool] = False
    tol: float | None

    def check(self, y: AnyArray, weight: Vector) -> None:
        self.program(np.asarray(y, dtype=float), weight)

    def for_columns(self) -> Learner:
        return OneVsRest(self)

    @abstractmethod
    def program(self, y: Vector, weight: Vector) -> DualProgram:
        """Return the dual program of these labels and sample weights."""

    @abstractmethod
    def loss(self, f: Vector, y: Vector, weight: Vector) -> Loss:
        """Return the loss at decision values f with the best intercept (and margin)."""

    def programs(self, y: Vector, weight: Vector) -> list[DualProgram]:
        return [self.program(y, weight)]

    def elementwise(self, y: Vector, weight: Vector) -> DualProgram:
        """Return the dual of the samples' losses, for learners in which each knows its own price."""
        if not self.is_elementwise:
            raise IncompatiblePartsError(
                f"{self!r} cannot learn on features: what a sample pays depends on all others. Learners that can: "
                "Hinge, SquaredHinge, EpsilonInsensitive, Square."
            )
        return self.program(y, weight)

    def unit(self, K: AnyArray, y: Vector) -> float:  # noqa: ARG002 - margins are of size one
        """Return the size of decision values that counts as one unit of violation."""
        return 1.0

    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,
        tol: float = 1e-3,
    ) -> InnerSolution:
        y = np.ascontiguousarray(y, dtype=np.float64)
        weight = np.ones(y.size) if weight is None else weight
        program = self.program(y, weight)
        v = program.feasible(warm)
        tol = tol if self.tol is None else positive("tol", self.tol)
        smo_tol = tol * self.unit(K, y)  # the violation of optimality that SMO may leave
        f: Vector | None = None
        for _ in range(15):  # SMO bounds violations of optimality; what counts here is the gap
            v, f, violation = program.descend(K, v, smo_tol, f)
            inner = _solution(program, self.loss(f, y, weight), v, f)
            if inner.relative_gap <= tol or violation > smo_tol:  # or SMO has no more digits to give
                break
            objective = max(abs(inner.primal), abs(inner.dual))
            if inner.is_zero(objective, np.diagonal(K), lambda a: float(0.5 * a @ (K @ a.astype(K.dtype)))):
                break
            # The gap shrinks about in proportion to what SMO leaves.
            smo_tol *= float(np.clip(0.4 * tol / inner.relative_gap, 0.1, 0.4))
        return inner

    def measure(
        self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
    ) -> InnerSolution:
        y = np.ascontiguousarray(y, dtype=np.float64)
        weight = np.ones(y.size) if weight is None else weight
        return _solution(self.program(y, weight), self.loss(f, y, weight), coef, f)


def _solution(program: DualProgram, loss: Loss, v: Vector, f: Vector) -> InnerSolution:
    return InnerSolution(
        coef=v,
        intercept=np.asarray(loss.intercept),
        margin=np.asarray(loss.margin),
        g=program.gain(v),
        quadratic=float(v @ f),
        loss=loss.value,
        gradient_bound=loss.gradient_bound,
        curvature_bound=loss.curvature_bound,
        programs=((program, v),),
        scale=loss.scale,
    )
