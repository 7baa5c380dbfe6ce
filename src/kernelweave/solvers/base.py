"""What every outer loop shares: its two parameters, its start, and the question whether the parts fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from kernelweave._part import Part
from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import IncompatiblePartsError
from kernelweave.geometry.base import Geometry
from kernelweave.gram.protocol import GramStack
from kernelweave.learners.protocol import Learner
from kernelweave.solvers.problem import Ahead, Problem, Progress, Walk
from kernelweave.solvers.result import Result, Visited

TOL = 1e-4


@dataclass
class Solver(Part, ABC):
    """An outer loop over the kernel weights.

    Subclasses declare in ``needs`` the protocol they call on the geometry, and walk until the certificate
    is good enough.
    """

    needs: ClassVar[type] = Geometry
    uses_images: ClassVar[bool] = False
    # False when it makes few passes over all kernels, so that they need not be held.
    holds_all: ClassVar[bool] = True
    default_max_iter: ClassVar[int] = 500
    # Whether a start is looked for among some of few samples already, on a long way; to what gap, for their
    # optimum is not that of all; whether they are asked again.
    starts_early: ClassVar[bool] = False
    rough: ClassVar[float] = 3e-2
    asks_ahead: ClassVar[bool] = False

    tol: float | None = None
    max_iter: int | None = None

    @abstractmethod
    def walk(self, walk: Walk, eta: Vector) -> str | None:
        """Move from eta until the walk is finished; return why it stopped if it gave up earlier."""

    def solve(
        self,
        bank: GramStack,
        y: AnyArray,
        learner: Learner,
        geometry: Geometry,
        *,
        weight: Vector | None = None,
        start: Vector | None = None,
        warm: AnyArray | None = None,
        progress: Progress | None = None,
    ) -> Result:
        """Solve the saddle point to the relative gap ``tol``, from the weights ``start`` if given."""
        problem = Problem(bank, y, learner, geometry, weight)
        return self.run(problem, start=start, warm=warm, progress=progress)

    def run(
        self,
        problem: Problem,
        *,
        start: Vector | None = None,
        warm: AnyArray | None = None,
        progress: Progress | None = None,
        ahead: Ahead | None = None,
        known: Visited | None = None,
    ) -> Result:
        """Solve a problem, from the weights ``start`` and the coefficients ``warm`` if given.

        ``ahead`` is a smaller problem like it, which some solvers ask where a step will lead; ``known`` is a
        point of the same problem under another geometry, whose machine is not solved again.
        """
        require(self, problem.geometry)
        walk = Walk(
            problem,
            TOL if self.tol is None else self.tol,
            self.default_max_iter if self.max_iter is None else self.max_iter,
            progress,
            self.uses_images,
            warm,
            ahead,
            known,
        )
        try:
            eta = problem.geometry.start(problem.bank.n_kernels) if start is None else start
            stopped = self.walk(walk, eta)
        except KeyboardInterrupt:
            if walk.best is None:  # nothing to hand back yet
                raise
            stopped = "interrupted"
        return walk.result(stopped)


def accepts(solver: type[Solver] | Solver, geometry: Geometry) -> bool:
    """Return whether the geometry has every verb the solver calls."""
    return issubclass(type(geometry), solver.needs)  # which Python remembers, other than isinstance


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
