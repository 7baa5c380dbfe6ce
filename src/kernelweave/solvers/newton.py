"""Second-order steps in the weights: few machines, exact zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry.fenchel import fenchel_young_gap
from kernelweave.geometry.protocol import Models, Polyhedral, Reweights, WeightGeometry
from kernelweave.solvers.base import Solver
from kernelweave.solvers.block import block_norms
from kernelweave.solvers.cutting_plane import CuttingPlane
from kernelweave.solvers.problem import Point, Walk

# A step is taken when it brings this share of what its slope promises; Armijo's usual constant.
SUFFICIENT = 1e-4
SHORTEST = 2.0**-10
# Where a full step went too far the next one goes this many times as far as was good.
GROWTH = 4.0
# As long as the best weights for the energies see this many times the energy of the present ones, most of the
# curvature along the ray of the weights is taken out.
FAR, STRAIGHT = 3.0, 0.8
# Steps without gain before another way is tried.
PATIENCE = 3


@dataclass
class Newton(Solver):
    r"""Newton's method in the kernel weights.

    .. math:: \eta^+ = \arg\min_{x \in \mathcal M} r(x) - h'(x - \eta) + \tfrac12 (x - \eta)'H(x - \eta)

    h are the energies (minus the gradient of the machine's optimal value) and H its Hessian with the
    support held, from the free support vectors. A line search makes every step a descent.

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most machines to solve.

    Notes
    -----
    The model is minimised over the whole weight set, so kernels leave with weight exactly zero and come
    back by their energy. Typically 5 to 15 machines to a relative gap of 1e-6. At a kink of a polyhedral set
    with few low-rank kernels it hands over to `CuttingPlane`.
    Differs from the paper: [Xu13] has first-order methods only.

    Examples
    --------
    >>> from kernelweave.solvers import Newton
    >>> Newton(tol=1e-6)
    Newton(tol=1e-06, max_iter=None)

    """

    needs: ClassVar[type] = Models
    uses_images: ClassVar[bool] = True
    default_max_iter: ClassVar[int] = 200

    def walk(self, walk: Walk, eta: Vector) -> str | None:
        geometry = walk.problem.geometry
        assert isinstance(geometry, Models)
        point = walk.visit(eta)
        damping, failures, idle, stride = 0.0, 0, 0, 1.0
        while not walk.finished:
            if _machine_is_the_bottleneck(walk, point):
                before = point.machine.gap
                point = walk.visit(point.eta, inner_tol=0.1 * point.machine.relative_gap)
                idle = idle + 1 if point.machine.gap > 0.5 * before else 0
                if idle == PATIENCE:  # the machine has no more digits to give
                    return "stalled"
                continue
            H = _curvature(walk, point)
            H = _damped(H, damping) if damping else _straightened(H, point, geometry)
            target = geometry.model_step(point.eta, point.h, H)
            reached, length = _search(walk, point, target, stride)
            if reached is not None:
                damping = 0.0 if length == 1.0 else damping
                stride = min(1.0, GROWTH * length)
                point = reached
                continue
            failures += 1
            if failures == PATIENCE and isinstance(geometry, Polyhedral):
                # No curvature leads on from a kink, where the coefficients are not unique: their mixtures do.
                return CuttingPlane().walk(walk, walk.best.eta if walk.best else point.eta)
            point = _escape(walk, point)
            damping = max(4.0 * damping, 1e-3)
            if damping > 1e9:
                return "stalled"
        return None


def _curvature(walk: Walk, point: Point) -> Matrix:
    assert point.images is not None
    n_threads = walk.problem.bank.n_threads
    return point.machine.curvature(walk.matrix(point.eta), point.images, n_threads)


def _damped(H: Matrix, damping: float) -> Matrix:
    return np.asarray(H + damping * float(np.trace(H)) / H.shape[0] * np.eye(H.shape[0]))


def _straightened(H: Matrix, point: Point, geometry: WeightGeometry) -> Matrix:
    r"""Take the curvature along the ray of eta out of H while the optimum is far.

    Where all margins are hard the machine's value f is homogeneous of degree -1 in eta: like 1/x, towards
    whose minimum Newton's steps only grow x by half. 1/f is concave instead, and its Newton model has the
    curvature H - (H eta)(H eta)' / (eta'H eta). With bounded coefficients f falls like c + s^-d along
    the ray, and as much is taken out as d says.
    """
    h, bent = point.h, np.asarray(H @ point.eta)
    slope, curve = float(point.eta @ h), float(point.eta @ bent)
    if slope <= 0.0 or curve <= 0.0 or geometry.conjugate(h) < FAR * slope:
        return H
    degree = float(np.clip(curve / slope - 1.0, 0.0, 1.0))
    return np.asarray(H - STRAIGHT * degree / curve * np.outer(bent, bent))


def _machine_is_the_bottleneck(walk: Walk, point: Point) -> bool:
    weights_gap = fenchel_young_gap(walk.problem.geometry, point.eta, point.h)
    return point.machine.gap > weights_gap and point.machine.relative_gap > 0.1 * walk.tol


def _search(walk: Walk, point: Point, target: Vector, stride: float) -> tuple[Point | None, float]:
    """Try this share of the full step, then shorter ones, until the objective falls enough."""
    geometry = walk.problem.geometry
    move = target - point.eta
    promised = float(point.h @ move) + geometry.value(point.eta) - geometry.value(target)
    if promised <= 0.0 or not move.any():
        return None, 0.0
    length = stride
    while length >= SHORTEST:
        trial = walk.visit(target if length == 1.0 else point.eta + length * move)
        if trial.upper <= point.upper - SUFFICIENT * length * promised or walk.finished:
            return trial, length
        # The energies at the trial give the slope there: aim for where a parabola would turn.
        slope = -float(trial.h @ move)
        length *= float(np.clip(promised / (promised + slope) if slope > -promised else 0.5, 0.1, 0.5))
    return None, 0.0


def _escape(walk: Walk, point: Point) -> Point:
    """Take the closed-form step, which never raises the objective, mixed with the best answer to h."""
    geometry = walk.problem.geometry
    if not isinstance(geometry, Reweights):
        return point
    mixed = 0.99 * point.eta + 0.01 * geometry.maximizer(point.h)
    return walk.visit(geometry.reweight(block_norms(mixed, point.h)))
