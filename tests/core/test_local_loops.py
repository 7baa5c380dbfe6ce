"""The loops with weights per sample against their numpy twins."""

import numpy as np
import pytest
from tests.reference import loops

from kernelweave import _core

DTYPES = [np.float32, np.float64]


def stack(rng, n_kernels, n, dtype):
    factors = rng.normal(size=(n_kernels, n, n // 2 + 1))
    return np.array([loops.pack(A @ A.T, dtype=dtype) for A in factors])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9, 65])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_combining_weighs_rows_and_columns(rng, n, dtype, n_threads):
    packed, eta, local = stack(rng, 3, n, dtype), np.array([0.5, 0.0, 2.0]), rng.random((3, n))
    local[rng.random((3, n)) < 0.3] = 0.0
    out = np.full((n, n), np.nan, dtype=dtype)
    _core.combine_local(packed, eta, local, out, n_threads)
    tolerance = dict(rtol=1e-4, atol=1e-4) if dtype == np.float32 else dict(rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(out, loops.combine_local(packed, eta, local), **tolerance)
    np.testing.assert_array_equal(out, out.T)


def test_rows_longer_than_an_accumulator_are_combined_whole(rng):
    n = 1100
    K = np.add.outer(np.arange(n), np.arange(n)) / n
    packed, local = K[np.tril_indices(n)][None], rng.random((1, n))
    out = np.empty((n, n))
    _core.combine_local(packed, np.ones(1), local, out)
    np.testing.assert_allclose(out, K * np.outer(local, local), rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 9, 65])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_products_weigh_the_coefficients_for_every_kernel(rng, n, dtype, n_threads):
    packed, local, V = stack(rng, 3, n, dtype), rng.random((3, n)), rng.normal(size=(2, n))
    local[:, ::3] = 0.0
    out = np.full((3, 2, n), np.nan)
    _core.column_weighted_matvecs(packed, V, local, out, n_threads)
    expected = loops.column_weighted_matvecs(packed, V.T, local).transpose(0, 2, 1)
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("eta", "local", "out"), [((2,), (3, 4), (4, 4)), ((3,), (3, 5), (4, 4)), ((3,), (3, 4), (4, 5))]
)
def test_combining_refuses_shapes_that_do_not_fit(eta, local, out):
    with pytest.raises(ValueError, match=r"combine_local|local"):
        _core.combine_local(np.zeros((3, 10)), np.zeros(eta), np.zeros(local), np.zeros(out))


@pytest.mark.parametrize(
    ("V", "local", "out"),
    [((1, 5), (3, 4), (3, 1, 4)), ((1, 4), (2, 4), (3, 1, 4)), ((1, 4), (3, 4), (3, 2, 4))],
)
def test_products_refuse_shapes_that_do_not_fit(V, local, out):
    with pytest.raises(ValueError, match=r"column_weighted_matvecs|local"):
        _core.column_weighted_matvecs(np.zeros((3, 10)), np.zeros(V), np.zeros(local), np.zeros(out))
