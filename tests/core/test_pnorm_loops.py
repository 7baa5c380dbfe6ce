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


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 1000])
def test_kernel_rows_are_their_formulas(rng, columns):
    X, Z = rng.normal(size=(7, 5)) + 3.0, rng.normal(size=(columns, 5)) + 3.0
    centre = Z.mean(axis=0)
    A, B = X - centre, Z - centre
    single = [np.ascontiguousarray(v, dtype=np.float32) for v in (A @ B.T, X @ centre, Z @ centre)]
    single[1] -= np.float32(0.5 * centre @ centre)
    single[2] -= np.float32(0.5 * centre @ centre)
    norms = [np.float32((v * v).sum(axis=1)) for v in (A, B)]
    kind, degree = np.array([0, 1, 1, 1, 1, 2]), np.array([1, 1, 2, 3, 5, 1])
    numbers = np.array(
        [[1, 0.1, 0.1, 0.1, 0.1, 0.4], [0, 1, 1, 0.5, 1, 0], [2, 1, 3, 1, 1, 0.5]], dtype=float
    )
    out = np.empty((6, 7, columns), dtype=np.float32)
    _core.kernel_block(*single, *norms, kind, degree, numbers, out)
    inner, D = X @ Z.T, ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    expected = [2 * inner]
    expected += [f * (0.1 * inner + o) ** d for d, o, f in ((1, 1, 1), (2, 1, 3), (3, 0.5, 1), (5, 1, 1))]
    expected += [0.5 * np.exp(-0.4 * D)]
    for mine, theirs in zip(out, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5 * np.abs(theirs).max())


def test_the_float_exponential_is_one_at_zero_and_vanishes_far_away():
    distances = np.array([[0.0, 1.0, 50.0, 86.0, 88.0, 1e30]], dtype=np.float32)
    zeros = np.zeros(6, dtype=np.float32)
    out = np.empty((1, 1, 6), dtype=np.float32)
    kind, degree, numbers = np.array([2]), np.array([1]), np.array([[1.0], [0.0], [1.0]])
    _core.kernel_block(-0.5 * distances, zeros[:1], zeros, zeros[:1], zeros, kind, degree, numbers, out)
    np.testing.assert_allclose(out[0, 0, :4], np.exp(-distances[0, :4].astype(float)), rtol=3e-7)
    assert not out[0, 0, 4:].any()


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
    single = np.zeros(3, dtype=np.float32)
    with pytest.raises(ValueError, match="kernel_block"):
        _core.kernel_block(
            np.zeros((3, 3), dtype=np.float32),
            *[single] * 4,
            np.array([0]),
            np.array([1]),
            np.ones((3, 1)),
            np.zeros((1, 3, 2), dtype=np.float32),
        )
