"""The compiled loops of the p-norm problem against their plain twins."""

import numpy as np
import pytest
from tests.reference import pnorm

from kernelweave import _core


def state(Ks, A, dtype=np.float64):
    G = np.ascontiguousarray((Ks @ A).transpose(0, 2, 1))
    return np.ascontiguousarray(Ks, dtype=dtype), A.copy(), G, np.einsum("ic,jci->j", A, G)


@pytest.mark.parametrize("p", [1.05, 1.5, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_ascend_visits_as_its_twin_does(rng, p, weighted):
    Ks, y = pnorm.pnorm_problem(0, n=25)
    weight = rng.uniform(0.5, 2.0, 25) if weighted else np.ones(25)
    q, scale = p / (p - 1.0), 1.0
    order = rng.permutation(25)
    K, A, G, s = state(Ks, np.zeros((25, 3)))
    moved = _core.ascend(K, y, weight, scale, q, order, A, G, s)
    expected = pnorm.ascend(Ks, np.zeros((25, 3)), y, weight, scale, q, order)
    assert moved > 0
    np.testing.assert_allclose(A, expected, atol=2e-4)  # the line searches stop at different places
    value = pnorm.dual_value(Ks, A, y, scale, q)
    assert value == pytest.approx(pnorm.dual_value(Ks, expected, y, scale, q), rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_energies_follow_the_coefficients(rng, dtype):
    Ks, y = pnorm.pnorm_problem(1, n=30)
    K, A, G, s = state(Ks, np.zeros((30, 3)), dtype)
    for _ in range(5):
        _core.ascend(K, y, np.ones(30), 0.5, 3.0, rng.permutation(30), A, G, s)
    tolerance = 1e-4 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(G, (Ks @ A).transpose(0, 2, 1), atol=tolerance)
    np.testing.assert_allclose(s, [np.sum(A * (k @ A)) for k in Ks], rtol=tolerance)


def test_every_visit_keeps_the_rows_feasible_and_raises_the_dual(rng):
    Ks, y = pnorm.pnorm_problem(2, n=30)
    weight = rng.uniform(0.2, 1.5, 30)
    weight[4] = 0.0
    K, A, G, s = state(Ks, np.zeros((30, 3)))
    last = 0.0
    for i in np.tile(rng.permutation(30), 3):
        _core.ascend(K, y, weight, 0.3, 11.0, np.array([i]), A, G, s)
        value = pnorm.dual_value(Ks, A, y, 0.3, 11.0)
        assert value >= last - 1e-12
        last = value
    cap = np.where(np.arange(3) == y[:, None], weight[:, None], 0.0)
    assert (cap + 1e-15 >= A).all()
    assert np.abs(A.sum(axis=1)).max() < 1e-15
    assert not A[4].any()


def test_a_kernel_that_is_zero_everywhere_does_no_harm(rng):
    Ks, y = pnorm.pnorm_problem(3, n=20)
    Ks[1] = 0.0
    K, A, G, s = state(Ks, np.zeros((20, 3)))
    _core.ascend(K, y, np.ones(20), 1.0, 3.0, rng.permutation(20), A, G, s)
    assert s[1] == 0.0
    assert np.isfinite(A).all()
    assert A.any()


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0])
def test_online_steps_are_those_of_the_paper(rng, p):
    Phi, y = rng.normal(size=(60, 7)), rng.integers(0, 3, 60)
    offsets, q = np.array([0, 2, 7]), p / (p - 1.0)
    theta, s = np.zeros((7, 3)), np.zeros(2)
    updates = _core.online_steps(Phi, y, np.ones(60), offsets, q, 2.0, theta, s)
    twin = pnorm.Vectors([np.eye(1)], y, p, 3)
    twin.Ls = [Phi[:, :2], Phi[:, 2:]]
    twin.theta = [np.zeros((2, 3)), np.zeros((5, 3))]
    for i in range(60):
        twin.online(i, 2.0)
    np.testing.assert_allclose(theta, np.vstack(twin.theta), atol=1e-9)
    np.testing.assert_allclose(s, twin.norms() ** 2, rtol=1e-9)
    assert 0 < updates <= 60


def test_shapes_are_checked(rng):
    K, A, G, s = state(np.eye(3)[None], np.zeros((3, 2)))
    y, order = np.array([0, 1, 0]), np.arange(3)
    for bad in (
        {"y": np.array([0, 2, 0])},
        {"order": np.array([3])},
        {"weight": np.ones(2)},
        {"s": np.zeros(2)},
        {"G": np.zeros((1, 3, 2))},
        {"scale": 0.0},
    ):
        given = dict(K=K, y=y, weight=np.ones(3), scale=1.0, q=2.0, order=order, A=A, G=G, s=s) | bad
        with pytest.raises(ValueError, match="ascend"):
            _core.ascend(**given)
    with pytest.raises(ValueError, match="online_steps"):
        _core.online_steps(np.ones((2, 3)), y[:2], np.ones(2), np.array([0, 2]), 2.0, 1.0, np.ones((3, 2)), s)
