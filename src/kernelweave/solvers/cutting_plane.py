"""SILP and its relatives: a master problem over all dual points seen so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import LinearConstraint, linprog, minimize

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry.base import Geometry, Polyhedral
from kernelweave.solvers.base import OuterLoop
from kernelweave.solvers.certificate import DualPoint
from kernelweave.solvers.problem import OuterState


@dataclass
class CuttingPlane(OuterLoop):
    r"""The semi-infinite program by column generation: one constraint per dual point seen.

    .. math:: \min_{\eta \in \mathcal M,\, t} t + r(\eta) \quad \text{s.t. } t \ge g_r - h_r'\eta
       \;\text{ for all dual points } r
       \;=\; \max_{\pi \in \Delta} \pi'g - \Omega^*(H'\pi)

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most inner solves.

    Notes
    -----
    [Sonnenburg06] for polyhedral sets: a linear program, solved by HiGHS. [Yan09, Table I] for the l2 ball
    and any other set: the dual of the master, over mixtures π of the dual points, solved by SLSQP; the best
    weights for the mixed energies H'π come next. Any mixture proves a lower bound, however well the
    master was solved. The iterates of the linear master jump between corners, so it needs many inner
    solves; a round set needs a few.
    Differs from the paper: it stops on the duality gap of the best weights seen. The paper's rule leaves gaps
    of up to 3 % on the simplex, where a single dual point proves little.

    Examples
    --------
    >>> from kernelweave.solvers import CuttingPlane
    >>> CuttingPlane(tol=1e-2)
    CuttingPlane(tol=0.01, max_iter=None)

    """

    default_max_iter: ClassVar[int] = 1000

    def iterate(self, state: OuterState, eta: Vector) -> str | None:
        geometry = state.problem.geometry
        seen: list[DualPoint] = []
        mixture = np.zeros(0)
        point = state.evaluate(eta)
        while not state.finished:
            seen.append(DualPoint(point.inner.coef, point.inner.g, point.h_upper))
            g, H = np.array([p.g for p in seen]), np.array([p.h for p in seen])
            if isinstance(geometry, Polyhedral):
                eta, mixture = _linear_master(g, H, geometry.linear_bounds(eta.size))
            else:
                eta, mixture = _round_master(g, H, geometry, mixture)
            coef = np.tensordot(mixture, np.array([p.coef for p in seen]), axes=1)
            state.add_dual_point(DualPoint(coef, float(mixture @ g), mixture @ H, is_mixture=True))
            if state.finished:
                break
            if np.array_equal(eta, point.eta) and point.inner.relative_gap <= 0.1 * state.tol:
                return "stalled"  # nothing new would be learnt
            point = state.evaluate(eta)
        return None


def _linear_master(g: Vector, H: Matrix, bounds: list[tuple[float, float]]) -> tuple[Vector, Vector]:
    """Solve the master; return its weights and the mixture of dual points that proves its value."""
    # Cuts from corners may be orders of magnitude larger than those near the optimum: each has its own unit.
    units = np.maximum(np.maximum(np.abs(g), np.abs(H).max(axis=1)), np.finfo(float).tiny)
    t = units.min() / units
    n_kernels = H.shape[1]
    solution = linprog(
        c=np.append(np.zeros(n_kernels), 1.0),
        A_ub=np.column_stack([-H / units[:, None], -t]),
        b_ub=-g / units,
        A_eq=np.append(np.ones(n_kernels), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[*bounds, (None, None)],
        method="highs",
        # HiGHS stops at 1e-7 by itself, which is not enough for gaps of 1e-6.
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.x is None:
        raise RuntimeError(f"The master problem of the cutting plane was not solved: {solution.message}")
    mixture = np.maximum(-solution.ineqlin.marginals, 0.0) * t
    eta = np.clip(solution.x[:n_kernels], *np.array(bounds).T)
    return eta / eta.sum(), mixture / mixture.sum()


def _round_master(g: Vector, H: Matrix, geometry: Geometry, before: Vector) -> tuple[Vector, Vector]:
    """Solve the master's dual from the mixture before; return the best weights for it, and the mixture."""
    scale = max(float(np.abs(g).max()), float(np.abs(H).max()), np.finfo(float).tiny)

    def bound(mixture: Vector) -> tuple[float, Vector]:
        energies = mixture @ H
        slope = H @ geometry.maximizer(energies) - g
        return (geometry.conjugate(energies) - float(mixture @ g)) / scale, slope / scale

    start = np.full(g.size, 1.0 / g.size) if before.size == 0 else 0.5 * np.append(before, 1.0)
    solution = minimize(
        bound,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * g.size,
        constraints=LinearConstraint(np.ones((1, g.size)), 1.0, 1.0),
        options={"ftol": 1e-14, "maxiter": 300},
    )
    mixture = np.maximum(solution.x, 0.0)
    mixture = mixture / mixture.sum()
    return geometry.maximizer(mixture @ H), mixture
