"""From stored kernels and signs to a solved problem: precision, threads, warnings."""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernelweave._threads import blas_threads
from kernelweave.bank.gram_bank import GramBank
from kernelweave.bank.protocol import FittedKernels
from kernelweave.errors import IndefiniteKernelError
from kernelweave.estimators.task import Solution, Start
from kernelweave.geometry import Geometry, SupportsWorkingSet
from kernelweave.gram.memory import sample_size
from kernelweave.learners import Learner
from kernelweave.solvers import (
    BlockDescent,
    Bounds,
    Certificate,
    ColumnGeneration,
    Newton,
    Problem,
    Progress,
    Result,
    Sample,
    Solver,
    Visited,
    guess,
    verify,
    widened,
)

# Walks on rounded kernels go this much further than asked, so that the exact certificate meets the tolerance.
ROOM_FOR_ROUNDING = 2e-5
# Where rounding opens the gap by this share of the tolerance at most, the walk goes on by so many times that:
# the next machine's coefficients round a little otherwise.
LITTLE, MARGIN = 0.7, 1.2
# From this tolerance on the closed form's few cheap steps beat Newton's fewer dear ones.
LOOSE = 1e-5
# More kernels than this are not put into one quadratic model, unless so few of them must be used.
MANY_KERNELS, FEW_KERNELS = 1000, 100
# A geometry selects if it can do with one kernel in so many.
SELECTS = 10
# Share of the outer tolerance that machines solved from a good start are asked for.
SHARP = 0.1
# A machine known to this relative gap need not be solved again.
KNOWN = 1e-4


def hold(fitted: FittedKernels, **how: Any) -> GramBank:
    """Store the training kernels."""
    with blas_threads(1):
        return GramBank.hold(fitted, **how)


def with_defaults(
    solver: Solver | None, geometry: Geometry, n_kernels: int, tol: float, max_iter: int | None
) -> Solver:
    """Return the solver to use, with the estimator's tolerance and cap where it has none of its own."""
    chosen = choose(geometry, n_kernels, tol) if solver is None else solver
    return replace(
        chosen,
        tol=tol if chosen.tol is None else chosen.tol,
        max_iter=max_iter if chosen.max_iter is None else chosen.max_iter,
    )


def sharpened(learner: Learner, tol: float) -> Learner:
    """Return the learner for a problem with a good start, with a tolerance if it has none of its own.

    Solvers ask for loose machines first, which is right far from the optimum; near it they only cost rounds.
    """
    loose = is_dataclass(learner) and getattr(learner, "tol", tol) is None
    return replace(learner, tol=SHARP * tol) if loose else learner  # type: ignore[type-var]


def choose(geometry: Geometry, n_kernels: int, tol: float) -> Solver:
    """Return the solver with least work: the closed form where it settles in a few steps, else Newton.

    Beyond a thousand kernels Newton's model grows too large: there kernels enter one by one where most stay
    at zero, and the closed form has to do where they do not.
    """
    if n_kernels > MANY_KERNELS:
        if isinstance(geometry, SupportsWorkingSet) and geometry.min_active(n_kernels) <= FEW_KERNELS:
            return ColumnGeneration()
        return BlockDescent(relaxation=0.7)
    return BlockDescent(relaxation=0.7) if geometry.fast_block_update and tol >= LOOSE else Newton()


def first_guess(problem: Problem, solver: Solver, progress: Progress) -> Sample | None:
    """Return the problem on some of the samples, solved; None where too few for that to pay."""
    bank = problem.bank
    early = solver.starts_early and _selects(problem.geometry, bank.n_kernels)
    size = sample_size(bank.n_samples, bank.n_kernels, solver.asks_ahead, early)
    return guess(problem, solver, size, progress)


def _selects(geometry: Geometry, n_kernels: int) -> bool:
    """Tell whether most kernels may end without weight: a long way from the even weights."""
    return isinstance(geometry, SupportsWorkingSet) and SELECTS * geometry.min_active(n_kernels) <= n_kernels


def train(
    bank: GramBank,
    problem: Problem,
    solver: Solver,
    progress: Progress | None = None,
    near: Start | None = None,
    ahead: Sample | None = None,
) -> tuple[Result, GramBank]:
    """Solve on the stored kernels; if storing rounded them, certify the result for the kernels themselves.

    `verify` bounds what rounding did, and reads the kernels again where that leaves the gap open. If it stays
    open, the walk goes on in float64 from where it stands. Starts from ``near``, the solution of a similar
    problem, or where the problem on some of the samples, ``ahead``, ends, if given. Checks that the bank has
    deferred are settled. Returns the result and the bank its machine belongs to.
    """
    tol = solver.tol
    assert tol is not None
    begin: dict[str, Any] = _start(problem, near) if ahead is None else {"start": ahead.eta}
    if ahead is not None and solver.asks_ahead:
        begin["ahead"] = ahead
    try:
        if not bank.is_rounded:
            return _attained(_run(solver, problem, bank, begin, progress), problem), bank
        rough = replace(solver, tol=max(tol - ROOM_FOR_ROUNDING, 0.5 * tol))
        result = _run(rough, problem, bank, begin, progress)
        result, bounds = _gone_on(result, problem, rough, tol, progress)
        checked = _checked(result, problem, bank, tol, bounds)
        may_go_on = checked.stopped in ("rounding", "stalled") or (
            checked.stopped == "max_iter" and solver.max_iter is None
        )
        refined = bank.refined() if may_go_on else None
        if refined is None:
            return checked, bank
        left = None if solver.max_iter is None else max(1, solver.max_iter - result.n_iter)
        result = replace(solver, max_iter=left).run(
            replace(problem, bank=refined), start=result.eta, warm=result.machine.coef, progress=progress
        )
        result = _attained(result, replace(problem, bank=refined))
        # What is known there is of other matrices than the next problem's.
        return replace(_followed(checked, result), visited=None), refined
    except IndefiniteKernelError as error:
        raise IndefiniteKernelError(error.index, error.energy, bank.names[error.index]) from None


def _run(
    solver: Solver, problem: Problem, bank: GramBank, begin: dict[str, Any], progress: Progress | None
) -> Result:
    """Run the solver, settle what the bank has deferred, and run once more if that changed the kernels."""
    try:
        result = solver.run(problem, **begin, progress=progress)
    except (IndefiniteKernelError, np.linalg.LinAlgError):
        if not bank.settle():  # an asymmetric matrix seems to be much else, and is named here
            raise
        return solver.run(problem, progress=progress)
    if not bank.settle():
        return result
    interrupted = result.stopped == "interrupted"
    most = 1 if interrupted else solver.max_iter
    again = replace(solver, max_iter=most).run(
        problem, start=result.eta, warm=result.machine.coef, progress=progress
    )
    return replace(again, stopped="interrupted") if interrupted else again


def _gone_on(
    result: Result, problem: Problem, solver: Solver, tol: float, progress: Progress | None
) -> tuple[Result, Bounds | None]:
    """Return the result some way on where rounding has opened its gap by little, and its bounds if known.

    A machine or two on the rounded kernels cost less than to read them as they are, or to hold them so.
    """
    bounds = widened(problem, result, tol) if result.stopped == "converged" else None
    if bounds is None or bounds.certificate.relative_gap <= tol:
        return result, bounds
    opened = bounds.certificate.relative_gap - result.certificate.relative_gap
    left = None if solver.max_iter is None else solver.max_iter - result.n_iter
    if opened > LITTLE * tol or left == 0:
        return result, bounds
    on = replace(solver, tol=tol - MARGIN * opened, max_iter=left)
    try:
        further = on.run(
            problem, start=result.eta, warm=result.machine.coef, progress=progress, known=result.visited
        )
    except KeyboardInterrupt:  # there is a model already
        return replace(result, stopped="interrupted"), bounds
    return _followed(result, further), None


def _followed(result: Result, further: Result) -> Result:
    """Return a result that goes on where another has stopped, with the history of both."""
    seconds = result.history[-1].seconds
    later = tuple(replace(record, seconds=seconds + record.seconds) for record in further.history)
    return replace(further, history=result.history + later)


def _attained(result: Result, problem: Problem) -> Result:
    """Return the result with the machine whose value the upper bound is, if its coefficients are larger."""
    machine, bank = result.machine, problem.bank
    if np.all(machine.stretch == 1.0):
        return result
    total = None if result.visited is None else result.visited.total
    K = bank.combine(result.eta) if total is None else total.K
    f, coef = machine.stretch * (K @ machine.coef), machine.stretch * machine.coef
    return replace(result, machine=problem.learner.measure(f, coef, problem.y, problem.weight))


def _checked(
    result: Result, problem: Problem, bank: GramBank, tol: float, known: Bounds | None = None
) -> Result:
    """Return the result with the certificate of the kernels as they are, which is the last of its history."""
    machine, certificate = verify(problem, bank.exact, result, tol, known)
    if certificate.relative_gap <= tol:
        stopped = "converged"
    else:
        stopped = "rounding" if result.stopped == "converged" else result.stopped
    last = replace(result.history[-1], certificate=certificate)
    history = (*result.history[:-1], last)
    return replace(result, machine=machine, certificate=certificate, stopped=stopped, history=history)


def _start(problem: Problem, near: Start | None) -> dict[str, Any]:
    """Return where to start from: nearby weights, moved into the weight set if they lie outside."""
    if near is None:
        return {}
    geometry = problem.geometry
    eta = np.maximum(near.eta, 0.0)  # an extrapolated weight may have fallen below, if only by its last digit
    if np.isfinite(geometry.value(eta)):
        return {"start": eta, "warm": near.coef, "known": _known(problem, near.solution)}
    return {"start": geometry.project(eta), "warm": near.coef}


def _known(problem: Problem, solution: Solution | None) -> Visited | None:
    """Return what is known of the start if it solves the same machine, to enough digits."""
    if solution is None or solution.visited.point.machine.relative_gap > KNOWN:
        return None
    other = solution.problem
    same = other.bank is problem.bank and other.y is problem.y and other.weight is problem.weight
    return solution.visited if same and _alike(other.learner, problem.learner) else None


def _alike(one: Any, other: Any) -> bool:
    """Whether two learners ask for the same machine, be it to other tolerances."""
    if type(one) is not type(other) or not is_dataclass(one):
        return one is other
    parts = {field.name for field in fields(one)} - {"tol"}
    return all(_alike_values(getattr(one, name), getattr(other, name)) for name in parts)


def _alike_values(one: Any, other: Any) -> bool:
    return _alike(one, other) if is_dataclass(one) else bool(np.array_equal(one, other))


def warn_if_open(results: list[Result], tol: float) -> None:
    """Say so when a certificate did not reach the tolerance; meant to be called by ``fit``."""
    still_open = [result for result in results if result.stopped != "converged"]
    if not still_open:
        return
    worst = max(still_open, key=lambda result: result.certificate.relative_gap)
    warnings.warn(
        f"Stopped at a relative duality gap of {worst.certificate.relative_gap:.2e}, above tol={tol:.2e}: "
        f"{reason(worst.stopped, worst.n_iter)}.",
        ConvergenceWarning,
        stacklevel=3,
    )


def warn_of_gap(certificate: Certificate, tol: float, why: str) -> None:
    """Say so when a certificate did not reach the tolerance; meant to be called by ``fit``."""
    gap = certificate.relative_gap
    if gap > tol:
        warnings.warn(
            f"Stopped at a relative duality gap of {gap:.2e}, above tol={tol:.2e}: {why}.",
            ConvergenceWarning,
            stacklevel=3,
        )


def reason(stopped: str, n_iter: int) -> str:
    """Return in words why a walk stopped above its tolerance, and what to do."""
    return {
        "max_iter": f"max_iter={n_iter} is reached; raise max_iter or tol",
        "stalled": "no further descent was found; raise tol, lower C, or scale the kernels to similar size",
        "rounding": "rounding hides the rest; raise tol, scale the kernels, or avoid dtype='float32'",
        "interrupted": "it was interrupted; the best weights so far are kept",
    }[stopped]
