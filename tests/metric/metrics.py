"""Random pairs, the problem they make, and learners fitted on them."""

import numpy as np

from kernelweave import ITML, ITMLPlus, ITMLSelect
from kernelweave.metric import LogDetProblem, PairSpace


def random_pairs(seed, n=24, d=4, g=3):
    """Return differences V and W and signs; similar pairs are slightly nearer in both spaces."""
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    size = np.where(sign > 0, 0.8, 1.2)[:, None]
    return size * rng.normal(size=(n, d)), size * rng.normal(size=(n, g)), sign


def bounds(V):
    return tuple(np.percentile((V**2).sum(axis=1), [10, 90]))


def as_pairs(V):
    """Return pairs (n, 2, d) with these differences, away from the origin."""
    return np.stack([V + 1.0, np.ones_like(V)], axis=1)


def itml(V, sign, gamma=1.0, prior=None):
    """Return the problem of ITML for these differences."""
    prior = np.eye(V.shape[1]) if prior is None else prior
    return LogDetProblem.itml(space(V, prior), sign, bounds(V), np.full(len(sign), gamma))


def itml_plus(V, W, sign, gamma=1.0, lam=1.0, kappa=None, has_privileged=None):
    """Return the problem of ITML+ for these differences; every pair has privileged ones by default."""
    has_privileged = np.ones(len(sign), dtype=bool) if has_privileged is None else has_privileged
    price = np.full(len(sign), np.inf if kappa is None else kappa)
    return itml(V, sign, gamma).itml_plus(space(W, np.eye(W.shape[1])), has_privileged, lam, price)


def space(V, prior):
    return PairSpace(as_pairs(V).reshape(2 * len(V), -1), np.arange(2 * len(V)).reshape(-1, 2), prior)


V, W, Y = random_pairs(1)
PAIRS, PRIVILEGED = as_pairs(V), as_pairs(W)
BOUNDS = bounds(V)
LEARNERS = [ITML, ITMLPlus, ITMLSelect]


def fit(cls=ITML, pairs=PAIRS, y=Y, privileged=None, **params):
    return cls(random_state=0, **({"bounds": BOUNDS} | params)).fit(pairs, y, privileged=privileged)


def matrix(*args, **params):
    return fit(*args, **params).get_mahalanobis_matrix()


def assert_same(A, B, share=1e-4):
    np.testing.assert_allclose(A, B, atol=share * np.abs(B).max())


def with_entry(array, place, value):
    out = array.copy()
    out[place] = value
    return out
