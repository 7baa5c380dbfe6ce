"""The general ways to a model's minimiser: proximal steps and the interior point."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelweave.geometry import ElasticNetBall, Geometry, PowerSimplex
from kernelweave.geometry._interior import minimise as interior


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
    found = interior(H, b, np.full(8, 1 / 8), cap=cap, keep_mass=True)
    slopes = b - H @ found.x
    free = (found.x > 0.0) & (cap - found.x > 1e-6)
    level = slopes[free].mean()
    np.testing.assert_allclose(slopes[free], level, atol=1e-7)
    assert np.all(slopes[found.x == 0.0] <= level + 1e-7)
    assert np.all(slopes[cap - found.x <= 1e-6] >= level - 1e-7)
    assert found.x.sum() == pytest.approx(1.0, abs=1e-9)


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
