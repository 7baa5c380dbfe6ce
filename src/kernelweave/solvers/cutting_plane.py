"""SILP: a linear master problem over all dual points seen so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import linprog

from kernelweave._typing import Vector
from kernelweave.geometry.protocol import Polyhedral
from kernelweave.solvers.base import Solver
from kernelweave.solvers.bounds import DualPoint
from kernelweave.solvers.problem import Walk


@dataclass
class CuttingPlane(Solver):
    r"""Column generation for polyhedral weight sets (SILP).

    .. math:: \min_{\eta \in \mathcal M,\, t} t \quad \text{s.t. } t \ge g_r - h_r'\eta \;\text{ for all dual
       points } r

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most machines to solve.

    Notes
    -----
    [Sonnenburg06]; the master is a linear program solved by HiGHS, and its value is a lower bound. Its
    iterates jump between corners, so it needs many machines: it is here for comparison.
    Differs from the paper: it stops on the duality gap of the best weights seen.

    Examples
    --------
    >>> from kernelweave.solvers import CuttingPlane
    >>> CuttingPlane(tol=1e-2)
    CuttingPlane(tol=0.01, max_iter=None)

    """

    needs: ClassVar[type] = Polyhedral
    default_max_iter: ClassVar[int] = 1000

    def walk(self, walk: Walk, eta: Vector) -> str | None:
        geometry = walk.problem.geometry
        assert isinstance(geometry, Polyhedral)
        bounds = geometry.linear_bounds(eta.size)
        seen: list[DualPoint] = []
        point = walk.visit(eta)
        while not walk.finished:
            seen.append(DualPoint(point.machine.coef, point.machine.linear, point.ceiling))
            g, H = np.array([p.g for p in seen]), np.array([p.h for p in seen])
            eta, mixture = _master(g, H, bounds)
            coef = np.tensordot(mixture, np.array([p.coef for p in seen]), axes=1)
            walk.bound(DualPoint(coef, float(mixture @ g), mixture @ H))
            if walk.finished:
                break
            point = walk.visit(eta)
        return None


def _master(g: Vector, H: Vector, bounds: list[tuple[float, float]]) -> tuple[Vector, Vector]:
    """Solve the master; return its weights and the mixture of dual points that proves its value."""
    scale = max(float(np.abs(g).max()), float(np.abs(H).max()), np.finfo(float).tiny)
    n_cuts, n_kernels = H.shape
    solution = linprog(
        c=np.append(np.zeros(n_kernels), 1.0),
        A_ub=np.column_stack([-H / scale, -np.ones(n_cuts)]),
        b_ub=-g / scale,
        A_eq=np.append(np.ones(n_kernels), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[*bounds, (None, None)],
        method="highs",
    )
    if solution.x is None:
        raise RuntimeError(f"The master problem of the cutting plane was not solved: {solution.message}")
    mixture = np.maximum(-solution.ineqlin.marginals, 0.0)
    eta = np.clip(solution.x[:n_kernels], *np.array(bounds).T)
    return eta / eta.sum(), mixture / mixture.sum()
