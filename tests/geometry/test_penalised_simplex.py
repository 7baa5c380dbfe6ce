"""The ridge and the power penalty on the simplex."""

import numpy as np
import pytest

from kernelweave.geometry import PowerSimplex, RidgeSimplex, Simplex


def common_level(eta, norms, theta):
    """The lambda of eta^3/theta + lambda eta^2 = norm^2/2, one for every positive norm."""
    used = norms > 0.0
    return (0.5 * norms[used] ** 2 - eta[used] ** 3 / theta) / eta[used] ** 2


@pytest.mark.parametrize("theta", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("size", [1e-4, 0.3, 1.0, 1e4])
def test_the_block_update_of_the_ridge_solves_its_cubic_with_one_level(theta, size, rng):
    norms = size * np.where(np.arange(9) < 3, 0.0, rng.random(9))
    eta = RidgeSimplex(theta).reweight(norms)
    levels = common_level(eta, norms, theta)
    np.testing.assert_allclose(levels, levels[0], rtol=1e-6, atol=1e-9 * max(1.0, 1.0 / theta))
    np.testing.assert_allclose(eta[:3], max(0.0, -levels[0] * theta), rtol=1e-6, atol=1e-12)
    assert eta.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_kernel_without_norm_has_weight_only_while_the_level_is_negative():
    norms = np.array([0.0, 1.0, 0.5])
    assert RidgeSimplex(theta=100.0).reweight(norms)[0] == 0.0
    assert RidgeSimplex(theta=0.01).reweight(norms)[0] > 0.3


def test_tied_norms_get_the_same_weight_to_the_last_bit():
    norms = np.array([2.0, 0.0, 0.3, 2.0, 0.3, 0.0, 2.0])
    for geometry in (RidgeSimplex(0.2), RidgeSimplex(40.0), PowerSimplex(1.0, 1.3), PowerSimplex(1.0, 4.0)):
        eta = geometry.reweight(norms)
        for value in (0.0, 0.3, 2.0):
            assert len(set(eta[norms == value])) == 1


def test_a_squared_power_is_the_ridge(rng):
    z, h, norms = rng.normal(size=8), rng.random(8), rng.random(8)
    norms[2] = 0.0
    root = rng.normal(size=(5, 8))
    for theta in (0.05, 1.0, 20.0):
        power, ridge = PowerSimplex(theta, 2.0), RidgeSimplex(theta)
        eta = Simplex().project(z)
        assert power.value(eta) == pytest.approx(ridge.value(eta), rel=1e-14)
        assert power.conjugate(h) == pytest.approx(ridge.conjugate(h), rel=1e-12)
        np.testing.assert_allclose(power.maximizer(h), ridge.maximizer(h), atol=1e-12)
        np.testing.assert_allclose(power.prox(z, 0.4), ridge.prox(z, 0.4), atol=1e-12)
        np.testing.assert_allclose(power.reweight(norms), ridge.reweight(norms), atol=1e-12)
        steps = [g.model_step(g.start(8), h, root.T @ root) for g in (power, ridge)]
        np.testing.assert_allclose(*steps, atol=1e-6)


@pytest.mark.parametrize("family", [RidgeSimplex, lambda theta: PowerSimplex(theta, 3.0)])
def test_theta_leads_from_the_average_to_the_simplex(family, rng):
    h, norms = rng.random(6), rng.random(6)
    np.testing.assert_allclose(family(1e-9).maximizer(h), np.full(6, 1 / 6), atol=1e-6)
    np.testing.assert_allclose(family(1e-12).reweight(norms), np.full(6, 1 / 6), atol=1e-6)
    np.testing.assert_allclose(family(1e9).maximizer(h), Simplex().maximizer(h), atol=1e-6)
    np.testing.assert_allclose(family(1e12).reweight(norms), Simplex().reweight(norms), atol=1e-6)


def test_the_penalty_is_the_conjugate_of_the_loss_on_the_slack():
    """Over zeta >= 0, the largest eta zeta - theta/2 zeta^q, by brute force."""
    theta, p = 0.7, 1.6
    q = p / (p - 1.0)
    slack = np.linspace(0.0, 5.0, 2_000_001)
    for weight in (0.2, 1.0):
        best = np.max(weight * slack - 0.5 * theta * slack**q)
        rest = np.max((1.0 - weight) * slack - 0.5 * theta * slack**q)
        assert PowerSimplex(theta, p).value(np.array([weight, 1.0 - weight])) == pytest.approx(
            best + rest, rel=1e-9
        )


@pytest.mark.parametrize("p", [1.001, 1.01, 8.0, 20.0, 60.0])
def test_extreme_powers_still_spend_the_mass_once(p, rng):
    geometry = PowerSimplex(1.0, p)
    h = np.array([1.0, 0.7, 0.4, 0.0, 0.0])
    best = geometry.maximizer(h)
    assert best.sum() == pytest.approx(1.0, abs=1e-12)
    reached = geometry.conjugate(h)
    for _ in range(200):
        eta = rng.dirichlet(np.full(5, 0.5))
        assert h @ eta - geometry.value(eta) <= reached + 1e-9
        near = 0.99 * best + 0.01 * eta
        assert h @ near - geometry.value(near) <= reached + 1e-12
    for norms in (h, 1e-3 * h, 1e-9 * h):
        assert geometry.reweight(norms).sum() == pytest.approx(1.0, abs=1e-12)


def test_between_neighbouring_levels_the_mass_is_split():
    """A high power makes the weights jump within one rounding of the level."""
    geometry = PowerSimplex(1.0, 40.0)
    h = np.array([1.0, 1.0, 0.5, 0.25])
    eta = geometry.maximizer(h)
    assert eta[0] == eta[1]
    assert eta[0] > eta[2] >= eta[3] >= 0.0
    assert geometry.conjugate(h) == pytest.approx(h @ eta - geometry.value(eta), abs=1e-12)
