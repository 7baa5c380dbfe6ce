"""Alternate between the machine and the closed form of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Vector
from kernelweave.geometry.protocol import Reweights
from kernelweave.solvers.base import Solver
from kernelweave.solvers.problem import Walk

# Share of the geometry's own start in a start that has zeros.
STIR = 0.1


@dataclass
class BlockDescent(Solver):
    r"""Block coordinate descent: machine at fixed weights, then weights at fixed block norms.

    .. math:: \eta \leftarrow \arg\min_{\eta \in \mathcal M} \sum_m \tfrac{\|f_m\|^2}{2\eta_m} + r(\eta),
       \qquad \|f_m\| = \eta_m \sqrt{2 h_m}

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most machines to solve.
    relaxation : float, default=0.0
        How far to go beyond the closed form, 0 to 1: 0.5 saves about one machine in six. A step that raised
        the objective is followed by one without.

    Notes
    -----
    [Xu13, Algorithm 1], and the analytical update of [Kloft11] for the lp ball. Without relaxation the
    objective never rises.
    Fast for p ≥ 2, slow towards the simplex, where weights reach zero only in the limit.
    Differs from the paper: it stops on the duality gap, and early machines are solved loosely.

    Examples
    --------
    >>> from kernelweave.solvers import BlockDescent
    >>> BlockDescent(tol=1e-3)
    BlockDescent(tol=0.001, max_iter=None, relaxation=0.0)

    """

    needs: ClassVar[type] = Reweights

    relaxation: float = 0.0

    def walk(self, walk: Walk, eta: Vector) -> str | None:
        geometry = walk.problem.geometry
        assert isinstance(geometry, Reweights)
        if not eta.all():  # the closed form leaves zeros where they are
            eta = (1.0 - STIR) * eta + STIR * geometry.start(len(eta))
        before = np.inf
        while True:
            point = walk.visit(eta)
            if walk.finished:
                return None
            norms = block_norms(eta, point.h)
            closed = geometry.reweight(norms)
            if self.relaxation > 0.0 and point.upper <= before:
                # The same direction once more, through the norms: whatever they are, reweighting is feasible.
                growth = np.divide(closed, eta, out=np.ones_like(eta), where=eta > 0.0)
                closed = geometry.reweight(norms * growth**self.relaxation)
            eta, before = closed, point.upper


def block_norms(eta: Vector, h: Vector) -> Vector:
    """Return ||f_m|| = eta_m (v'K_m v)^½ from the energies h_m = ½ v'K_m v."""
    return eta * np.sqrt(2.0 * np.maximum(h, 0.0))
