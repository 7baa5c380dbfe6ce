"""Many kernels, few of them in use: work on those, and let others in by their energy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Indices, Vector
from kernelweave.errors import IndefiniteKernelError
from kernelweave.geometry.base import SupportsWorkingSet
from kernelweave.solvers.base import OuterLoop
from kernelweave.solvers.certificate import dual_point
from kernelweave.solvers.newton import Newton
from kernelweave.solvers.problem import Evaluation, OuterState, Problem, WarmStart


@dataclass
class ColumnGeneration(OuterLoop):
    r"""Newton's method on a working set of kernels that grows by those with the largest energies.

    .. math:: h_m(\alpha) = \tfrac12 v'K_m v > \max_{k \in W} h_k(\alpha)
       \;\Rightarrow\; \text{kernel } m \text{ would lower the objective}

    One pass over all kernels per round bounds the optimum over all of them, so the certificate is that of the
    whole problem, and names the kernels to let in. Kernels outside the working set are never held.

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most inner solves.

    Notes
    -----
    The idea of [Sonnenburg06] turned round: there constraints are generated, here the kernels themselves.
    For geometries that leave most kernels at zero: Simplex, BoxSimplex with a cap well above 1/M,
    RidgeSimplex, PowerSimplex.
    Differs from the paper: see above.

    Examples
    --------
    >>> from kernelweave.solvers import ColumnGeneration
    >>> ColumnGeneration(tol=1e-3)
    ColumnGeneration(tol=0.001, max_iter=None)

    """

    needs: ClassVar[type] = SupportsWorkingSet
    holds_all_kernels: ClassVar[bool] = False
    # Kernels that enter at a time, and the size beyond which a working set drops those it does not use.
    batch: ClassVar[int] = 50
    large: ClassVar[int] = 200

    def iterate(self, state: OuterState, eta: Vector) -> str | None:
        problem, geometry = state.problem, state.problem.geometry
        assert isinstance(geometry, SupportsWorkingSet)
        n_kernels = problem.grams.n_kernels
        inner = replace(problem, geometry=geometry.restricted(n_kernels))
        point = state.evaluate(eta)
        h = point.h
        working = np.flatnonzero(eta) if np.count_nonzero(eta) < n_kernels else np.array([], dtype=np.intp)
        while not state.finished:
            working = _grown(working, h, self.batch + geometry.min_active(n_kernels))
            bank = problem.grams.subset(working)
            solver = Newton(tol=_tolerance(state), max_iter=max(1, state.max_iter - state.n_solved))
            try:
                result = solver.run(replace(inner, grams=bank), _start(inner, point, working))
            except IndefiniteKernelError as error:  # it counts within the working set
                raise IndefiniteKernelError(int(working[error.index]), error.energy) from None
            state.add_history(result)
            weights = np.zeros(n_kernels)
            weights[working] = result.eta
            before = state.certificate.gap
            point, h = _evaluated(state, weights, result.proof.coef)
            if state.certificate.gap >= before and result.stopped != "converged":
                return "stalled"
            if (
                working.size > self.large
            ):  # forget only then: what leaves too early comes back, and may go round
                working = working[result.eta > 0.0]
        return None


def _evaluated(state: OuterState, eta: Vector, proof: AnyArray) -> tuple[Evaluation, Vector]:
    """Return the point over all kernels, and the energies that decide which of them should enter."""
    point = state.evaluate(eta)
    if state.finished or np.array_equal(proof, point.inner.coef):
        return point, point.h
    # At a kink the coefficients are not unique, and only their mixture closes the gap.
    mixed = dual_point(state.problem, state.problem.grams, proof)
    state.add_dual_point(mixed)
    return point, mixed.h


def _grown(working: Indices, h: Vector, many: int) -> Indices:
    """Return the working set with the kernels outside it that have most energy."""
    h = h.copy()
    h[working] = -np.inf
    many = min(many, int(np.count_nonzero(np.isfinite(h))))
    entering = np.argpartition(-h, many - 1)[:many] if many else np.array([], dtype=np.intp)
    return np.asarray(np.sort(np.concatenate([working, entering])))


def _start(inner: Problem, point: Evaluation, working: Indices) -> WarmStart:
    """Return the weights of the working set if they are feasible by themselves, else the geometry's start."""
    eta = point.eta[working]
    if not np.isfinite(inner.geometry.value(eta)):
        eta = inner.geometry.start(working.size)
    return WarmStart(eta, point.inner.coef)


def _tolerance(state: OuterState) -> float:
    """Return the gap to solve the working set to: a fifth of the one that is open over all kernels."""
    return float(max(0.5 * state.tol, min(0.2 * state.certificate.relative_gap, 1e-2)))
