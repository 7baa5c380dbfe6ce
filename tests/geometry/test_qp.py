"""The small programs behind the Newton steps: exact on the simplex, interior point, proximal steps."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    Geometry,
    LpBall,
    PowerSimplex,
    RidgeSimplex,
    Simplex,
    _qp,
)
from kernelweave.geometry._qp import capped_simplex_step_at_most, interior_point_minimiser
from kernelweave.geometry.interior_point import Linearisation, interior_point


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
    x = BoxSimplex(theta=0.22).model_step(eta, h, H)
    slopes = h - H @ (x - eta)
    level = np.median(slopes[(x > 0.0) & (x < 0.22)])
    assert np.all(x[slopes < level - 1e-9] == 0.0)
    assert np.all(x[slopes > level + 1e-9] == 0.22)
    assert (x == 0.0).any()
    assert (x == 0.22).any()


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


@pytest.mark.parametrize("n", [1, 2, 5, 13])
@pytest.mark.parametrize("cap", [0.15, 0.3, 0.4, 0.7, 1.0])
def test_the_conjugate_of_the_capped_simplex_is_that_of_a_linear_program(rng, n, cap):
    """With a cap that is no 1/k the last weight gets what is left, not the cap."""
    cap = max(cap, 1.0 / n)
    for h in (rng.random(n), rng.normal(size=n), np.ones(n)):
        best = -linprog(-h, A_eq=np.ones((1, n)), b_eq=[1.0], bounds=[(0.0, cap)] * n).fun
        assert BoxSimplex(theta=cap).conjugate(h) == pytest.approx(best, abs=1e-10)


@dataclass
class HalfBox(Geometry):
    """{0 <= eta <= 1/2}: a geometry that brings only what it must."""

    def contains(self, eta):
        return bool(np.all(eta >= -1e-12) and np.all(eta <= 0.5 + 1e-12))

    def maximizer(self, h):
        return np.where(h >= 0.0, 0.5, 0.0)

    def start(self, n_kernels):
        return np.full(n_kernels, 0.5)

    def project(self, z):
        return np.clip(z, 0.0, 0.5)

    def reweight(self, norms):
        return np.full(len(norms), 0.5)


def test_a_geometry_that_can_project_has_newton_steps(rng):
    curvature = rng.uniform(0.5, 2.0, 6)
    eta, h = rng.uniform(0.0, 0.5, 6), rng.normal(size=6)
    x = HalfBox().model_step(eta, h, np.diag(curvature))
    np.testing.assert_allclose(x, np.clip(eta + h / curvature, 0.0, 0.5), atol=1e-10)


@pytest.mark.parametrize("rank", [2, 6, 20])
def test_its_newton_steps_are_right_for_any_curvature(rank, rng):
    root = rng.normal(size=(rank, 6))
    H, eta, h = root.T @ root, rng.uniform(0.0, 0.5, 6), rng.normal(size=6)

    def model(x):
        return -h @ (x - eta) + 0.5 * (x - eta) @ H @ (x - eta)

    best = minimize(
        model, eta, bounds=[(0.0, 0.5)] * 6, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12}
    )
    assert model(HalfBox().model_step(eta, h, H)) == pytest.approx(best.fun, abs=1e-9)


def test_a_linear_model_needs_no_curvature():
    x = HalfBox().model_step(np.full(3, 0.2), np.array([1.0, -1.0, 2.0]), np.zeros((3, 3)))
    np.testing.assert_allclose(x, [0.5, 0.0, 0.5], atol=1e-12)


@pytest.mark.parametrize("cap", [np.inf, 0.35])
def test_the_interior_point_names_the_weights_at_their_bounds(cap, rng):
    root = rng.normal(size=(10, 8))
    H, b = root.T @ root, 10.0 * rng.random(8)
    found = interior_point_minimiser(H, b, np.full(8, 1 / 8), upper=cap, unit_sum=True)
    slopes = b - H @ found.x
    free = ~found.at_zero & ~found.at_upper
    level = slopes[free].mean()
    np.testing.assert_allclose(slopes[free], level, atol=1e-7)
    assert found.at_zero.any()
    assert np.all(found.x[found.at_zero] <= 1e-9)
    assert np.all(slopes[found.at_zero] <= level + 1e-7)
    assert found.at_upper.any() == (cap < 1.0)
    assert np.all(cap - found.x[found.at_upper] <= 1e-9)
    assert np.all(slopes[found.at_upper] >= level - 1e-7)
    assert found.x.sum() == pytest.approx(1.0, abs=1e-9)


def test_the_interior_point_meets_its_equations_before_it_comes_near_its_bounds(monkeypatch, rng):
    ratios = []

    def watched(program, x, multipliers, finished):
        def finished_and_noted(at):
            ratios.append(at.error / at.gap)
            return finished(at)

        return interior_point(program, x, multipliers, finished_and_noted)

    monkeypatch.setattr(_qp, "interior_point", watched)
    for n in (10, 40):
        root = 1.0 + 0.3 * rng.normal(size=(n // 2, n))
        H, ball = root.T @ root, LpBall(50.0)  # a norm that bends sharply
        ball.model_step(ball.start(n), rng.uniform(0.2, 1.0, n) * H.max(), H)
    assert len(ratios) > 20
    assert max(ratios) <= 100.0


@pytest.mark.parametrize("cap", [0.05, 0.15, 1.0])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 20), lean=st.sampled_from([-1.0, -0.3, 0.3]))
def test_mass_may_be_left_over_where_the_sum_is_at_most_one(cap, seed, n, lean):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n + 3, n))
    H, h = root.T @ root, 5.0 * (lean + rng.random(n))
    eta = np.full(n, min(cap, 1.0 / n))
    x = capped_simplex_step_at_most(eta, h, H, cap)
    assert x.min() >= 0.0
    assert x.max() <= cap
    assert x.sum() <= 1.0 + 1e-12
    slopes = h - H @ (x - eta)
    best = linprog(-slopes, A_ub=np.ones((1, n)), b_ub=[1.0], bounds=[(0.0, cap)] * n)
    assert -best.fun - slopes @ x <= 1e-9 * (np.abs(h).max() + np.diagonal(H).max())


def test_the_interior_point_stops_when_told_and_counts_its_steps():
    class Square:
        """min |x - 2|^2 / 2 over 0 <= x <= 1."""

        upper = np.ones(3)

        def linearise(self, x, _multipliers):
            def factorise(theta):
                return lambda B: B / (1.0 + theta)[:, None]

            return Linearisation(x - 2.0, np.zeros(0), np.zeros((0, 3)), factorise)

    gaps = []

    def finished(at):
        gaps.append(at.gap)
        return at.gap <= 1e-9

    steps = interior_point(Square(), np.full(3, 0.5), np.zeros(0), finished)
    assert steps == len(gaps) - 1 < 20
    assert gaps[-1] <= 1e-9
    assert interior_point(Square(), np.full(3, 0.5), np.zeros(0), lambda _at: False, max_iter=2) == 2


@pytest.mark.parametrize(
    "geometry", [ElasticNetBall(0.6), PowerSimplex(1.0, 1.3), PowerSimplex(0.5, 4.0)], ids=str
)
def test_collinear_kernels_take_no_toll(geometry, rng):
    """One hundred nearly equal kernels: the model's gap, computed from scratch, vanishes."""
    root = 1.0 + 1e-4 * rng.normal(size=(30, 100))
    H, h, eta = root.T @ root, rng.uniform(0.9, 1.0, 100), geometry.start(100)
    x = geometry.model_step(eta, h, H)
    energies = h - H @ (x - eta)
    gap = geometry.value(x) + geometry.conjugate(energies) - x @ energies
    assert gap <= 1e-8 * np.abs(energies).max()
