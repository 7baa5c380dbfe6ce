"""An exact quadratic program on the capped simplex: min x'Ax/2 - b'x, sum x = 1, 0 <= x <= cap.

Active sets: the weights at 0 and at the cap are fixed, the free ones solve a linear system. First all
misplaced weights change sets at once, which from a good start takes a handful of systems. From a bad one,
or if it cycles, sets are named by a point near the optimum: one that pairs of weights descend to, then an
interior point, a rough one, then an accurate one. What that leaves in doubt a feasible descent settles one
by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from kernelweave import _core
from kernelweave._typing import Matrix, Vector
from kernelweave.geometry import _interior
from kernelweave.geometry._capped import leaves_one_point, project

# Proximal terms relative to the curvature, tried in turn: the first makes duplicated kernels a definite
# problem, the others forgive a Hessian with rounding of its own.
RIDGES = (1e-11, 1e-9, 1e-7, 1e-5, 1e-3)
RIDGE_FLOOR = 1e-8  # of the largest curvature, for kernels that have none themselves
OPTIMALITY = 1e-13  # a multiplier this small, relative to the slopes, has no sign
MAX_EXCHANGES = 12  # block exchanges settle in fewer or cycle
PATIENCE = 3  # exchanges in a row after which no fewer weights are misplaced
FAR, MANY = 0.3, 10  # more than this share, and number, of the weights misplaced: no start to settle from
ROUGH = 1e-6  # a gap of the interior point that tells most bounds
SLOPES, STEPS = 1e-8, 200  # of pairs: how even, relative to those at the start; most steps for every weight

ON_SIMPLEX = 1e-9  # of the mass, for rounding

States: TypeAlias = NDArray[np.int8]
AT_ZERO, FREE, AT_CAP = np.int8(-1), np.int8(0), np.int8(1)
INDEFINITE, SETTLED = -1, 1  # what exchanges end with


def model_step(eta: Vector, h: Vector, H: Matrix, cap: float, ridge: float = 0.0) -> Vector:
    """Return argmin of ridge |x|^2 / 2 - <h, x - eta> + (x - eta)'H(x - eta) / 2 on the capped simplex.

    A tiny proximal term around eta settles what H leaves open, so duplicated kernels keep their split.
    """
    n = len(h)
    if leaves_one_point(cap, n):
        return np.full(n, 1.0 / n)
    curvature = np.maximum(np.diagonal(H), RIDGE_FLOOR * np.diagonal(H).max())
    if curvature.max() <= 0.0:  # a linear model: any curvature too small to matter will do
        curvature = np.full(n, float(np.abs(h).max()) or 1.0)
    on_simplex = abs(float(eta.sum()) - 1.0) <= ON_SIMPLEX  # or inside a ball around it
    start = eta if on_simplex else project(eta, min(cap, 1.0))
    for softness in RIDGES:
        A = H.copy(order="C")
        A[np.diag_indices(n)] += softness * curvature + ridge
        try:
            x = minimise(A, h + H @ eta + softness * curvature * eta, cap, start)
            return np.clip(x, 0.0, cap)  # a last digit may stick out
        except LinAlgError:  # H is less definite than it claims
            continue
    return start.copy()


def minimise(A: Matrix, b: Vector, cap: float, start: Vector) -> Vector:
    """Return argmin of x'Ax/2 - b'x on the capped simplex, A positive definite, start feasible."""
    problem = CappedQuadratic(A, b, cap if cap < 1.0 else np.inf)
    state = problem.states(start)
    if not np.any(state == FREE):
        pair = problem.best_swap(start, state)
        if pair is None:
            return start.copy()
        state[pair] = FREE
    x, settled = problem.exchange(state, int(max(FAR * len(b), MANY)))
    if settled:
        return x
    x, settled = problem.exchange(problem.states(problem.descend_in_pairs(start)), len(b))
    if settled:
        return x
    even, walked = np.full(len(b), 1.0 / len(b)), None
    for tolerance in (ROUGH, _interior.TOLERANCE):
        near = _interior.minimise(
            A, b, even, cap=problem.cap, keep_mass=True, tolerance=tolerance, walked=walked
        )
        walked = near.walked
        at_zero, at_cap = near.x == 0.0, problem.cap - near.x < near.at_cap
        state = np.where(at_zero, AT_ZERO, np.where(at_cap, AT_CAP, FREE))
        x, settled = problem.exchange(state, len(b))
        if settled:
            return x
    return problem.descend(project(near.x, min(cap, 1.0)))


class Stationary(NamedTuple):
    """The stationary point of one active set: weights, and slopes above their common level."""

    x: Vector
    surplus: Vector


@dataclass(frozen=True)
class CappedQuadratic:
    """min x'Ax/2 - b'x over {0 <= x <= cap, sum x = 1}, A positive definite."""

    A: Matrix
    b: Vector
    cap: float

    @property
    def noise(self) -> float:
        """The size of a slope that has no sign."""
        return OPTIMALITY * float(np.abs(self.b).max() + np.diagonal(self.A).max())

    def states(self, x: Vector) -> States:
        """Return which weights sit at a bound."""
        return np.where(x <= 0.0, AT_ZERO, np.where(x >= self.cap, AT_CAP, FREE))

    def exchange(self, state: States, most: int) -> tuple[Vector, bool]:
        """Move all misplaced weights at once until none is; tell whether that settled.

        With more than ``most`` misplaced in the first round it is not tried.
        """
        x, state = np.empty(len(self.b)), state.copy()
        found = _core.exchange(self.A, self.b, self.cap, state, x, self.noise, most, MAX_EXCHANGES, PATIENCE)
        if found == INDEFINITE:
            raise LinAlgError("The curvature of the model is not positive definite.")
        return x, found == SETTLED

    def descend_in_pairs(self, start: Vector) -> Vector:
        """Return a feasible point where slopes are nearly even, or as near as a few steps lead."""
        n, most = len(start), min(self.cap, 1.0)
        x = np.clip(start, 0.0, most)
        slopes = self.b - self.A @ x
        tolerance = SLOPES * float(np.ptp(slopes))
        nothing, one_sum = np.zeros(n), np.zeros(n, dtype=np.int64)
        lo, hi = np.zeros(n), np.full(n, most)
        _core.smo(self.A, self.b, nothing, nothing, lo, hi, one_sum, x, -slopes, tolerance, STEPS * n, True)
        return x

    def descend(self, x: Vector) -> Vector:
        """Walk from one active set to the next, always feasible and never uphill."""
        state = self.states(x)
        for _ in range(100 + 20 * len(x)):
            if not np.any(state == FREE):
                pair = self.best_swap(x, state)
                if pair is None:
                    break
                state[pair] = FREE
            target, surplus = self.stationary(state)
            move = target - x
            length, blocked = self._room(x, move, state)
            if length < 1.0:
                state[blocked] = np.where(move[blocked] < 0.0, AT_ZERO, AT_CAP)
                x = np.where(state == FREE, x + length * move, self._bounds(state))
                continue
            x = target
            released = (state != FREE) & (self._kept(state, surplus) == FREE)
            if not released.any():
                break
            state[np.argmax(np.where(released, np.abs(surplus), -1.0))] = FREE
        return x

    def stationary(self, state: States) -> Stationary:
        """Solve for the free weights with the others fixed at their bounds."""
        x, surplus = np.empty((2, len(self.b)))
        if not _core.stationary(self.A, self.b, self.cap, state, x, surplus):
            raise LinAlgError("The curvature of the model is not positive definite.")
        return Stationary(x, surplus)

    def _bounds(self, state: States) -> Vector:
        """Return the bounds the fixed weights sit at, 0 for the free ones."""
        return np.where(state == AT_CAP, self.cap, 0.0)

    def _kept(self, state: States, surplus: Vector) -> States:
        """Return the states with those fixed weights freed that gain by moving inside."""
        return np.where(state * surplus < -self.noise, FREE, state)

    def best_swap(self, x: Vector, state: States) -> list[int] | None:
        """Return the weights to exchange at a vertex without free weights; None where it is optimal."""
        slopes = self.b - self.A @ x
        enter = int(np.argmax(np.where(state == AT_ZERO, slopes, -np.inf)))
        leave = int(np.argmin(np.where(state == AT_CAP, slopes, np.inf)))
        return [enter, leave] if slopes[enter] > slopes[leave] + self.noise else None

    def _room(self, x: Vector, move: Vector, state: States) -> tuple[float, NDArray[np.bool_]]:
        """Return how far the free weights can go, and which of them stop there."""
        length = np.full(len(x), np.inf)
        down, up = (state == FREE) & (move < 0.0), (state == FREE) & (move > 0.0)
        length[down] = x[down] / -move[down]
        length[up] = (self.cap - x[up]) / move[up]
        shortest = float(length.min())
        return shortest, length == shortest
