"""What passes between the steps of a fit, and how one problem is solved and certified."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field, is_dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.protocol import FittedKernels
from kernelweave.geometry import Geometry
from kernelweave.gram import (
    GramStack,
    Storage,
    StoragePolicy,
    StreamedGrams,
    build_gram_stack,
    exact_gram_stack,
)
from kernelweave.learners import Learner
from kernelweave.solvers import Certificate, Problem, Progress, Result, Solver, WarmStart, certify


@dataclass(frozen=True)
class TrainingData:
    """The data as checked, before any kernel is stored: ``Y`` has one column per binary or real target.

    ``extra`` is what else a method needs of the samples to learn. With ``multilabel`` a sample may have several of
    the classes, or none. ``groups`` are for splitters of methods that hold samples out.
    """

    kernels: FittedKernels
    Y: Matrix
    weight: Vector
    classes: AnyArray | None
    extra: Any = None
    multilabel: bool = False
    groups: Any = None


@dataclass(frozen=True)
class FitTask:
    """Stored kernels and what to learn on them: one target per problem, by the problem's name."""

    data: TrainingData
    grams: GramStack
    policy: StoragePolicy
    targets: dict[str, AnyArray]
    _float64: list[GramStack | None] = field(default_factory=list, repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def kernels(self) -> FittedKernels:
        """The fitted kernels."""
        return self.data.kernels

    @property
    def needs_streamed_solver(self) -> bool:
        """Whether the solver has to do without a matrix of all samples."""
        return isinstance(self.grams, StreamedGrams) and not self.grams.may_combine

    def exact_grams(self) -> GramStack:
        """Return the kernels as they were given, computed again for every pass."""
        return exact_gram_stack(self.kernels, self.grams)

    def float64_grams(self) -> GramStack | None:
        """Return the kernels stored in float64, once for all problems that ask.

        None where the dtype was fixed by the user, or where float64 does not fit into memory. Where nothing is
        stored, nothing is then either: the solver relies on it.
        """
        if self.policy.dtype != "auto":
            return None
        if isinstance(self.grams, StreamedGrams) and self.needs_streamed_solver:
            return self.grams.in_float64()
        with self._lock:
            if not self._float64:
                try:
                    policy = replace(self.policy, dtype="float64")
                    self._float64.append(build_gram_stack(self.kernels, policy))
                except MemoryError:  # then the solution on the rounded kernels has to do
                    self._float64.append(None)
        return self._float64[0]


@dataclass(frozen=True)
class FitResult:
    """One solved problem, with its intercepts in terms of the kernels as the user knows them.

    ``details`` is what a method learnt beside weights and coefficients.
    """

    result: Result
    intercept: Vector
    storage: Storage
    problem: Problem | None = field(default=None, repr=False)
    details: Any = field(default=None, repr=False)

    @property
    def warm_start(self) -> WarmStart:
        """The solution, as a start for a similar problem."""
        result = self.result
        return WarmStart(result.eta, result.inner.coef, result.evaluation, self.problem)


def solve_and_certify(
    task: FitTask, problem: Problem, solver: Solver, start: WarmStart | None, progress: Progress | None
) -> tuple[Result, GramStack]:
    """Solve on the stored kernels; if storing rounded them, certify the result for the kernels themselves.

    Where rounding keeps the gap open, the solver goes on in float64 from where it stands. Returns the result
    and the kernels it belongs to.
    """
    tol = solver.gap_tol
    grams, start = task.grams, None if start is None else _feasible(start, problem.geometry)
    if not grams.is_rounded:
        return solver.run(problem, start, progress), grams
    # Rounding takes up to about 1e-5 of the objective: go this much further than asked.
    rough = replace(solver, tol=max(tol - 2e-5, 0.5 * tol))
    result = certify(problem, rough.run(problem, start, progress), task.exact_grams, tol)
    left = None if solver.max_iter is None else solver.max_iter - result.n_iter
    done = left == 0 or result.stopped in ("converged", "interrupted")
    float64_grams = None if done else task.float64_grams()
    if float64_grams is None:
        return result, grams
    warm = WarmStart(result.eta, result.inner.coef)
    on_float64 = replace(problem, grams=float64_grams)
    try:
        later = replace(solver, max_iter=left).run(on_float64, warm, progress)
    except KeyboardInterrupt:  # before the first solve was done: there is a certified result already
        return replace(result, stopped="interrupted"), grams
    if later.certificate.relative_gap > result.certificate.relative_gap:
        return replace(result, stopped=later.stopped), grams
    return replace(result.followed_by(later), evaluation=None), float64_grams


def _feasible(start: WarmStart, geometry: Geometry) -> WarmStart:
    """Return the start with its weights moved into the set, if they lie outside."""
    if np.isfinite(geometry.value(start.eta)):
        return start
    return WarmStart(geometry.project(start.eta), start.coef)


def with_inner_tol(learner: Learner, tol: float) -> Learner:
    """Return the learner for a problem with a good start, with a tolerance if it has none of its own.

    Solvers ask for loose inner solves first, which is right far from the optimum; near it they only cost
    iterations.
    """
    loose = is_dataclass(learner) and getattr(learner, "tol", tol) is None
    return replace(learner, tol=0.1 * tol) if loose else learner  # type: ignore[type-var]


def warn_if_open(results: list[Result], tol: float) -> None:
    """Warn when a certificate did not reach the tolerance; meant to be called by ``fit``."""
    still_open = [result for result in results if result.stopped != "converged"]
    if still_open:
        worst = max(still_open, key=lambda result: result.certificate.relative_gap)
        _warn(worst.certificate, tol, stop_reason(worst.stopped, worst.n_iter))


def warn_of_gap(certificate: Certificate, tol: float, why: str) -> None:
    """Warn when a certificate is above the tolerance; meant to be called by ``fit``."""
    if certificate.relative_gap > tol:
        _warn(certificate, tol, why)


def _warn(certificate: Certificate, tol: float, why: str) -> None:
    warn_outside(
        f"Stopped at a relative duality gap of {certificate.relative_gap:.2e}, above tol={tol:.2e}: {why}.",
        ConvergenceWarning,
    )


def warn_outside(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of this package that asked for the fit."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("kernelweave."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def stop_reason(stopped: str, n_iter: int) -> str:
    """Return in words why a solver stopped above its tolerance, and what to do."""
    return {
        "max_iter": f"max_iter={n_iter} is reached; raise max_iter or tol",
        "stalled": "no further descent was found; raise tol, lower C, or scale the kernels to similar size",
        "rounding": "rounding hides the rest; raise tol, scale the kernels, or avoid dtype='float32'",
        "vanishing": "the objective is zero, because classes, or samples and origin, are not apart; raise nu",
        "interrupted": "it was interrupted; the best weights so far are kept",
    }[stopped]
