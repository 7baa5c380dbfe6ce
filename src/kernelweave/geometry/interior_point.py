"""Mehrotra's primal-dual interior point for smooth convex programs, the linear algebra left to the program.

It serves the quadratic models of Newton's method on weight sets (`geometry/_qp.py`) and the duals of SVM+ and
SVM-2K (`privileged/`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from kernelweave._typing import Matrix, Vector

# Variables and multipliers never fall below this, so that their ratios stay finite.
TINY = 1e-150

LinearSolve: TypeAlias = Callable[[Matrix], Matrix]


class Linearisation(NamedTuple):
    """A convex program seen from one point."""

    gradient: Vector  # of the objective
    residual: Vector  # c(x)
    jacobian: Matrix  # of c, one row per equation
    # theta -> how to solve (Hessian of the Lagrangian + diag theta) X = B, or LinAlgError where that fails
    factorise: Callable[[Vector], LinearSolve]


class ConvexProgram(Protocol):
    """min f(x) subject to c(x) = 0 and 0 <= x <= upper, which is infinite where there is no bound.

    An inequality g(x) <= 0, g convex, is the equation g(x) + s = 0 with a slack s >= 0 among the variables.
    """

    upper: Vector

    def linearise(self, x: Vector, multipliers: Vector) -> Linearisation:
        """Return the program at x, where the equations have these multipliers."""
        ...


@dataclass
class InteriorIterate:
    """A strictly interior x, and multipliers of its equations, of x >= 0 and of x <= upper (0 if unbounded).

    ``stationarity`` is the gradient of the Lagrangian, ``gap`` the sum of all products of a bound's distance
    and its multiplier, ``error`` what stationarity and equations miss, in the same units. All vanish at the
    optimum.
    """

    x: Vector
    multipliers: Vector
    low: Vector
    high: Vector
    stationarity: Vector
    gap: float = np.inf
    error: float = np.inf


def interior_point(
    program: ConvexProgram,
    x: Vector,
    multipliers: Vector,
    finished: Callable[[InteriorIterate], bool],
    max_iter: int = 100,
) -> int:
    """Follow the central path from x, strictly inside the bounds, until ``finished``; return the steps taken.

    Also ends where a system can no longer be factorised or no step is left: rounding has taken over. Neither
    the equations nor stationarity need hold at the start. Gradients should be of order one.

    Notes
    -----
    [Mehrotra92]: a predictor step aims at the optimum itself, and how far it gets decides how near the
    optimum the corrector aims.
    Differs from the paper: the corrector never aims at a gap below a tenth of the error. Equations that are
    not linear take several Newton steps to meet, and next to a bound only short steps are possible.

    """
    bounded = np.isfinite(program.upper)
    local = program.linearise(x, multipliers)
    slope = local.gradient + multipliers @ local.jacobian
    low = np.maximum(np.maximum(slope, 0.0) + bounded, 1.0)
    high = np.where(bounded, np.maximum(low - slope, 1.0), 0.0)
    at = InteriorIterate(x.copy(), multipliers.copy(), low, high, slope)
    for step in range(max_iter + 1):
        room = np.maximum(program.upper - at.x, TINY)
        at.stationarity = local.gradient + at.multipliers @ local.jacobian - at.low + at.high
        at.gap = float(at.x @ at.low) + float(room[bounded] @ at.high[bounded])
        missed = float(np.abs(local.residual) @ np.abs(at.multipliers))
        at.error = float(np.abs(at.stationarity) @ at.x) + missed
        if finished(at) or step == max_iter:
            break
        try:
            with np.errstate(all="ignore"):  # a step that overflows is not taken
                moved = _predict_and_correct(at, local, room, bounded)
        except LinAlgError:
            break
        if not moved:
            break
        local = program.linearise(at.x, at.multipliers)
    return step


def _predict_and_correct(
    at: InteriorIterate, local: Linearisation, room: Vector, bounded: NDArray[np.bool_]
) -> bool:
    """Move the iterate by one step; return False where it would not move."""
    x, low, high, A = at.x, at.low, at.high, local.jacobian
    # With the bounds' multipliers eliminated, a Newton step solves [P + diag(theta), A'; A, 0] (dx, dm) =
    # (right, -residual); its Schur complement has one row per equation.
    solve = local.factorise(low / x + high / room)
    sensitivity = solve(np.ascontiguousarray(A.T)) if len(A) else A.T
    solve_schur = cholesky(A @ sensitivity) if len(A) else None

    def direction(low_products: Vector, high_products: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the Newton step to these products x low and room high: dx, dmultipliers, dlow, dhigh."""
        right = low_products / x - high_products / room - low + high - at.stationarity
        dx = solve(right[:, None])[:, 0]
        dm = np.zeros(0)
        if solve_schur is not None:
            dm = solve_schur(A @ dx + local.residual)
            dx = dx - sensitivity @ dm
        return dx, dm, (low_products - low * dx) / x - low, (high_products + high * dx) / room - high

    def longest(dx: Vector, dlow: Vector, dhigh: Vector) -> float:
        """Return the longest step, at most a little more than 1, that leaves nothing negative."""
        worst = max(float((-dx / x).max()), float((-dlow / low).max()), 0.9)
        if bounded.any():
            worst = max(worst, float((dx / room).max()), float((-dhigh[bounded] / high[bounded]).max()))
        return 1.0 / worst

    # 1. Predict: how far does a step that aims at products of zero get?
    nothing = np.zeros_like(x)
    dx, _, dlow, dhigh = direction(nothing, nothing)
    t = min(1.0, longest(dx, dlow, dhigh))
    ahead = (x + t * dx) @ (low + t * dlow) + (room - t * dx)[bounded] @ (high + t * dhigh)[bounded]
    reduction = min(max(float(ahead) / at.gap, 0.0), 1.0)
    # 2. Correct: aim at equal products, and take out what the predictor's step leaves in them.
    centring = min(1.0, max(reduction**3, 0.1 * at.error / at.gap))
    target = centring * at.gap / (x.size + np.count_nonzero(bounded))
    dx, dm, dlow, dhigh = direction(target - dx * dlow, np.where(bounded, target + dx * dhigh, 0.0))
    # 3. Stop short of the boundary, but only just where the predictor got nearly all the way.
    t = min(1.0, (0.999 if reduction < 1e-2 else 0.95) * longest(dx, dlow, dhigh))
    if t <= 1e-10 or not np.isfinite([dx, dlow, dhigh]).all():
        return False
    at.x = np.maximum(x + t * dx, TINY)
    at.multipliers = at.multipliers + t * dm
    at.low = np.maximum(low + t * dlow, TINY)
    at.high = np.where(bounded, np.maximum(high + t * dhigh, TINY), 0.0)
    return True


def cholesky(A: Matrix) -> LinearSolve:
    """Return B -> A^-1 B by the Cholesky factor of A with the smallest ridge that has one; overwrites A."""
    diagonal = np.diagonal(A).copy()
    for ridge in (1e-14, 1e-11, 1e-8):  # relative to the diagonal: room for the rounding of A itself
        A[np.diag_indices(len(A))] = (1.0 + ridge) * diagonal
        factor, failed = dpotrf(A, lower=1)
        if not failed:
            return lambda B: np.asarray(dpotrs(factor, B, lower=1)[0])
    raise LinAlgError("The matrix is not positive definite.")
