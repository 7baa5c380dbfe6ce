"""Cyclic projections in the core against their naive twin."""

from itertools import pairwise

import numpy as np
import pytest
from tests.reference import projections

from kernelweave import _core


def problem(rng, n=12, d=5, g=3, has_privileged=0.5, cap=2.0):
    X, Z = rng.normal(size=(2 * n, d)), rng.normal(size=(2 * n, g))
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return {
        "X": X,
        "Z": Z,
        "ends": np.arange(2 * n, dtype=np.int64).reshape(n, 2),
        "privileged_ends": rng.permutation(2 * n).astype(np.int64).reshape(n, 2),
        "sign": sign,
        "goal": np.where(sign > 0, 2.0, 9.0),
        "gamma": rng.uniform(0.5, 2.0, n),
        "cap": np.full(n, cap),
        "has_privileged": (rng.random(n) < has_privileged).astype(np.uint8),
        "reach": np.ones(n),
    }


def run(parts, orders, lam=0.7, corrected=True):
    n = len(parts["sign"])
    M, P = np.eye(parts["X"].shape[1]), np.eye(parts["Z"].shape[1])
    a, b = np.zeros(n), np.zeros(n)
    for order in orders:
        left_out = _core.project_pairs(**parts, order=order, M=M, P=P, lam=lam, corrected=corrected, a=a, b=b)
        assert left_out == 0
    return a, b, M, P


def naive(parts, orders, lam=0.7, corrected=True):
    n = len(parts["sign"])
    first, second = parts["ends"].T
    V = parts["X"][first] - parts["X"][second]
    third, fourth = parts["privileged_ends"].T
    W = (parts["Z"][third] - parts["Z"][fourth]) * parts["reach"][:, None]
    state = np.zeros(n), np.zeros(n), np.eye(V.shape[1]), np.eye(W.shape[1])
    for order in orders:
        names = ("sign", "goal", "gamma", "cap", "has_privileged")
        given = [parts[name] for name in names]
        state = projections.project_pairs(V, W, *given, lam, order, *state, corrected=corrected)
    return state


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 8, 11, 17])
@pytest.mark.parametrize("has_privileged", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("corrected", [True, False])
def test_projections_agree_with_the_naive_loop(rng, d, has_privileged, corrected):
    parts = problem(rng, d=d, g=d + 2, has_privileged=has_privileged, cap=2.0 if corrected else np.inf)
    orders = [rng.permutation(12) for _ in range(3)]
    a, b, M, P = run(parts, orders, corrected=corrected)
    expected = naive(parts, orders, corrected=corrected)
    np.testing.assert_allclose(a, expected[0], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(b, expected[1], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.tril(M), np.tril(expected[2]), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.tril(P), np.tril(expected[3]), rtol=1e-7, atol=1e-9)


def test_some_multipliers_are_given_back(rng):
    parts = problem(rng)
    seen = [run(parts, [np.arange(12)] * k)[0] for k in (1, 2, 3, 4)]
    assert any((later < earlier).any() for earlier, later in pairwise(seen))


def test_multipliers_stay_in_their_box(rng):
    parts = problem(rng, has_privileged=1.0, cap=0.05)
    a = run(parts, [rng.permutation(12) for _ in range(5)])[0]
    assert a.min() >= 0.0
    assert a.max() == 0.05


def test_privileged_differences_are_scaled_by_their_reach(rng):
    parts = problem(rng, has_privileged=1.0)
    parts["reach"] = rng.uniform(0.5, 1.5, 12)
    orders = [rng.permutation(12)]
    np.testing.assert_allclose(run(parts, orders)[1], naive(parts, orders)[1], rtol=1e-8)


def test_only_the_lower_triangle_is_touched(rng):
    parts = problem(rng, d=9, has_privileged=0.0)
    M = run(parts, [np.arange(12)])[2]
    np.testing.assert_array_equal(np.triu(M, 1), 0.0)
    assert np.abs(np.tril(M, -1)).max() > 0.0


def test_a_similar_pair_of_equal_points_does_nothing(rng):
    parts = problem(rng, has_privileged=0.0)
    parts["sign"][0], parts["X"][1] = 1.0, parts["X"][0]
    a, _, M, _ = run(parts, [np.array([0])])
    assert a[0] == 0.0
    np.testing.assert_array_equal(M, np.eye(5))


def test_distances_that_are_no_numbers_are_counted_and_left_out(rng):
    parts = problem(rng, has_privileged=0.0)
    n, M = 12, np.eye(5) * 1e308
    a, b = np.zeros(n), np.zeros(n)
    rest = {"order": np.arange(n), "P": np.eye(3), "lam": 1.0, "corrected": True, "a": a, "b": b}
    parts["X"] *= 1e10
    assert _core.project_pairs(**parts, M=M, **rest) == n
    assert not a.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends": np.full((12, 2), 24)}, "within the points"),
        ({"ends": np.full((12, 2), -1)}, "within the points"),
        ({"ends": np.zeros((12, 3), dtype=np.int64)}, "two points per pair"),
        ({"privileged_ends": np.zeros((11, 2), dtype=np.int64)}, "two points per pair"),
        ({"order": np.array([12])}, "order must name pairs"),
        ({"order": np.array([-1])}, "order must name pairs"),
        ({"sign": np.ones(11)}, "one entry per pair"),
        ({"M": np.eye(4)}, "metric must be square"),
        ({"Z": np.zeros((3, 3)), "has_privileged": np.ones(12, dtype=np.uint8)}, "within the points"),
    ],
)
def test_shapes_and_indices_are_checked(rng, change, message):
    parts = problem(rng) | {"order": np.arange(12), "M": np.eye(5), "P": np.eye(3), "a": np.zeros(12)}
    with pytest.raises(ValueError, match=message):
        _core.project_pairs(**(parts | {"b": np.zeros(12), "lam": 1.0, "corrected": True} | change))
