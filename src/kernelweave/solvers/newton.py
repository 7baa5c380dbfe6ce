"""Second-order steps in the weights: few machines, exact zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry.base import Geometry, Polyhedral, fenchel_young_gap
from kernelweave.solvers.base import Solver
from kernelweave.solvers.block import block_norms
from kernelweave.solvers.cutting_plane import CuttingPlane
from kernelweave.solvers.problem import Walk
from kernelweave.solvers.result import Point

# A step is taken when it brings this share of what its slope promises; Armijo's usual constant.
SUFFICIENT = 1e-4
SHORTEST = 2.0**-10
# Where a full step went too far the next one goes this many times as far as was good.
GROWTH = 4.0
# As long as the best weights for the energies see this many times the energy of the present ones, most of the
# curvature along the ray of the weights is taken out of the parabola.
FAR, STRAIGHT = 3.0, 0.8
# The first step leaps only where energies fall like this power of all weights together (2: a value like 1/x).
STEEP = 1.5
# A parabola's step was too short if this share of its slope was left at its end.
SHORT = 0.2
# The model's minimiser has settled when a round moves it by this share of the step; at most so many rounds.
SETTLED, ROUNDS = 0.02, 8
# Where the model's minimiser is dear, so many rounds; and none where u is known this well already.
FEW, ALIKE = 3, 0.05
# What is believed of energies that grow: at most four times as large.
LEAST = -0.5
# Energies below this share of the largest are as good as none.
NOTHING = 1e-12
TINY = float(np.finfo(float).tiny)
# Steps without gain before another way is tried.
PATIENCE = 3
# A machine that keeps this share of its gap is no better for being solved again.
IDLE = 0.9


@dataclass
class Newton(Solver):
    r"""Newton's method in the kernel weights.

    .. math:: \eta^+ = \arg\min_{x \in \mathcal M} r(x) - h'(x - \eta) + \tfrac12 (x - \eta)'SHS(x - \eta)

    h are the energies (minus the gradient of the machine's optimal value) and H its Hessian with the
    support held, from the free support vectors. S turns the parabola into one through the values of energies
    that fall like 1/x², as those of growing kernels do; where such a step fails, the parabola itself (S = I)
    leads on, with a line search that makes every step a descent.

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most machines to solve.

    Notes
    -----
    The model is minimised over the whole weight set, so kernels leave with weight exactly zero and come
    back by their energy. Typically 4 to 8 machines to a relative gap of 1e-6. At a kink of a polyhedral set
    with few low-rank kernels it hands over to `CuttingPlane`.
    Differs from the paper: [Xu13] has first-order methods only.

    Examples
    --------
    >>> from kernelweave.solvers import Newton
    >>> Newton(tol=1e-6)
    Newton(tol=1e-06, max_iter=None)

    """

    uses_images: ClassVar[bool] = True
    starts_early: ClassVar[bool] = True
    default_max_iter: ClassVar[int] = 200

    def walk(self, walk: Walk, eta: Vector) -> str | None:
        geometry = walk.problem.geometry
        point = walk.visit(eta)
        damping, failures, idle, stuck, stride = 0.0, 0, 0, 0, 1.0
        leaps, doubted, steps = False, False, 0
        while not walk.finished:
            if _machine_is_the_bottleneck(walk, point):
                before = point.machine.gap
                point = walk.visit(point.eta, inner_tol=0.1 * point.machine.relative_gap)
                idle = idle + 1 if point.machine.gap > IDLE * before else 0
                if idle == PATIENCE:  # the machine has no more digits to give here
                    point, idle, stuck = _escape(walk, point), 0, stuck + 1
                    if stuck > PATIENCE:
                        return "stalled"
                continue
            H = _curvature(walk, point)
            leaps, steps = leaps if steps else _steepness(H, point) >= STEEP, steps + 1
            reached, length = None, 1.0
            if leaps and not damping:
                target = _minimiser(point, H, geometry, seen=geometry.conjugate(point.h))
                reached = _tried(walk, point, target)
                doubted = reached is None
            if reached is None:
                B = _damped(H, damping) if damping else _straightened(H, point, geometry)
                reached, length = _search(walk, point, geometry.model_step(point.eta, point.h, B), stride)
                leaps = not doubted or (length == 1.0 and _is_short(point, reached))
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


def _steepness(H: Matrix, point: Point) -> float:
    """Return the power by which energies fall as all weights grow: 2 for hard margins, 0 if they stay."""
    return float(point.eta @ H @ point.eta) / max(float(point.eta @ point.h), TINY)


def _straightened(H: Matrix, point: Point, geometry: Geometry) -> Matrix:
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
    degree = float(np.clip(_steepness(H, point) - 1.0, 0.0, 1.0))
    return np.asarray(H - STRAIGHT * degree / curve * np.outer(bent, bent))


def _minimiser(point: Point, H: Matrix, geometry: Geometry, seen: float) -> Vector:
    """Return the weights x that a model with energies h_m / (1 + u_m)², u = H(x - eta) / 2h, leads to.

    They have the value and the slope of the true ones at eta, and are the true ones where a kernel of rank
    one grows, or all weights grow together while all margins are hard: the machine's value then falls like
    1/x, and a parabola ends when x has grown by half. Chords of these energies are slopes of a parabola with
    curvature S H S, S² = (1 + u/2) / (1 + u)², if H is diagonal or u the same for all kernels, and nearly so
    otherwise. Its minimiser tells u, and is sought again until it settles.
    """
    eta, h = point.eta, point.h
    floor = np.maximum(h, max(NOTHING * float(h.max()), np.finfo(float).tiny))
    # At first as if the energy that the best weights for h have ``seen`` came down to what eta sees.
    u = np.full_like(h, max(seen / float(eta @ floor), 1.0) ** 0.5 - 1.0)
    x = geometry.model_step(eta, h, _chord(H, u))
    for _ in range(ROUNDS if issubclass(type(geometry), Polyhedral) else FEW):
        known, u = u, np.maximum(0.5 * (H @ (x - eta)) / floor, LEAST)
        if float(np.abs(u - known).max()) <= ALIKE:
            break
        chord = _chord(H, u)
        # The same parabola seen from x: active sets are sought from those of x.
        before, x = x, geometry.model_step(x, h - chord @ (x - eta), chord)
        if float(np.abs(x - before).sum()) <= SETTLED * float(np.abs(x - eta).sum()):
            break
    return x


def _chord(H: Matrix, u: Vector) -> Matrix:
    S = np.sqrt(1.0 + 0.5 * u) / (1.0 + u)
    return np.asarray(S[:, None] * H * S)


def _machine_is_the_bottleneck(walk: Walk, point: Point) -> bool:
    weights_gap = fenchel_young_gap(walk.problem.geometry, point.eta, point.h)
    return point.machine.gap > weights_gap and point.machine.relative_gap > 0.1 * walk.tol


def _tried(walk: Walk, point: Point, target: Vector) -> Point | None:
    """Return the point at the target if the objective falls enough on the way there."""
    promised = _promised(walk, point, target)
    if promised <= 0.0:
        return None
    trial = walk.visit(target)
    enough = trial.upper <= point.upper - SUFFICIENT * promised
    return trial if enough or walk.finished else None


def _is_short(point: Point, reached: Point | None) -> bool:
    if reached is None:
        return False
    move = reached.eta - point.eta
    return float(reached.h @ move) > SHORT * float(point.h @ move)


def _promised(walk: Walk, point: Point, target: Vector) -> float:
    """Return what the slope promises of a step to the target."""
    geometry = walk.problem.geometry
    return float(point.h @ (target - point.eta)) + geometry.value(point.eta) - geometry.value(target)


def _search(walk: Walk, point: Point, target: Vector, stride: float) -> tuple[Point | None, float]:
    """Try this share of the full step, then shorter ones, until the objective falls enough."""
    move, promised = target - point.eta, _promised(walk, point, target)
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
    mixed = 0.99 * point.eta + 0.01 * geometry.maximizer(point.h)
    return walk.visit(geometry.reweight(block_norms(mixed, point.h)))
