"""SimpleMKL: a reduced gradient on the simplex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Vector
from kernelweave.geometry.base import ReducedDirection
from kernelweave.solvers.base import OuterLoop
from kernelweave.solvers.problem import Evaluation, OuterState


@dataclass
class ReducedGradient(OuterLoop):
    r"""The reduced-gradient method of SimpleMKL, for weights that sum to one.

    One weight (the largest) absorbs the change of all others, weights at zero whose gradient would push
    them below stay there, and the direction is followed to the first weight that vanishes as long as the
    objective falls; then a line search.

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most inner solves.

    Notes
    -----
    [Rakotomamonjy08, Algorithm 1]. Differs from the paper: backtracking replaces the golden section, and it
    stops on the duality gap.

    Examples
    --------
    >>> from kernelweave.solvers import ReducedGradient
    >>> ReducedGradient()
    ReducedGradient(tol=None, max_iter=None)

    """

    needs: ClassVar[type] = ReducedDirection
    default_max_iter: ClassVar[int] = 2000

    def iterate(self, state: OuterState, eta: Vector) -> str | None:
        geometry = state.problem.geometry
        assert isinstance(geometry, ReducedDirection)
        point = state.evaluate(eta)
        while not state.finished:
            direction = geometry.reduced_direction(point.eta, -point.h)
            reached = _follow(state, point, direction) or state.tightened(point)
            if reached is None:
                return "stalled"
            point = reached
        return None


def _follow(state: OuterState, point: Evaluation, direction: Vector) -> Evaluation | None:
    """Go to the first weight that vanishes while that helps, then search between there and here."""
    base = point
    while direction.any():
        falling = direction < 0.0
        longest = float((-base.eta[falling] / direction[falling]).min()) if falling.any() else 0.0
        if longest <= 0.0:
            break
        edge = np.maximum(base.eta + longest * direction, 0.0)
        edge[falling & (base.eta + longest * direction <= 1e-15)] = 0.0
        trial = state.evaluate(edge)
        if state.finished:
            return trial
        if trial.upper >= base.upper:
            return _line_search(state, base, direction, longest, trial) or (
                base if base is not point else None
            )
        base, direction = trial, _without_vanished(trial.eta, direction)
    return base if base is not point else None


def _without_vanished(eta: Vector, direction: Vector) -> Vector:
    """Drop the weights that have reached zero from the direction; the largest weight absorbs the rest."""
    kept = np.where((eta <= 0.0) & (direction < 0.0), 0.0, direction)
    kept[int(np.argmax(eta))] -= kept.sum()
    return kept


def _line_search(
    state: OuterState, base: Evaluation, direction: Vector, longest: float, edge: Evaluation
) -> Evaluation | None:
    length = longest
    slope, far = -float(base.h @ direction), -float(edge.h @ direction)
    for _ in range(30):
        turn = slope / (slope - far) if far > slope else 0.5
        length *= float(np.clip(turn, 0.1, 0.9))
        trial = state.evaluate(base.eta + length * direction)
        if trial.upper <= base.upper + 1e-4 * length * slope or state.finished:
            return trial
        far = -float(trial.h @ direction)
    return None
