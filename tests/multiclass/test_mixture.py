"""Mixtures of dual points against a conic solver, and what they are for: partitions that close the gap."""

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from tests.reference.pnorm import pnorm_optimum

from kernelweave import KernelBank, ObscureClassifier, RandomFourier
from kernelweave.kernels import Gaussian, Linear
from kernelweave.multiclass.mixture import best_mixture, onto_simplices
from kernelweave.solvers import DualAscent


def test_rows_are_projected_onto_simplices(rng):
    V = rng.normal(size=(20, 5))
    found = onto_simplices(V)
    assert (found >= 0.0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-14)
    for v, x in zip(V, found, strict=True):  # the nearest point: no corner lies further along v − x
        assert ((np.eye(5) - x) @ (v - x) <= 1e-12).all()


@pytest.mark.parametrize("q", [2.0, 3.0, 11.0])
def test_the_mixture_is_the_best_one(rng, q):
    groups, points, M, D = 3, 4, 2, 12
    T = rng.normal(size=(M, groups * points, D))
    gains = rng.uniform(0.0, 3.0, size=(groups, points))
    scale = 2.0
    lam = best_mixture(np.array([one @ one.T for one in T]), gains, q, scale)
    np.testing.assert_allclose(lam.sum(axis=1), 1.0, atol=1e-12)
    assert (lam >= 0.0).all()

    def dual(x):
        lengths = np.array([np.linalg.norm(one.T @ x) for one in T])
        return x @ gains.ravel() - (lengths**q).sum() ** (2 / q) / (2 * scale)

    x = cp.Variable(groups * points, nonneg=True)
    norms = cp.hstack([cp.norm(one.T @ x) for one in T])
    sums = [cp.sum(x[g * points : (g + 1) * points]) == 1 for g in range(groups)]
    value = cp.Problem(
        cp.Maximize(gains.ravel() @ x - cp.square(cp.pnorm(norms, q)) / (2 * scale)), sums
    ).solve(solver=cp.CLARABEL)
    assert dual(lam.ravel()) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("pieces", [2, 10, 20])
def test_partitions_close_the_gap_where_errors_cost_much(pieces):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    X = rng.normal(size=(120, 4))
    X[:, :2] += 0.8 * y[:, None]
    bank = KernelBank.per_view([Gaussian(gamma=0.3), Linear()], views={"u": [0, 1], "v": [2, 3]})
    model = ObscureClassifier(bank, C=10.0, features=RandomFourier(20), solver=DualAscent(tol=2e-3))
    model.set_params(random_state=0)
    model.fit_partitions(np.array_split(X, pieces), np.array_split(y, pieces), max_rounds=120)
    assert model.duality_gap_ <= 2e-3
    lower = [record.certificate.lower for record in model.history_]
    assert (np.diff(lower) >= 0.0).all()
    Phi, ends = model.scorer_.features.transform(X), model.scorer_.features.offsets
    optimum = pnorm_optimum([Phi[:, a:b] @ Phi[:, a:b].T for a, b in pairwise(ends)], y, 10.0, 1.5)
    assert model.bounds_.lower <= optimum * (1 + 1e-8)
    assert optimum <= model.bounds_.upper * (1 + 1e-8)
