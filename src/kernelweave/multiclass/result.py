"""What solvers of the p-norm problem hand back, and how they report on the way."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.multiclass.certificate import Evaluation
from kernelweave.multiclass.problem import PNormProblem
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.problem import Progress
from kernelweave.solvers.result import Record


@dataclass(frozen=True)
class PNormResult:
    """f_c(x) = Σ_j eta_j Σ_i coef_ic k_j(x_i, x), the norms ‖w^j‖, and the bounds that hold for it.

    ``passes`` counts the rows of all kernels that were used, in units of N.
    """

    coef: Matrix = field(repr=False)
    eta: Vector
    norms: Vector
    certificate: Certificate
    history: tuple[Record, ...] = field(repr=False)
    passes: float
    stopped: str


class Tracker:
    """The bounds so far: the best multiple of the best coefficients seen, and the best dual value."""

    def __init__(self, problem: PNormProblem, progress: Progress | None) -> None:
        self.problem, self.progress = problem, progress
        self.lower, self.upper = 0.0, float("inf")
        self.history: list[Record] = []
        self.best: tuple[Matrix, Evaluation] | None = None
        self._start = time.perf_counter()

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.upper, min(self.lower, self.upper))

    def add(self, A: Matrix, seen: Evaluation) -> None:
        """Take an evaluation into account, and report it."""
        self.lower = max(self.lower, seen.lower)
        if self.best is None or seen.upper < self.upper:
            self.upper = seen.upper
            self.best = A.copy(), seen
        seconds = time.perf_counter() - self._start
        self.history.append(Record(self.certificate, seconds, int((seen.norms > 0.0).sum())))
        if self.progress is not None:
            self.progress(self.history[-1])

    def state(self) -> dict[str, Any]:
        """Return the bounds and the coefficients they belong to, to be saved."""
        assert self.best is not None
        A, seen = self.best
        numbers = {"lower": self.lower, "upper": self.upper, "best_tau": seen.tau}
        return {"best_A": A, "best_eta": seen.eta, "best_norms": seen.norms} | numbers

    def restore(self, state: dict[str, AnyArray]) -> None:
        """Go on from saved bounds."""
        self.lower, self.upper = float(state["lower"]), float(state["upper"])
        tau, eta, norms = float(state["best_tau"]), state["best_eta"], state["best_norms"]
        self.best = state["best_A"], Evaluation(self.upper, self.lower, tau, eta, norms, np.empty(0))

    def result(self, passes: float, stopped: str) -> PNormResult:
        """Return the best of what was seen."""
        assert self.best is not None
        A, seen = self.best
        coef = seen.tau * A / self.problem.scale
        return PNormResult(coef, seen.eta, seen.norms, self.certificate, tuple(self.history), passes, stopped)
