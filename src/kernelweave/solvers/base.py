"""What solvers share: their parameters, what every outer loop begins with, and the question whether parts fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from kernelweave._part import Part
from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import IncompatiblePartsError
from kernelweave.geometry.base import Geometry
from kernelweave.gram.protocol import GramStack
from kernelweave.learners.base import Learner
from kernelweave.solvers.problem import OuterState, Problem, Progress, Result, WarmStart


@dataclass
class Solver(Part, ABC):
    """What finds kernel weights and the learner's solution, with a certificate.

    Subclasses declare in ``needs`` what they call on the geometry beyond `Geometry`, and run until the certificate
    is good enough.
    """

    needs: ClassVar[type] = Geometry
    # False where kernels outside a small working set are read rarely, so that they need not be held.
    holds_all_kernels: ClassVar[bool] = True
    default_max_iter: ClassVar[int] = 500

    tol: float | None = None
    max_iter: int | None = None

    @property
    def gap_tol(self) -> float:
        """The relative gap to stop at: ``tol``, or 1e-4."""
        return 1e-4 if self.tol is None else self.tol

    @abstractmethod
    def run(
        self, problem: Problem, start: WarmStart | None = None, progress: Progress | None = None
    ) -> Result:
        """Solve a problem from a warm start, or the geometry's own; Ctrl-C keeps the best so far."""

    def solve(
        self,
        bank: GramStack,
        y: AnyArray,
        learner: Learner,
        geometry: Geometry,
        *,
        weight: Vector | None = None,
        start: WarmStart | None = None,
        progress: Progress | None = None,
    ) -> Result:
        """Solve the saddle point to the relative gap ``tol``."""
        return self.run(Problem(bank, y, learner, geometry, weight), start, progress)


class OuterLoop(Solver):
    """A solver that goes from weights to weights, and solves the learner at each of them."""

    uses_curvature: ClassVar[bool] = False

    @abstractmethod
    def iterate(self, state: OuterState, eta: Vector) -> str | None:
        """Move from eta until the state is finished; return why it stopped if it gave up earlier."""

    def run(
        self, problem: Problem, start: WarmStart | None = None, progress: Progress | None = None
    ) -> Result:
        require(self, problem.geometry)
        max_iter = self.default_max_iter if self.max_iter is None else self.max_iter
        state = OuterState(problem, self.gap_tol, max_iter, progress, self.uses_curvature, start)
        eta = problem.geometry.start(problem.grams.n_kernels) if start is None else start.eta
        try:
            stopped = self.iterate(state, eta)
        except KeyboardInterrupt:
            if not state.log.records:  # nothing to return yet
                raise
            stopped = "interrupted"
        return state.result(stopped)


def accepts(solver: type[Solver] | Solver, geometry: Geometry) -> bool:
    """Return whether the geometry has every verb the solver calls."""
    return isinstance(geometry, solver.needs)


def require(solver: Solver, geometry: Geometry) -> None:
    """Raise IncompatiblePartsError, naming what is missing and what would work."""
    if accepts(solver, geometry):
        return
    from kernelweave.solvers import SOLVERS

    verbs = sorted(name for name in vars(solver.needs) if not name.startswith("_"))
    missing = next((verb for verb in verbs if not hasattr(geometry, verb)), "contains")
    others = ", ".join(s.__name__ for s in SOLVERS if accepts(s, geometry))
    name = type(geometry).__name__
    raise IncompatiblePartsError(
        f"{type(solver).__name__} cannot be used with {geometry!r}: it calls `{missing}`, which {name} does "
        f"not have. Solvers that accept it: {others}."
    )
