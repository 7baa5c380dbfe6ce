"""The elastic-net ball between its two ends."""

import numpy as np
import pytest

from kernelweave.geometry import ElasticNetBall, LpBall, Simplex


def test_the_ends_are_the_simplex_and_the_ball(rng):
    h, norms, z = rng.random(6), rng.random(6), 2.0 * rng.normal(size=6)
    root = rng.normal(size=(3, 6))
    H = root.T @ root
    np.testing.assert_array_equal(ElasticNetBall(1.0).maximizer(h), Simplex().maximizer(h))
    np.testing.assert_array_equal(ElasticNetBall(1.0).reweight(norms), Simplex().reweight(norms))
    np.testing.assert_array_equal(ElasticNetBall(1.0).project(3.0 + z), Simplex().project(3.0 + z))
    np.testing.assert_allclose(ElasticNetBall(0.0).maximizer(h), LpBall(2.0).maximizer(h), rtol=1e-14)
    np.testing.assert_allclose(ElasticNetBall(0.0).reweight(norms), LpBall(2.0).reweight(norms), rtol=1e-12)
    np.testing.assert_allclose(ElasticNetBall(0.0).project(z), LpBall(2.0).project(z), rtol=1e-12)
    for v, p in ((1.0, 1.0), (0.0, 2.0)):
        net, ball = ElasticNetBall(v), LpBall(p)
        step = net.model_step(net.start(6), 4.0 + h, H)
        np.testing.assert_allclose(step, ball.model_step(ball.start(6), 4.0 + h, H), atol=1e-7)


def test_the_way_between_the_ends_is_continuous(rng):
    h, norms, z = rng.random(6), rng.random(6), 2.0 * rng.normal(size=6)
    for v, end in ((1e-7, 0.0), (1.0 - 1e-7, 1.0)):
        for verb, argument in (("maximizer", h), ("reweight", norms), ("project", z)):
            near, there = (getattr(ElasticNetBall(u), verb)(argument) for u in (v, end))
            np.testing.assert_allclose(near, there, atol=1e-3)


@pytest.mark.parametrize("v", [0.1, 0.5, 0.9, 0.999])
def test_the_maximizer_is_a_shrunk_copy_with_one_multiplier(v, rng):
    h = rng.random(8)
    eta = ElasticNetBall(v).maximizer(h)
    used = eta > 0.0
    multipliers = h[used] / (v + 2.0 * (1.0 - v) * eta[used])
    np.testing.assert_allclose(multipliers, multipliers[0], rtol=1e-11)
    assert np.all(h[~used] <= multipliers[0] * v + 1e-14)
    assert v * eta.sum() + (1.0 - v) * eta @ eta == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("v", [0.1, 0.5, 0.9, 0.999])
def test_the_block_update_solves_its_cubic_with_one_multiplier(v, rng):
    norms = rng.random(8)
    norms[[1, 4]] = 0.0
    eta = ElasticNetBall(v).reweight(norms)
    used = norms > 0.0
    left = 2.0 * (1.0 - v) * eta[used] ** 3 + v * eta[used] ** 2
    multipliers = norms[used] ** 2 / (2.0 * left)
    np.testing.assert_allclose(multipliers, multipliers[0], rtol=1e-10)
    np.testing.assert_array_equal(eta[~used], 0.0)
    assert v * eta.sum() + (1.0 - v) * eta @ eta == pytest.approx(1.0, abs=1e-14)


def test_the_two_norm_is_squared():
    """Half and half, one kernel: 0.5 t + 0.5 t^2 = 1 at t = 1 only with the square."""
    assert ElasticNetBall(0.5).value(np.array([1.0, 0.0])) == 0.0
    assert ElasticNetBall(0.5).value(np.array([0.7, 0.7])) == np.inf
    assert ElasticNetBall(0.5).value(np.array([0.6, 0.6])) == 0.0  # 0.6 + 0.36; without the square 1.02


def test_the_multiplier_shrinks_small_weights_to_zero_exactly():
    eta = ElasticNetBall(0.9).model_step(np.full(3, 0.3), np.array([2.0, 0.1, 2.0]), 0.01 * np.eye(3))
    assert eta[1] == 0.0
    assert eta[0] == pytest.approx(eta[2], rel=1e-9)
