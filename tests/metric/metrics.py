"""Random pairs, and the problem they make."""

import numpy as np

from kernelweave.metric import LogDetProblem, PairSpace


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


def problem(V, W, sign, *, gamma=1.0, lam=1.0, kappa=None, has_privileged=None, prior=None):
    """Return ITML+ of these differences, hard where kappa is None; ITML where no pair is privileged."""
    n = len(sign)
    has_privileged = np.ones(n, dtype=bool) if has_privileged is None else has_privileged
    prior = np.eye(V.shape[1]) if prior is None else prior
    itml = LogDetProblem.itml(space(V, prior), sign, bounds(V), np.full(n, gamma))
    price = np.full(n, np.inf if kappa is None else kappa)
    return itml.itml_plus(space(W, np.eye(W.shape[1])), has_privileged, lam, price)


def space(V, prior):
    return PairSpace(as_pairs(V).reshape(2 * len(V), -1), np.arange(2 * len(V)).reshape(-1, 2), prior)
