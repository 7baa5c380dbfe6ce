"""A primal-dual interior point method for the quadratic model, on any set with a smooth description.

It needs ten to twenty linear systems however collinear the kernels are, which neither active sets nor
proximal steps promise. Its answer is accurate, not exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from kernelweave._typing import Matrix, Vector

MAX_ITER = 150  # a dozen or two are usual; stiff norms of many kernels may need more
TOLERANCE = 1e-12  # of the duality gap, relative to the largest slope
ERROR_TOLERANCE = 1e-10  # of feasibility and slopes, likewise
STALLED = 1e-16  # a gap this small with larger errors: the systems have no more digits to give
TO_THE_WALL = 0.995  # of the way to the nearest bound: the usual caution
TINY = 1e-150  # what a room or a multiplier never falls below, so that their ratios stay finite
SMALLEST_ROOM = 1e-6  # of a constraint at the start
RIDGES = (1e-14, 1e-12, 1e-10, 1e-8)  # relative to the diagonal, against rounding in the last systems


class Boundary(NamedTuple):
    """A penalty and the constraints c(x) <= 0, seen from one x > 0 and multipliers of the constraints."""

    slope: Vector  # of the penalty
    constraints: Vector
    gradients: Matrix  # of the constraints, one row each
    curvature: Matrix  # of the penalty plus the constraints times their multipliers


Describe: TypeAlias = Callable[[Vector, Vector], Boundary]
Solve: TypeAlias = Callable[[Vector], Vector]


class Walked(NamedTuple):
    """Where the method stands: rooms, their multipliers, and that of the mass."""

    v: Vector
    u: Vector
    level: float


class Solution(NamedTuple):
    """A nearly optimal point, and the multipliers of its cap relative to the largest slope.

    Weights smaller than the multiplier of their bound are zero at the optimum, and here.
    """

    x: Vector
    at_cap: Vector
    walked: Walked


def minimise(
    H: Matrix,
    b: Vector,
    start: Vector,
    *,
    describe: Describe | None = None,
    n_constraints: int = 0,
    cap: float = np.inf,
    keep_mass: bool = False,
    tolerance: float = TOLERANCE,
    walked: Walked | None = None,
) -> Solution:
    """Return argmin of x'Hx/2 - b'x + penalty(x) over {0 <= x <= cap, c(x) <= 0}.

    Start strictly inside; ``keep_mass`` adds the constraint sum x = 1. ``tolerance`` is that of the gap,
    relative to the largest slope. Goes on from where it had ``walked`` to on the same problem.

    Notes
    -----
    Mehrotra's predictor and corrector on the perturbed optimality conditions, in units of the largest
    slope at the start.

    """
    n = len(b)
    scale = float(np.abs(b - H @ start).max()) or 1.0
    H, b, describe = H / scale, b / scale, _scaled(describe or _nothing, scale)
    n_bounds = 2 * n if cap < np.inf else n
    u, level = np.ones(n_bounds + n_constraints), 0.0
    v = np.maximum(_rooms(start, cap, describe(start, u[n_bounds:])), SMALLEST_ROOM)
    if walked is not None:
        v, u, level = walked
    for _ in range(MAX_ITER):
        x = v[:n]
        local = describe(x, u[n_bounds:])
        system = _System(
            v, u, _rooms(x, cap, local) - v, local.gradients, float(x.sum()) - 1.0 if keep_mass else None
        )
        slope = H @ x - b + local.slope - system.pull(u) + level
        gap, error = float(v @ u), float(np.abs(slope) @ x) + system.violation
        if gap <= tolerance and (error <= max(tolerance, ERROR_TOLERANCE) or gap <= STALLED):
            break
        condensed = system.condense(H + local.curvature)
        if condensed is None:
            break
        step = system.step(condensed, slope, np.zeros_like(v))
        length = min(1.0, _reach(v, step.v), _reach(u, step.u))
        centring = (float((v + length * step.v) @ (u + length * step.u)) / gap) ** 3
        step = system.step(condensed, slope, centring * gap / len(v) - step.v * step.u)
        length = min(1.0, TO_THE_WALL * min(_reach(v, step.v), _reach(u, step.u)))
        v, u = np.maximum(v + length * step.v, TINY), np.maximum(u + length * step.u, TINY)
        level += length * step.level
    at_cap = u[n:n_bounds] if cap < np.inf else np.zeros(n)
    return Solution(np.where(v[:n] < u[:n], 0.0, v[:n]), at_cap, Walked(v, u, level))


class _Step(NamedTuple):
    v: Vector
    u: Vector
    level: float


@dataclass(frozen=True)
class _System:
    """The linearised optimality conditions at one point.

    All inequalities are one vector of rooms v > 0 (x itself, cap - x where there is a cap, -c(x)) with
    multipliers u > 0. ``missed`` is how far v is from the true rooms, ``surplus`` the mass too much.
    """

    v: Vector
    u: Vector
    missed: Vector
    gradients: Matrix
    surplus: float | None

    @property
    def violation(self) -> float:
        return max(float(np.abs(self.missed).max()), abs(self.surplus or 0.0))

    def step(self, condensed: _Condensed, slope: Vector, target: Vector) -> _Step:
        """Return the Newton step towards the products v u = target."""
        k = self._n_bounds
        gaps = (self.missed + self.v - target / self.u)[k:]
        pull = target[:k] / self.v[:k] - self.u[:k]
        dx, du = condensed.solve(self._fold(pull) - slope, gaps)
        rise = 0.0
        if self.surplus is not None:
            ones, du_ones = condensed.ones
            rise = (float(dx.sum()) + self.surplus) / float(ones.sum())
            dx, du = dx - rise * ones, du - rise * du_ones
        # Rooms of bounds follow x. Those of constraints follow their multipliers: near the optimum their
        # change is a tiny difference of large numbers if taken from x.
        dv = np.concatenate([dx, -dx])[:k]
        dv_rest = (target[k:] - self.v[k:] * du) / self.u[k:] - self.v[k:]
        du_bounds = pull - self.u[:k] / self.v[:k] * dv
        return _Step(np.concatenate([dv, dv_rest]), np.concatenate([du_bounds, du]), rise)

    def condense(self, H: Matrix) -> _Condensed | None:
        """Return the system with all but the steepest barriers moved into H; None if it has no solution."""
        k = self._n_bounds
        stiffness = self.u / self.v
        moderate = np.minimum(stiffness[k:], np.diagonal(H).max())
        A = H + self.gradients.T @ (moderate[:, None] * self.gradients) if moderate.size else H.copy()
        A[np.diag_indices(len(A))] += self._fold(stiffness[:k], sign=1.0)
        inverse = _cholesky(A)
        if inverse is None:
            return None
        steep = stiffness[k:] > moderate
        if not steep.any():  # nothing is left to be put beside it
            return _Condensed(self.gradients, stiffness[k:], moderate, steep, inverse)
        reach = inverse(self.gradients[steep].T)
        excess = (stiffness[k:] - moderate)[steep]
        small = _cholesky(self.gradients[steep] @ reach + np.diag(1.0 / excess))
        if small is None:
            return None
        return _Condensed(self.gradients, stiffness[k:], moderate, steep, inverse, reach, small)

    def pull(self, u: Vector) -> Vector:
        """Return the multipliers' force on x."""
        k = self._n_bounds
        return self._fold(u[:k]) - u[k:] @ self.gradients

    def _fold(self, bounds: Vector, sign: float = -1.0) -> Vector:
        n = self.gradients.shape[1]
        return bounds[:n] + sign * bounds[n:] if len(bounds) > n else bounds

    @property
    def _n_bounds(self) -> int:
        return len(self.v) - len(self.gradients)


@dataclass(frozen=True)
class _Condensed:
    """A dx + C'du = r with C dx - du / stiffness = gaps.

    The stiffness of an active constraint grows beyond all bounds. A moderate part of it goes into the
    large matrix, the rest into a small one beside it (Sherman, Morrison and Woodbury).
    """

    C: Matrix
    stiffness: Vector
    moderate: Vector
    steep: NDArray[np.bool_]
    inverse: Solve  # of the large matrix
    reach: Matrix = field(default_factory=lambda: np.zeros((0, 0)))  # the inverse times the steep constraints
    small: Solve = np.zeros_like

    @cached_property
    def ones(self) -> tuple[Vector, Vector]:
        """What moving all weights alike takes."""
        n_constraints, n = self.C.shape
        return self.solve(np.ones(n), np.zeros(n_constraints))

    def solve(self, r: Vector, gaps: Vector) -> tuple[Vector, Vector]:
        """Return dx and du."""
        if not self.stiffness.size:
            return self.inverse(r), np.zeros(0)
        dx, steep = self.inverse(r + (self.moderate * gaps) @ self.C), self.steep
        if not steep.any():
            return dx, self.stiffness * (self.C @ dx - gaps)
        force = self.small(self.C[steep] @ dx - gaps[steep])
        dx = dx - self.reach @ force
        du = self.stiffness * (self.C @ dx - gaps)
        du[steep] = force * self.stiffness[steep] / (self.stiffness - self.moderate)[steep]
        return dx, du


def _rooms(x: Vector, cap: float, local: Boundary) -> Vector:
    return np.concatenate([x, -local.constraints] if cap == np.inf else [x, cap - x, -local.constraints])


def _cholesky(A: Matrix) -> Solve | None:
    """Return r -> A^-1 r by the Cholesky factor of A with the smallest ridge that has one."""
    diagonal = np.diagonal(A).copy()
    for ridge in RIDGES:
        A[np.diag_indices(len(A))] = (1.0 + ridge) * diagonal
        factor, failed = dpotrf(A, lower=1)
        if not failed:
            return lambda r: np.asarray(dpotrs(factor, r, lower=1)[0])
    return None


def _reach(v: Vector, dv: Vector) -> float:
    """Return how far v > 0 can follow dv before it turns negative."""
    falls = dv < 0.0
    return float(np.min(v[falls] / -dv[falls], initial=np.inf))


def _scaled(describe: Describe, scale: float) -> Describe:
    """Return the same set with the penalty and the multipliers in other units."""

    def describe_scaled(x: Vector, multipliers: Vector) -> Boundary:
        slope, constraints, gradients, curvature = describe(x, scale * multipliers)
        return Boundary(slope / scale, constraints, gradients, curvature / scale)

    return describe_scaled


def _nothing(x: Vector, _multipliers: Vector) -> Boundary:
    n = len(x)
    return Boundary(np.zeros(n), np.zeros(0), np.zeros((0, n)), np.zeros((n, n)))
