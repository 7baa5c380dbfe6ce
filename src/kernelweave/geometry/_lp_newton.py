"""The quadratic model on the p-norm ball: Newton's method in the logarithms of the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kernelweave._typing import Matrix, Vector

MAX_ITER = 12  # close to the solution five are enough; far away another method is faster
SHORTEST_STEP = 1e-2
TOLERANCE = 1e-11  # of the logarithms of the energies


class Iterate(NamedTuple):
    """A point of the sphere by its logarithms, with its energies and what they miss."""

    logs: Vector
    x: Vector
    energies: Vector
    missed: Vector
    shares: Vector  # x^p, which sum to 1


def model_step(start: Vector, eta: Vector, h: Vector, H: Matrix, p: float) -> Vector | None:
    """Return argmin of -<h, x - eta> + (x - eta)'H(x - eta) / 2 on {x >= 0, ||x||_p <= 1}, 1 < p < inf.

    None where Newton's method does not get there from the start.

    Notes
    -----
    Where the model's energies e(x) = h - H(x - eta) are positive, the optimum lies on the sphere and has
    log e_m = (p - 1) log x_m + c with one c. In u = log x the Jacobian is (p-1) I + diag(1/e) H diag(x), and
    weights below the smallest float are no trouble.

    """

    def at(logs: Vector) -> Iterate | None:
        top = logs.max()
        logs = logs - top - np.log(np.exp(p * (logs - top)).sum()) / p
        x = np.exp(logs)
        energies = h - H @ (x - eta)
        if energies.min() <= 0.0:
            return None
        shares = np.exp(p * logs)
        missed = np.log(energies) - (p - 1.0) * logs
        return Iterate(logs, x, energies, missed - shares @ missed, shares)

    energies = h - H @ (start - eta)
    if energies.min() <= 0.0:
        return None
    now = at(_logs(start, energies, p))
    for _ in range(MAX_ITER):
        if now is None:
            return None
        error = np.abs(now.missed).max()
        if error <= TOLERANCE * max(1.0, np.abs(np.log(now.energies)).max()):
            return now.x
        jacobian = H / now.energies[:, None] * now.x
        jacobian[np.diag_indices(len(h))] += p - 1.0
        move, common = np.linalg.solve(jacobian, np.column_stack([now.missed, np.ones_like(h)])).T
        move -= (now.shares @ move) / (now.shares @ common) * common
        now = _shorter(at, now.logs, move, error)
    return None


def _shorter(
    at: Callable[[Vector], Iterate | None], logs: Vector, move: Vector, error: float
) -> Iterate | None:
    """Return the first point back along the move that errs less; None where only tiny moves would."""
    length = 1.0
    while length >= SHORTEST_STEP:
        new = at(logs + length * move)
        if new is not None and np.abs(new.missed).max() <= (1.0 - 0.1 * length) * error:
            return new
        length *= 0.5
    return None


def _logs(x: Vector, energies: Vector, p: float) -> Vector:
    """Return log x, with what the energies ask for where x vanished."""
    asked = np.log(energies) / (p - 1.0)
    alive = x > 0.0
    if alive.all() or not alive.any():
        return np.log(x) if alive.all() else asked
    logs = np.log(np.where(alive, x, 1.0))
    return np.where(alive, logs, asked + np.average((logs - asked)[alive], weights=x[alive]))
