"""The p-norm ball, from p = 1 to infinity."""

import numpy as np
import pytest

from kernelweave.geometry import LpBall, Simplex

POWERS = [1.001, 1.01, 1.2, 1.5, 2.0, 4.0, 10.0]


@pytest.mark.parametrize("p", POWERS)
def test_the_block_update_is_the_closed_form(p, rng):
    norms = rng.random(7)
    norms[3] = 0.0
    expected = norms ** (2.0 / (p + 1.0)) / np.sum(norms ** (2.0 * p / (p + 1.0))) ** (1.0 / p)
    eta = LpBall(p).reweight(norms)
    np.testing.assert_allclose(eta, expected, rtol=1e-12)
    assert eta[3] == 0.0


@pytest.mark.parametrize("p", POWERS)
def test_the_conjugate_is_the_dual_norm(p, rng):
    h = rng.random(7)
    q = p / (p - 1.0)
    assert LpBall(p).conjugate(h) == pytest.approx(
        h.max() * np.sum((h / h.max()) ** q) ** (1.0 / q), rel=1e-12
    )


def test_a_power_of_one_is_exactly_the_simplex(rng):
    root = rng.normal(size=(4, 6))
    for h in (rng.random(6), np.array([1.0, 2.0, 2.0, 0.0, 0.0, 2.0])):
        np.testing.assert_array_equal(LpBall(1.0).maximizer(h), Simplex().maximizer(h))
        np.testing.assert_array_equal(LpBall(1.0).reweight(h), Simplex().reweight(h))
        assert LpBall(1.0).conjugate(h) == Simplex().conjugate(h)
        outside = 3.0 + h
        np.testing.assert_array_equal(LpBall(1.0).project(outside), Simplex().project(outside))
    eta, h = np.full(6, 1 / 6), 5.0 + rng.random(6)
    np.testing.assert_array_equal(
        LpBall(1.0).model_step(eta, h, root.T @ root), Simplex().model_step(eta, h, root.T @ root)
    )


def test_a_power_of_infinity_is_exactly_the_sum_of_kernels(rng):
    ones, ball = np.ones(5), LpBall(np.inf)
    for h in (rng.random(5), np.zeros(5), np.array([1.0, 0.0, -1e-17, 2.0, 0.0])):
        np.testing.assert_array_equal(ball.maximizer(h), ones)
        np.testing.assert_array_equal(ball.reweight(np.maximum(h, 0.0)), ones)
    np.testing.assert_array_equal(ball.start(5), ones)
    np.testing.assert_array_equal(ball.model_step(0.5 * ones, rng.random(5), np.eye(5)), ones)
    np.testing.assert_array_equal(
        ball.project(np.array([2.0, -1.0, 0.5, 1.0, 7.0])), [1.0, 0.0, 0.5, 1.0, 1.0]
    )


def test_p_towards_one_leads_to_the_simplex(rng):
    h, norms = rng.random(6), rng.random(6)
    z = 2.0 * rng.normal(size=6)
    for p, close in ((1.01, 0.05), (1.001, 5e-3), (1.0001, 5e-4)):
        np.testing.assert_allclose(LpBall(p).reweight(norms), Simplex().reweight(norms), atol=close)
        np.testing.assert_allclose(LpBall(p).project(z), LpBall(1.0).project(z), atol=close)
        assert LpBall(p).conjugate(h) == pytest.approx(h.max(), rel=close)


def test_energies_and_norms_may_all_be_zero():
    for p in (1.0, 1.5, 2.0, 7.0):
        np.testing.assert_allclose(
            LpBall(p).maximizer(np.zeros(4)), np.full(4, 4.0 ** (-1.0 / p)), rtol=1e-15
        )
        np.testing.assert_array_equal(LpBall(p).reweight(np.zeros(4)), LpBall(p).start(4))


def test_negative_energies_alone_ask_for_nothing():
    for p in (1.0, 1.5, 2.0):
        np.testing.assert_array_equal(LpBall(p).maximizer(np.array([-1.0, -2.0])), np.zeros(2))
        assert LpBall(p).conjugate(np.array([-1.0, -2.0])) == 0.0


def gaussian_like_model(rng, n, rank):
    """Strongly collinear kernels, as the widths of one Gaussian are."""
    root = 1.0 + 0.3 * rng.normal(size=(rank, n)) * np.linspace(0.1, 1.0, n)
    return rng.uniform(0.5, 1.0, n), root.T @ root / rank


@pytest.mark.parametrize("p", POWERS)
def test_the_model_step_meets_its_optimality_condition(p, rng):
    h, H = gaussian_like_model(rng, 40, 12)
    eta = LpBall(p).start(40)
    for _ in range(3):
        x = LpBall(p).model_step(eta, h, H)
        energies = h - H @ (x - eta)
        assert np.sum(x**p) ** (1.0 / p) == pytest.approx(1.0, abs=1e-9)
        # Holder's inequality between x and its positive energies is tight exactly at the optimum.
        gain = np.maximum(energies, 0.0)
        dual = gain.max() * np.sum((gain / gain.max()) ** (p / (p - 1.0))) ** ((p - 1.0) / p)
        assert dual - x @ energies <= 1e-9 * dual
        eta, h = x, np.maximum(energies, 1e-3)


def test_a_zero_kernel_gets_no_weight_and_disturbs_nobody(rng):
    root = rng.normal(size=(6, 4))
    root[:, 1] = 0.0
    h = np.array([0.6, 0.0, 0.9, 0.4])
    keep = [0, 2, 3]
    for p in (1.2, 2.0, 10.0):
        eta = LpBall(p).start(4)
        eta[1] = 0.0
        x = LpBall(p).model_step(eta, h, root.T @ root)
        assert x[1] == 0.0
        alone = LpBall(p).model_step(eta[keep], h[keep], root.T[keep] @ root[:, keep])
        np.testing.assert_allclose(x[keep], alone, atol=1e-9)


def test_a_model_with_its_minimum_inside_the_ball_is_minimised_there():
    eta, h = np.array([0.6, 0.8]), np.array([-0.5, -0.5])
    x = LpBall(2.0).model_step(eta, h, np.eye(2))
    np.testing.assert_allclose(x, [0.1, 0.3], atol=1e-6)
    eta = np.array([0.3, 0.7])
    np.testing.assert_allclose(
        LpBall(1.0).model_step(eta, -0.2 * np.ones(2), np.eye(2)), [0.1, 0.5], atol=1e-6
    )
