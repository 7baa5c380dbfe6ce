"""The best intercept against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from tests.reference import loops

from kernelweave.learners.bias import hinge_bias, margin_quantile, squared_hinge_bias


def sample(seed, n, grid):
    rng = np.random.default_rng(seed)
    f = rng.integers(-3, 4, size=n) / 2.0 if grid else rng.normal(size=n)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return f, y, rng.integers(0, 3, size=n) + 0.5 * (np.arange(n) < 2)


@given(st.integers(0, 10_000), st.integers(2, 12), st.booleans())
def test_no_kink_beats_the_hinge_bias(seed, n, grid):
    f, y, C = sample(seed, n, grid)
    loss = lambda b: C @ np.maximum(0.0, 1.0 - y * (f + b))  # noqa: E731
    best = min(loss(b) for b in y - f)
    assert loss(hinge_bias(f, y, C)) == pytest.approx(best, abs=1e-10)


@given(st.integers(0, 10_000), st.integers(2, 12), st.booleans())
def test_no_search_beats_the_squared_hinge_bias(seed, n, grid):
    f, y, C = sample(seed, n, grid)
    loss = lambda b: 0.5 * C @ np.maximum(0.0, 1.0 - y * (f + b)) ** 2  # noqa: E731
    best = minimize_scalar(loss, bounds=(-10.0, 10.0), method="bounded", options={"xatol": 1e-10}).fun
    assert loss(squared_hinge_bias(f, y, C)) <= best + 1e-9


@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(0.01, 0.99))
def test_no_kink_beats_the_margin_quantile(seed, n, share):
    f, _, C = sample(seed, max(n, 2), seed % 2 == 0)
    mass = share * C.sum()
    loss = lambda r: C @ np.maximum(0.0, r - f) - mass * r  # noqa: E731
    assert loss(margin_quantile(f, C, mass)) == pytest.approx(min(loss(r) for r in f), abs=1e-10)


def test_the_bias_sits_in_the_middle_of_a_flat_stretch():
    f, y = np.array([2.0, -2.0]), np.array([1.0, -1.0])
    assert hinge_bias(f, y, np.ones(2)) == pytest.approx(0.0)


def test_one_sided_losses_have_a_bias_too():
    f, y = np.array([0.5, 3.0, -4.0]), np.array([1.0, 1.0, -1.0])
    b = squared_hinge_bias(f, y, np.ones(3))
    assert (y * (f + b) >= 1.0 - 1e-12).all()
    assert loops.squared_hinge_primal(np.eye(3), f, y, 1.0).value == pytest.approx(0.5 * f @ f)


@pytest.mark.parametrize("price", [0.7, 0.9])
def test_two_ways_of_adding_up_many_prices_may_differ(rng, price):
    y = np.ones(200_000)
    y[:2] = -1.0
    C = np.where(y > 0, price, 0.0)  # all on one side: the flat stretch begins with the last kink
    f = rng.normal(size=y.size)
    b = hinge_bias(f, y, C)
    assert C @ np.maximum(0.0, 1.0 - y * (f + b)) <= 1e-6
