"""First-order steps in the weights: gradient, projection, line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Vector
from kernelweave.solvers.base import OuterLoop
from kernelweave.solvers.problem import Evaluation, OuterState


@dataclass
class ProjectedGradient(OuterLoop):
    r"""Projected gradient descent with spectral steps.

    .. math:: \eta^+ = \mathrm{prox}_{s r}(\eta + s\,h), \qquad -h = \nabla_\eta \max_\alpha(\cdot)

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most inner solves.

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

    def iterate(self, state: OuterState, eta: Vector) -> str | None:
        point = state.evaluate(eta)
        step = 1.0 / max(float(np.abs(point.h).max()), np.finfo(float).tiny)
        while not state.finished:
            reached = _descend(state, point, step)
            if reached is not None:
                step = _spectral_step(point, reached, step)
            else:
                reached = state.tightened(point)
            if reached is None:
                return "stalled"
            point = reached
        return None


def _descend(state: OuterState, point: Evaluation, step: float) -> Evaluation | None:
    geometry = state.problem.geometry
    for _ in range(30):
        eta = geometry.prox(point.eta + step * point.h, step)
        move = eta - point.eta
        if not move.any():
            return None
        trial = state.evaluate(eta)
        if trial.upper <= point.upper - 1e-4 / step * float(move @ move) or state.finished:
            return trial
        step *= 0.25
    return None


def _spectral_step(old: Evaluation, new: Evaluation, step: float) -> float:
    """Return the step whose curvature fits the last move: s = |Δeta|² / <Δeta, Δgradient>."""
    move, bend = new.eta - old.eta, old.h - new.h
    along = float(move @ bend)
    return float(np.clip(move @ move / along, 1e-3 * step, 1e3 * step)) if along > 0.0 else 2.0 * step
