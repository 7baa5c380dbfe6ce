"""The quadratic model on grouped weights, each group's norm held as a weight of its own."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.geometry import _interior
from kernelweave.geometry._interior import Boundary


def minimise(H: Matrix, b: Vector, index: Indices, theta: float) -> Vector:
    """Return argmin of x'Hx/2 - b'x over {x >= 0, sum_t ||x_t|| <= 1, ||x_t|| <= theta}.

    Notes
    -----
    The norm of a group is not smooth at 0, where most groups end. With e_t >= ||x_t|| as a weight the
    constraint ||x_t||^2 / e_t <= e_t is smooth and convex wherever e_t > 0.

    """
    n, n_groups = len(b), int(index.max()) + 1
    if n == n_groups:
        cap = theta if theta < 1.0 else np.inf
        start = np.full(n, 0.9 * min(theta, 1.0 / n))
        return _interior.minimise(H, b, start, describe=_mass, n_constraints=1, cap=cap).x
    members = np.zeros((n_groups, n))
    members[index, np.arange(n)] = 1.0
    n_capped = n_groups if theta < 1.0 else 0
    lifted = np.zeros((n + n_groups, n + n_groups))
    lifted[:n, :n] = H

    def describe(y: Vector, multipliers: Vector) -> Boundary:
        x, e = y[:n], y[n:]
        directions = members * x / e[:, None]
        squares = (directions**2).sum(axis=1)  # ||x_t||^2 / e_t^2
        constraints = np.concatenate([e * (squares - 1.0), [e.sum() - 1.0], e[:n_capped] - theta])
        gradients = np.zeros((len(constraints), n + n_groups))
        gradients[:n_groups, :n] = 2.0 * directions
        gradients[:n_groups, n:] = np.diag(-squares - 1.0)
        gradients[n_groups, n:] = 1.0
        gradients[n_groups + 1 :, n:] = np.eye(n_groups)[:n_capped]
        bends = 2.0 * multipliers[:n_groups] / e
        curvature = np.zeros_like(lifted)
        curvature[:n, :n] = np.diag(bends[index])
        curvature[n:, :n] = -bends[:, None] * directions
        curvature[:n, n:] = curvature[n:, :n].T
        curvature[n:, n:] = np.diag(bends * squares)
        return Boundary(np.zeros_like(y), constraints, gradients, curvature)

    e = np.full(n_groups, 0.8 * min(theta, 1.0 / n_groups))
    x = 0.9 * (e / np.sqrt(members.sum(axis=1)))[index]
    b_lifted = np.concatenate([b, np.zeros(n_groups)])
    n_constraints = n_groups + 1 + n_capped
    start = np.concatenate([x, e])
    return _interior.minimise(lifted, b_lifted, start, describe=describe, n_constraints=n_constraints).x[:n]


def _mass(x: Vector, _multipliers: Vector) -> Boundary:
    """Describe sum x <= 1, all that groups of one kernel need."""
    n = len(x)
    return Boundary(np.zeros(n), np.array([x.sum() - 1.0]), np.ones((1, n)), np.zeros((n, n)))
