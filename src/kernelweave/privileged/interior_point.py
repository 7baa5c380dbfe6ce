"""Mehrotra's interior point for quadratic programs in a box, the linear algebra left to the program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kernelweave._typing import Matrix, Vector

# Steps stop this short of the boundary; nearer to it once the end is near, where full steps are good.
CAUTIOUS, BOLD, NEAR = 0.95, 0.999, 1e-2
# Multipliers start at least this far inside, in units of a margin.
INSIDE = 1.0


class BoxProgram(Protocol):
    """min ½ x'Px + q'x over 0 ≤ x ≤ upper (infinite where there is no bound) with A x = total."""

    upper: Vector
    A: Matrix
    total: Vector

    def gradient(self, x: Vector) -> Vector:
        """Return P x + q."""
        ...

    def factor(self, theta: Vector) -> Callable[[Matrix], Matrix]:
        """Return how to solve (P + diag(theta)) X = B for columns B; raise LinAlgError where that fails."""
        ...


@dataclass
class Iterate:
    """A strictly interior x, multipliers of its equations, of x ≥ 0, and of x ≤ upper (0 without bound)."""

    x: Vector
    multipliers: Vector
    low: Vector
    high: Vector


def interior_point(
    program: BoxProgram,
    x: Vector,
    multipliers: Vector,
    finished: Callable[[Iterate], bool],
    max_iter: int,
) -> int:
    """Walk from x, strictly inside the box, until ``finished`` says so; return the number of steps taken.

    Primal and dual residuals need not be zero at the start. The walk also ends where a system can no longer
    be factored or no step is left: rounding has taken over, and it is for the caller to judge what it has.
    """
    at = _start(program, x, multipliers)
    for step in range(max_iter):
        if finished(at):
            return step
        try:
            if not _advance(program, at):
                return step
        except np.linalg.LinAlgError:
            return step
    finished(at)
    return max_iter


def _start(program: BoxProgram, x: Vector, multipliers: Vector) -> Iterate:
    slope = program.gradient(x) + program.A.T @ multipliers
    bounded = np.isfinite(program.upper)
    low = np.maximum(slope, 0.0) + np.where(bounded, INSIDE, 0.0)
    low = np.maximum(low, INSIDE)
    return Iterate(x.copy(), multipliers.copy(), low, np.where(bounded, np.maximum(low - slope, INSIDE), 0.0))


def _advance(program: BoxProgram, at: Iterate) -> bool:
    """Take one predictor-corrector step; return False where it would not move."""
    bounded = np.isfinite(program.upper)
    room = np.where(bounded, program.upper - at.x, 1.0)
    residual = program.gradient(at.x) + program.A.T @ at.multipliers - at.low + at.high
    missing = program.total - program.A @ at.x
    solve = program.factor(at.low / at.x + at.high / room)
    answers = solve(np.ascontiguousarray(program.A.T))
    schur = program.A @ answers
    count = at.x.size + int(bounded.sum())
    mu = float(at.x @ at.low + room @ at.high) / count

    def direction(want_low: Vector, want_high: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the Newton step to x low = want_low and room high = want_high, as dx, dm, dlow, dhigh."""
        right = -residual + want_low / at.x - at.low - (want_high / room - at.high)
        first = solve(right[:, None])[:, 0]
        dm = np.linalg.lstsq(schur, program.A @ first - missing, rcond=None)[0]
        dx = first - answers @ dm
        dlow = (want_low - at.low * dx) / at.x - at.low
        dhigh = np.where(bounded, (want_high + at.high * dx) / room - at.high, 0.0)
        return dx, np.asarray(dm, dtype=np.float64), dlow, dhigh

    nothing = np.zeros_like(at.x)
    dx, _, dlow, dhigh = direction(nothing, nothing)
    t = _longest(at, room, dx, dlow, dhigh)
    ahead = float((at.x + t * dx) @ (at.low + t * dlow) + (room - t * dx) @ (at.high + t * dhigh)) / count
    centre = mu * min(1.0, max(ahead / mu, 0.0)) ** 3
    dx, dm, dlow, dhigh = direction(centre - dx * dlow, np.where(bounded, centre + dx * dhigh, 0.0))
    longest = _longest(at, room, dx, dlow, dhigh)
    t = min(1.0, (BOLD if ahead < NEAR * mu else CAUTIOUS) * longest)
    if not t > 1e-10:
        return False
    at.x += t * dx
    at.multipliers += t * dm
    at.low += t * dlow
    at.high += t * dhigh
    return bool(np.isfinite(at.x).all())


def _longest(at: Iterate, room: Vector, dx: Vector, dlow: Vector, dhigh: Vector) -> float:
    """Return the longest step, at most 1 / CAUTIOUS, that keeps everything positive."""
    bounded = at.high > 0.0
    pairs = [(at.x, dx), (at.low, dlow), (room[bounded], -dx[bounded]), (at.high[bounded], dhigh[bounded])]
    longest = 1.0 / CAUTIOUS
    for value, change in pairs:
        falls = change < 0.0
        if falls.any():
            longest = min(longest, float(np.min(value[falls] / -change[falls])))
    return longest
