"""First-order steps in the weights: gradient, projection, line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Vector
from kernelweave.solvers.base import Solver
from kernelweave.solvers.problem import Walk
from kernelweave.solvers.result import Point

SUFFICIENT = 1e-4
SHRINK = 0.25
TRIES = 30


@dataclass
class ProjectedGradient(Solver):
    r"""Projected gradient descent with spectral steps.

    .. math:: \eta^+ = \mathrm{prox}_{s r}(\eta + s\,h), \qquad -h = \nabla_\eta \max_\alpha(\cdot)

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most machines to solve.

    Notes
    -----
    [Xu13, Algorithm 2, Eq. (26), (27)], for every geometry with a projection.
    Differs from the paper: the step length starts from the last two gradients (Barzilai–Borwein) instead
    of a constant, and the penalty r enters through its proximal map instead of its gradient.

    Examples
    --------
    >>> from kernelweave.solvers import ProjectedGradient
    >>> ProjectedGradient(max_iter=50)
    ProjectedGradient(tol=None, max_iter=50)

    """

    default_max_iter: ClassVar[int] = 2000

    def walk(self, walk: Walk, eta: Vector) -> str | None:
        point = walk.visit(eta)
        step = 1.0 / max(float(np.abs(point.h).max()), np.finfo(float).tiny)
        while not walk.finished:
            reached = _descend(walk, point, step)
            if reached is None:
                if point.machine.relative_gap <= 0.1 * walk.tol:
                    return "stalled"
                point = walk.visit(point.eta, inner_tol=0.1 * point.machine.relative_gap)
                continue
            step = _spectral_step(point, reached, step)
            point = reached
        return None


def _descend(walk: Walk, point: Point, step: float) -> Point | None:
    geometry = walk.problem.geometry
    for _ in range(TRIES):
        eta = geometry.prox(point.eta + step * point.h, step)
        move = eta - point.eta
        if not move.any():
            return None
        trial = walk.visit(eta)
        if trial.upper <= point.upper - SUFFICIENT / step * float(move @ move) or walk.finished:
            return trial
        step *= SHRINK
    return None


def _spectral_step(old: Point, new: Point, step: float) -> float:
    """Return the step whose curvature fits the last move: s = |Δeta|² / <Δeta, Δgradient>."""
    move, bend = new.eta - old.eta, old.h - new.h
    along = float(move @ bend)
    return float(np.clip(move @ move / along, 1e-3 * step, 1e3 * step)) if along > 0.0 else 2.0 * step
