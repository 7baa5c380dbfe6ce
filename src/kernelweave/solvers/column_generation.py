"""Many kernels, few of them in use: work on those, and let others in by their energy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Indices, Vector
from kernelweave.errors import IncompatiblePartsError, IndefiniteKernelError
from kernelweave.geometry.base import SupportsWorkingSet
from kernelweave.gram.protocol import Subsets
from kernelweave.solvers.base import Solver
from kernelweave.solvers.newton import Newton
from kernelweave.solvers.problem import Walk
from kernelweave.solvers.result import Point

# Kernels that are let in at a time.
BATCH = 50
# A working set beyond this size lets go of the kernels it does not use.
LARGE = 200
# The working set is solved to this share of the gap that is open over all kernels.
SHARE = 0.2


@dataclass
class ColumnGeneration(Solver):
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
        Most machines to solve.

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
    holds_all: ClassVar[bool] = False
    default_max_iter: ClassVar[int] = 500

    def walk(self, walk: Walk, eta: Vector) -> str | None:
        problem, geometry = walk.problem, walk.problem.geometry
        assert isinstance(geometry, SupportsWorkingSet)
        if not isinstance(problem.bank, Subsets):
            raise IncompatiblePartsError(
                f"ColumnGeneration takes kernels out of their storage one by one, which "
                f"{type(problem.bank).__name__} does not offer; use Newton()."
            )
        n_kernels = problem.bank.n_kernels
        inner = replace(problem, geometry=geometry.restricted(n_kernels))
        point = walk.visit(eta)
        h = point.h
        working = np.flatnonzero(eta) if np.count_nonzero(eta) < n_kernels else np.array([], dtype=np.intp)
        while not walk.finished:
            working = _grown(working, h, BATCH + geometry.min_active(n_kernels))
            bank = problem.bank.subset(working)
            start = point.eta[working]
            solver = Newton(tol=_tolerance(walk), max_iter=walk.left)
            try:
                result = solver.run(
                    replace(inner, bank=bank),
                    start=start if np.isfinite(inner.geometry.value(start)) else None,
                    warm=point.machine.coef,
                )
            except IndefiniteKernelError as error:  # it counts within the working set
                raise IndefiniteKernelError(int(working[error.index]), error.energy) from None
            walk.note(result)
            weights = np.zeros(n_kernels)
            weights[working] = result.eta
            before = walk.certificate.gap
            point, h = _evaluated(walk, weights, result.proof.coef)
            if walk.certificate.gap >= before and result.stopped != "converged":
                return "stalled"
            if working.size > LARGE:  # forget only then: what leaves too early comes back, and may go round
                working = working[result.eta > 0.0]
        return None


def _evaluated(walk: Walk, eta: Vector, proof: AnyArray) -> tuple[Point, Vector]:
    """Return the point over all kernels, and the energies that tell which of them should enter."""
    point = walk.visit(eta)
    if walk.finished or np.array_equal(proof, point.machine.coef):
        return point, point.h
    # At a kink the coefficients are not unique, and only their mixture closes the gap.
    return point, walk.prove(proof)


def _grown(working: Indices, h: Vector, many: int) -> Indices:
    """Return the working set with the kernels outside it that have most energy."""
    h = h.copy()
    h[working] = -np.inf
    many = min(many, int(np.count_nonzero(np.isfinite(h))))
    entering = np.argpartition(-h, many - 1)[:many] if many else np.array([], dtype=np.intp)
    return np.asarray(np.sort(np.concatenate([working, entering])))


def _tolerance(walk: Walk) -> float:
    return float(max(0.5 * walk.tol, min(SHARE * walk.certificate.relative_gap, 1e-2)))
