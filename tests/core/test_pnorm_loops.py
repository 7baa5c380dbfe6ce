"""The compiled loops of the p-norm problem against their plain twins."""

import numpy as np
import pytest
from tests.reference import pnorm

from kernelweave import _core


def model(Ks, A, dtype=np.float64):
    """Return the arguments that describe the model near A, for kernel weights of 1."""
    G = np.ascontiguousarray(Ks @ A)
    s = np.einsum("ic,jic->j", A, G)
    share = np.linspace(1.0, 2.0, len(Ks))
    share /= share.sum()
    return {
        "K": np.ascontiguousarray(Ks.sum(axis=0), dtype=dtype),
        "G": G,
        "share": share,
        "least_curvature": np.full(len(A), 1e-3),
        "H": np.zeros((A.shape[1], len(A)), dtype=dtype),
        "s": s,
    }


def model_value(Ks, A0, A, share, y, scale, q):
    """Return N times the model of the dual, from its definition."""
    S = A - A0
    s = [np.sum(A0 * (K @ A0)) + 2 * np.sum(S * (K @ A0)) for K in Ks]
    s = np.maximum(np.array(s) + share * np.sum(S * (Ks.sum(axis=0) @ S)), 0.0)
    return A[np.arange(len(y)), y].sum() - np.linalg.norm(np.sqrt(s), q) ** 2 / (2 * scale)


@pytest.mark.parametrize("p", [1.05, 1.5, 2.0])
def test_with_one_kernel_the_model_is_the_dual_and_visits_are_those_of_the_twin(rng, p):
    Ks, y = pnorm.pnorm_problem(0, n=25, n_kernels=1)
    weight, order, q = rng.uniform(0.5, 2.0, 25), rng.permutation(25), p / (p - 1.0)
    A = np.zeros((25, 3))
    moved = _core.ascend(**model(Ks, A), y=y, weight=weight, scale=1.0, q=q, order=order, A=A)
    expected = pnorm.ascend(Ks, np.zeros((25, 3)), y, weight, 1.0, q, order)
    assert moved > 0
    np.testing.assert_allclose(A, expected, atol=2e-4)  # the line searches stop at different places


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_energies_follow_the_coefficients(rng, dtype):
    Ks, y = pnorm.pnorm_problem(1, n=30)
    start = pnorm.ascend(Ks, np.zeros((30, 3)), y, np.ones(30), 0.5, 3.0, range(10))
    A, known = start.copy(), model(Ks, start, dtype)
    before = known["s"].copy()
    for _ in range(5):
        _core.ascend(**known, y=y, weight=np.ones(30), scale=0.5, q=3.0, order=rng.permutation(30), A=A)
    S, K, tolerance = A - start, Ks.sum(axis=0), 1e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(known["H"], (K @ S).T, atol=tolerance)
    expected = before + 2 * np.einsum("ic,jic->j", S, Ks @ start) + known["share"] * np.sum(S * (K @ S))
    np.testing.assert_allclose(known["s"], expected, rtol=10 * tolerance)


def test_every_visit_keeps_the_rows_feasible_and_raises_the_model(rng):
    Ks, y = pnorm.pnorm_problem(2, n=30)
    weight = rng.uniform(0.2, 1.5, 30)
    weight[4] = 0.0
    start = pnorm.ascend(Ks, np.zeros((30, 3)), y, weight, 0.3, 11.0, range(10))
    A, known = start.copy(), model(Ks, start)
    last = -np.inf
    for i in np.tile(rng.permutation(30), 3):
        _core.ascend(**known, y=y, weight=weight, scale=0.3, q=11.0, order=np.array([i]), A=A)
        value = model_value(Ks, start, A, known["share"], y, 0.3, 11.0)
        assert value >= last - 1e-12
        last = value
    cap = np.where(np.arange(3) == y[:, None], weight[:, None], 0.0)
    assert (cap + 1e-15 >= A).all()
    assert np.abs(A.sum(axis=1)).max() < 1e-15
    assert not A[4].any()


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
    A, y = np.zeros((3, 2)), np.array([0, 1, 0])
    known = model(np.eye(3)[None], A)
    known |= {"y": y, "weight": np.ones(3), "scale": 1.0, "q": 2.0, "order": np.arange(3), "A": A}
    s = known["s"]
    for bad in (
        {"y": np.array([0, 2, 0])},
        {"order": np.array([3])},
        {"weight": np.ones(2)},
        {"least_curvature": np.ones(2)},
        {"share": np.zeros(2)},
        {"s": np.zeros(2)},
        {"G": np.zeros((1, 2, 3))},
        {"H": np.zeros((3, 2))},
        {"scale": 0.0},
    ):
        with pytest.raises(ValueError, match="ascend"):
            _core.ascend(**(known | bad))
    with pytest.raises(ValueError, match="online_steps"):
        _core.online_steps(np.ones((2, 3)), y[:2], np.ones(2), np.array([0, 2]), 2.0, 1.0, np.ones((3, 2)), s)
