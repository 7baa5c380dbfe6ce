"""From stored kernels and signs to a solved problem: precision, threads, warnings."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from kernelweave.bank.gram_bank import GramBank
from kernelweave.errors import IndefiniteKernelError
from kernelweave.geometry import Projects
from kernelweave.solvers import Newton, Problem, Progress, Result, Solver, verify


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread: its own pool fights with ours and loses small problems to locking."""
    return _pools().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


def with_defaults(solver: Solver | None, tol: float, max_iter: int | None) -> Solver:
    """Return the solver to use, with the estimator's tolerance and cap where it has none of its own."""
    chosen = Newton() if solver is None else solver
    return replace(
        chosen,
        tol=tol if chosen.tol is None else chosen.tol,
        max_iter=max_iter if chosen.max_iter is None else chosen.max_iter,
    )


def train(
    bank: GramBank,
    problem: Problem,
    solver: Solver,
    progress: Progress | None = None,
    near: Result | None = None,
) -> tuple[Result, GramBank]:
    """Solve on the stored kernels; where their rounding keeps the gap open, check and go on in float64.

    Starts from ``near``, the solution of a similar problem, if given. Returns the result and the bank its
    machine belongs to.
    """
    try:
        with single_threaded_blas():
            result = solver.run(problem, **_start(problem, near), progress=progress)
            if result.stopped != "rounding" or not bank.is_rounded:
                return result, bank
            exact = bank.exact()
            machine, certificate = verify(problem, exact, result.eta, result.machine.coef)
            closed = certificate.relative_gap <= (solver.tol or 0.0)
            refined = None if closed else bank.refined()
            if refined is None:
                stopped = "converged" if closed else "rounding"
                return replace(result, machine=machine, certificate=certificate, stopped=stopped), exact
            problem = replace(problem, bank=refined)
            return solver.run(problem, start=result.eta, warm=result.machine.coef, progress=progress), refined
    except IndefiniteKernelError as error:
        raise IndefiniteKernelError(error.index, error.energy, bank.names[error.index]) from None


def _start(problem: Problem, near: Result | None) -> dict[str, Any]:
    """Return where to start from: nearby weights, moved into the weight set if they lie outside."""
    if near is None:
        return {}
    geometry = problem.geometry
    if np.isfinite(geometry.value(near.eta)):
        return {"start": near.eta, "warm": near.machine.coef}
    inside = geometry.project(near.eta) if isinstance(geometry, Projects) else None
    return {"start": inside, "warm": near.machine.coef}


def warn_if_open(result: Result, tol: float) -> None:
    """Say so when the certificate did not reach the tolerance."""
    if result.stopped == "converged":
        return
    reason = {
        "max_iter": f"max_iter={result.n_iter} machines were solved; raise max_iter or tol",
        "stalled": "no further descent was found; raise tol, or scale the kernels to similar size",
        "rounding": "rounding hides the rest; use dtype='float64', raise tol, or scale the kernels",
        "interrupted": "it was interrupted; the best weights so far are kept",
    }[result.stopped]
    warnings.warn(
        f"Stopped at a relative duality gap of {result.certificate.relative_gap:.2e}, above tol={tol:.2e}: "
        f"{reason}.",
        ConvergenceWarning,
        stacklevel=3,
    )
