"""The exact quadratic program behind the Newton steps on the simplex."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from kernelweave.geometry import BoxSimplex, RidgeSimplex, Simplex
from kernelweave.geometry._quadratic import CappedQuadratic, minimise


def duality_gap(x, slopes, cap):
    """How much the best vertex of the capped simplex gains along the slopes: 0 exactly at the optimum."""
    best, left = 0.0, 1.0
    for s in np.sort(slopes)[::-1]:
        best += s * min(cap, left)
        left -= min(cap, left)
    return best - slopes @ x


def random_problem(rng, n, kind):
    root = rng.normal(size=(n + 3, n))
    if kind == "collinear":
        root = 1.0 + 1e-3 * root
    if kind == "low rank":
        root = root[: max(1, n // 4)]
    b = rng.random(n) * np.abs(root.T @ root).max()
    if kind == "twins":
        root[:, n // 2 :] = root[:, : n - n // 2]
        b[n // 2 :] = b[: n - n // 2]
    return root.T @ root, b


@pytest.mark.parametrize("kind", ["definite", "collinear", "low rank", "twins"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 30), cap=st.sampled_from([0.08, 0.1, 0.25, 0.5, 1.0]))
def test_the_model_step_is_optimal_whatever_the_curvature(kind, seed, n, cap):
    rng = np.random.default_rng(seed)
    H, h = random_problem(rng, n, kind)
    cap = max(cap, 1.0 / n)
    geometry = BoxSimplex(theta=cap)
    eta = geometry.maximizer(rng.random(n)) if seed % 2 else geometry.start(n)
    x = geometry.model_step(eta, h, H)
    assert x.min() >= 0.0
    assert x.max() <= cap
    assert x.sum() == pytest.approx(1.0, abs=1e-10)
    scale = h @ eta + np.diagonal(H).max()
    assert duality_gap(x, h - H @ (x - eta), cap) <= 1e-9 * scale


def test_zeros_and_caps_are_exact(rng):
    root = rng.normal(size=(30, 12))
    H, h, eta = root.T @ root / 30, 3.0 * rng.random(12), np.full(12, 1 / 12)
    x = BoxSimplex(theta=0.2).model_step(eta, h, H)
    slopes = h - H @ (x - eta)
    level = np.median(slopes[(x > 0.0) & (x < 0.2)])
    assert np.all(x[slopes < level - 1e-9] == 0.0)
    assert np.all(x[slopes > level + 1e-9] == 0.2)
    assert (x == 0.0).any()
    assert (x == 0.2).any()


def test_twins_keep_their_split(rng):
    root = rng.normal(size=(8, 5))
    root[:, 3] = root[:, 1]
    h = np.array([0.2, 1.0, 0.5, 1.0, 0.1])
    eta = np.array([0.2, 0.3, 0.2, 0.3, 0.0])
    x = Simplex().model_step(eta, h, root.T @ root)
    assert x[1] == pytest.approx(x[3], rel=1e-4)
    lopsided = np.array([0.2, 0.6, 0.2, 0.0, 0.0])
    z = Simplex().model_step(lopsided, h, root.T @ root)
    assert z[1] + z[3] == pytest.approx(x[1] + x[3], abs=1e-6)
    assert z[1] - z[3] == pytest.approx(0.6, abs=1e-3)


def test_a_vertex_without_free_weights_can_be_left_and_can_be_optimal():
    H = 0.01 * np.eye(4)
    vertex = np.array([0.5, 0.5, 0.0, 0.0])
    stay = BoxSimplex(theta=0.5).model_step(vertex, np.array([3.0, 2.0, 1.0, 0.0]), H)
    np.testing.assert_array_equal(stay, vertex)
    leave = BoxSimplex(theta=0.5).model_step(vertex, np.array([3.0, 0.0, 1.0, 2.0]), H)
    np.testing.assert_array_equal(leave, [0.5, 0.0, 0.0, 0.5])


def test_a_linear_model_is_answered_by_the_best_vertex():
    h = np.array([1.0, 4.0, 2.0, 3.0])
    start = np.full(4, 0.25)
    np.testing.assert_allclose(Simplex().model_step(start, h, np.zeros((4, 4))), [0, 1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(
        BoxSimplex(theta=0.4).model_step(start, h, np.zeros((4, 4))), [0, 0.4, 0.2, 0.4], atol=1e-12
    )
    even = Simplex().model_step(start, np.zeros(4), np.zeros((4, 4)))
    np.testing.assert_allclose(even, start, atol=1e-12)


def test_a_curvature_with_rounding_of_its_own_is_forgiven(rng):
    root = rng.normal(size=(4, 20))
    H = root.T @ root
    H -= 1e-10 * np.abs(H).max() * np.eye(20)  # slightly indefinite
    h, eta = 10.0 * rng.random(20), np.full(20, 0.05)
    x = Simplex().model_step(eta, h, H)
    assert Simplex().value(x) == 0.0
    assert duality_gap(x, h - H @ (x - eta), 1.0) <= 1e-6 * np.diagonal(H).max()


@pytest.mark.parametrize("cap", [0.15, 0.25, 1.0])
def test_the_feasible_descent_alone_gets_there_from_anywhere(cap, rng):
    n = 12
    for _ in range(10):
        root = rng.normal(size=(n + 5, n))
        A, b = root.T @ root, 20.0 * rng.random(n)
        start = BoxSimplex(theta=cap).maximizer(rng.random(n))
        problem = CappedQuadratic(A, b, cap if cap < 1.0 else np.inf)
        x = problem.descend(start.copy())
        assert BoxSimplex(theta=cap).value(x) == 0.0
        assert duality_gap(x, b - A @ x, cap) <= 1e-9 * np.abs(A).max()
        np.testing.assert_allclose(minimise(A, b, cap, start), x, atol=1e-9)


def test_the_ridge_adds_its_own_curvature(rng):
    root = rng.normal(size=(3, 6))
    H, h, eta, theta = root.T @ root, rng.random(6), np.full(6, 1 / 6), 0.3
    x = RidgeSimplex(theta).model_step(eta, h, H)
    assert duality_gap(x, h - H @ (x - eta) - x / theta, 1.0) <= 1e-10


def test_many_collinear_kernels_from_a_cold_start(rng):
    t = np.linspace(0.0, 1.0, 60)
    widths = 2.0 ** np.linspace(-3, 6, 117)
    root = np.exp(-(t[:, None] ** 2) / (2 * widths**2)) + 0.01 * rng.normal(size=(60, 117))
    H, h = root.T @ root, rng.uniform(0.5, 1.0, 117)
    for geometry, cap in ((Simplex(), 1.0), (BoxSimplex(nu=0.5), 2.0 / 117), (BoxSimplex(theta=0.2), 0.2)):
        eta = geometry.start(117)
        x = geometry.model_step(eta, h, H)
        assert duality_gap(x, h - H @ (x - eta), cap) <= 1e-9 * np.diagonal(H).max()


def test_pairs_descend_from_a_start_whose_last_digit_sticks_out(rng):
    root = rng.normal(size=(9, 6))
    problem = CappedQuadratic(root.T @ root, 5.0 * rng.random(6), 0.3)
    start = np.array([0.3 + 6e-17, 0.3, 0.2, 0.2, 0.0, -1e-18])
    x = problem.descend_in_pairs(start)
    assert x.min() >= 0.0
    assert x.max() <= 0.3
    assert duality_gap(x, problem.b - problem.A @ x, 0.3) <= 1e-6 * np.abs(problem.b).max()


@pytest.mark.parametrize("n", [1, 2, 5, 13])
@pytest.mark.parametrize("cap", [0.15, 0.3, 0.4, 0.7, 1.0])
def test_the_conjugate_of_the_capped_simplex_is_that_of_a_linear_program(rng, n, cap):
    """With a cap that is no 1/k the last weight gets what is left, not the cap."""
    cap = max(cap, 1.0 / n)
    for h in (rng.random(n), rng.normal(size=n), np.ones(n)):
        best = -linprog(-h, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=[(0.0, cap)] * n).fun
        assert BoxSimplex(theta=cap).conjugate(h) == pytest.approx(best, abs=1e-10)
