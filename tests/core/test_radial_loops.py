"""Exponentials of distances, many at a time, against numpy's."""

import numpy as np
import pytest

from kernelweave import _core

DTYPES = [np.float32, np.float64]


@pytest.mark.parametrize("factor", [-1e-3, -1.0, -50.0, 0.0, 0.7])
def test_the_exponential_is_right_to_the_last_digit(rng, factor):
    D = rng.uniform(0.0, 14.0, size=(13, 37))
    out = np.empty_like(D)
    _core.exp_scaled(D, factor, out)
    np.testing.assert_allclose(out, np.exp(factor * D), rtol=4.5e-16)


@pytest.mark.parametrize("dtype", DTYPES)
def test_families_of_exponentials_are_packed_and_applied_without_being_written_down(rng, dtype):
    n, kernels = 60, np.array([2, 0], dtype=np.uint64)
    X = rng.normal(size=(n, 3))
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    rates, factors, shifts = np.array([0.3, 2.0]), np.array([1.0, 0.5]), rng.normal(size=(3, n))
    V = rng.normal(size=(2, n))
    packed, products = np.zeros((3, n * (n + 1) // 2), dtype=dtype), np.zeros((3, 2, n))
    for start in range(0, n, 25):
        stop = min(start + 25, n)
        block = np.ascontiguousarray(D[start:stop, :stop])
        _core.exp_pack(block, start, kernels, rates, factors, shifts, packed)
        _core.exp_add_matvecs(block, start, kernels, rates, factors, V, products)
    for m, rate, factor in zip(kernels.astype(int), rates, factors, strict=True):
        K = factor * np.exp(-rate * D)
        expected = (K - shifts[m][:, None] - shifts[m])[np.tril_indices(n)]
        np.testing.assert_allclose(packed[m], expected, atol=1e-6 if dtype == np.float32 else 1e-14)
        np.testing.assert_allclose(products[m], V @ K, atol=1e-12)
    assert not packed[1].any()
    assert not products[1].any()


@pytest.mark.parametrize("shape", [(1, 1), (3, 37), (40, 600)])
@pytest.mark.parametrize("n_kernels", [0, 1, 5])
def test_weighted_sums_of_exponentials(rng, shape, n_kernels):
    D, out = rng.uniform(0.0, 14.0, size=shape), rng.normal(size=shape)
    rates, weights = rng.uniform(0.0, 9.0, size=n_kernels), rng.normal(size=n_kernels)
    expected = out.copy()
    for rate, weight in zip(rates, weights, strict=True):
        expected += weight * np.exp(-rate * D)
    _core.exp_sum(D, rates, weights, out)
    np.testing.assert_allclose(out, expected, atol=1e-14)


def test_the_exponential_far_out(rng):
    D = np.array([[0.0, 700.0, 708.5, 745.0, 1e5, np.inf, 5e-324, -700.0]])
    out = np.empty_like(D)
    _core.exp_scaled(D, -1.0, out)
    np.testing.assert_allclose(out, np.exp(-D), rtol=1e-15, atol=3e-308)
    assert out[0, 0] == 1.0
    assert (out[0, 2:6] == 0.0).all()
    D[0, 3] = np.nan
    _core.exp_scaled(D, -1.0, out)
    assert np.isnan(out[0, 3])


@pytest.mark.parametrize(
    ("rates", "weights", "out", "message"),
    [(1, 1, (2, 1), "shape of D"), (1, 1, (3, 2), "shape of D"), (1, 2, (2, 2), "one rate")],
)
def test_sums_of_exponentials_check_their_shapes(rates, weights, out, message):
    with pytest.raises(ValueError, match=message):
        _core.exp_sum(np.ones((2, 2)), np.ones(rates), np.ones(weights), np.ones(out))
