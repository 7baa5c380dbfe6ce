"""Random pairs, and the problem they make."""

import numpy as np

from kernelweave.metric.logdet import MetricProblem, Space


def random_pairs(seed, n=24, d=4, g=3):
    """Return differences V and W and signs; similar pairs are nearer in both spaces, by little."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    size = np.where(sign > 0, 0.8, 1.2)[:, None]
    return size * rng.normal(size=(n, d)), size * rng.normal(size=(n, g)), sign


def bounds(V):
    return tuple(np.percentile((V**2).sum(axis=1), [10, 90]))


def as_pairs(V):
    """Return pairs (n, 2, d) with these differences, away from the origin."""
    return np.stack([V + 1.0, np.ones_like(V)], axis=1)


def problem(V, W, sign, *, gamma=1.0, lam=1.0, kappa=None, told=None, prior=None):
    n = len(sign)
    told = np.ones(n, dtype=bool) if told is None else told
    ends = np.arange(2 * n).reshape(n, 2)
    goal = np.where(sign > 0, *bounds(V))
    spaces = [
        Space(np.ascontiguousarray(as_pairs(A).reshape(2 * n, -1)), ends, np.eye(A.shape[1])) for A in (V, W)
    ]
    if prior is not None:
        spaces[0] = Space(spaces[0].points, ends, prior)
    cap = np.full(n, np.inf) if kappa is None else np.where(told, kappa / goal, np.inf)
    return MetricProblem(*spaces, sign, goal, np.full(n, gamma), cap, told, np.ones(n), lam)
