"""Alternate between the machine and the closed form of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Vector
from kernelweave.geometry.base import Geometry
from kernelweave.solvers.base import Solver
from kernelweave.solvers.moves import mostly
from kernelweave.solvers.problem import Ahead, Walk

# Share of the geometry's own start in a start that has zeros.
STIR = 0.1
# Steps with the energies of a smaller problem, at most, and the change of the weights that is worth another.
ROUNDS, SETTLED = 3, 0.02
# It is asked as long as this share of the gap at most is left after its steps.
LED = 0.25
# Where p ≥ 2 what weights are off by counts squared in the gap. If that leaves kernels behind, it may be this
# share of the gap, unless a smaller problem leads, for then a step closes all of it; this one of the
# tolerance in any case; and no more than the last. Where a step left more than this of the gap, the next one
# is whole.
OFF, OFF_TOL, OFF_MOST = 0.02, 0.15, 2e-3
NEARER = 0.5
# A walk stands still if so many machines leave more than this share of the gap: the slowest leave 0.8.
PATIENCE, STILL = 12, 0.99
# Energies are not believed to grow or fall by more than this in a step.
CHANGE = 100.0


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
    objective never rises, unless a smaller problem leads (`Solver.run`), or kernels that hardly move are left
    at one multiple of their weights, so that few of them are read for the next sum: in the lp ball, p ≥ 2,
    from 100 samples on.
    Fast for p ≥ 2, slow towards the simplex, where weights reach zero only in the limit.
    Differs from the paper: it stops on the duality gap, and early machines are solved loosely.

    Examples
    --------
    >>> from kernelweave.solvers import BlockDescent
    >>> BlockDescent(tol=1e-3)
    BlockDescent(tol=0.001, max_iter=None, relaxation=0.0)

    """

    rough: ClassVar[float] = 4e-2
    asks_ahead: ClassVar[bool] = True

    relaxation: float = 0.0

    def walk(self, walk: Walk, eta: Vector) -> str | None:
        geometry = walk.problem.geometry
        if not eta.all():  # the closed form leaves zeros where they are
            eta = (1.0 - STIR) * eta + STIR * geometry.start(len(eta))
        quick = geometry if geometry.fast_block_update and hasattr(geometry, "scaled") else None
        before, gap = np.inf, np.inf
        while True:
            point = walk.visit(eta)
            if walk.finished:
                return None
            if _stands(walk):
                return "stalled"
            last, gap = gap, walk.certificate.relative_gap
            if gap > LED * last:  # it does not know the way
                walk.ahead = None
            relaxation = self.relaxation if point.upper <= before else 0.0
            before = point.upper
            if walk.ahead is None:
                eta = _step(geometry, eta, point.h, relaxation)
            else:
                eta = _steps_ahead(walk.ahead, geometry, eta, point.h, relaxation)
            if quick is not None and walk.follows and gap <= NEARER * last:
                eta = mostly(quick, point.eta, eta, _off(gap, walk))


def _stands(walk: Walk) -> bool:
    """Whether the last machines did not bring the bounds nearer: there are no more digits to be had."""
    gaps = [record.certificate.relative_gap for record in walk.history[-1 - PATIENCE :]]
    return len(gaps) > PATIENCE and gaps[-1] > STILL * gaps[0]


def _off(gap: float, walk: Walk) -> float:
    """Return how far a step may be off."""
    share = OFF if walk.ahead is None else 0.0
    return float(np.sqrt(min(max(share * gap, OFF_TOL * walk.tol), OFF_MOST)))


def _step(geometry: Geometry, eta: Vector, h: Vector, relaxation: float) -> Vector:
    """Return the weights of the closed form, or some way beyond them."""
    norms = block_norms(eta, h)
    closed = geometry.reweight(norms)
    if relaxation == 0.0:
        return closed
    # The same direction once more, through the norms: whatever they are, reweighting is feasible.
    growth = np.divide(closed, eta, out=np.ones_like(eta), where=eta > 0.0)
    return geometry.reweight(norms * growth**relaxation)


def _steps_ahead(ahead: Ahead, geometry: Geometry, eta: Vector, h: Vector, relaxation: float) -> Vector:
    """Return the weights some steps on, with energies of the smaller problem for all but the first.

    They count as many times as those of the problem itself are larger at eta.
    """
    reached = _step(geometry, eta, h, relaxation)
    seen = ahead.energies(eta)
    for _ in range(ROUNDS):
        then = ahead.energies(reached)
        if seen is None or then is None:
            break
        ratio = np.clip(np.divide(then, seen, out=np.ones_like(h), where=seen > 0.0), 1 / CHANGE, CHANGE)
        further = _step(geometry, reached, h * ratio, relaxation)
        moved = np.abs(further - reached) @ h / (further @ h)
        reached = further
        if moved <= SETTLED:
            break
    return reached


def block_norms(eta: Vector, h: Vector) -> Vector:
    """Return ||f_m|| = eta_m (v'K_m v)^½ from the energies h_m = ½ v'K_m v."""
    return eta * np.sqrt(2.0 * np.maximum(h, 0.0))
