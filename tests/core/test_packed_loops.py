"""The compiled loops over packed triangles, and those that fill them, against their twins."""

import numpy as np
import pytest
from tests.reference import loops

from kernelweave import _core

DTYPES = [np.float32, np.float64]
SINGLE, SINGLE_LONG = np.ones((2, 3), np.float32), np.ones((2, 4), np.float32)


def random_grams(rng, n_kernels, n):
    factors = rng.normal(size=(n_kernels, n, n // 2 + 1))
    return [A @ A.T for A in factors]


def packed_by_core(matrices, dtype, shifts=None):
    n = matrices[0].shape[0]
    out = np.empty((len(matrices), n * (n + 1) // 2), dtype=dtype)
    shifts = np.zeros((len(matrices), n)) if shifts is None else shifts
    for m, K in enumerate(matrices):
        for start in range(0, n, 50):  # in blocks, as the library does
            _core.pack(K[start : start + 50], start, shifts[m], out[m])
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 7, 64, 65, 130])
def test_packing_keeps_the_lower_triangle(rng, n, dtype):
    (K,) = random_grams(rng, 1, n)
    np.testing.assert_array_equal(packed_by_core([K], dtype)[0], loops.pack(K, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_packing_shifts_before_it_rounds(rng, dtype):
    (K,) = random_grams(rng, 1, 70)
    K += 1e4
    shifts = K.mean(axis=1)[None] - 0.5 * K.mean()
    packed = packed_by_core([K], dtype, shifts)[0]
    expected = loops.pack(K, centre=True, dtype=np.float64)
    np.testing.assert_allclose(packed, expected, atol=1e-5 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("chosen", [[], [0], [69], [0, 1, 2], [3, 20, 21, 69], list(range(70))])
def test_gathering_samples_keeps_what_is_between_them(rng, dtype, chosen):
    matrices = random_grams(rng, 3, 70)
    packed, rows = packed_by_core(matrices, dtype), np.array(chosen, dtype=np.uint64)
    out = np.empty((3, len(chosen) * (len(chosen) + 1) // 2), dtype=dtype)
    _core.gather(packed, rows, out, 2)
    for K, one in zip(matrices, out, strict=True):
        np.testing.assert_array_equal(one, loops.pack(K[np.ix_(chosen, chosen)], dtype=dtype))


@pytest.mark.parametrize(
    ("chosen", "entries", "message"),
    [
        ([2, 1], 3, "must ascend"),
        ([1, 1], 3, "must ascend"),
        ([1, 5], 3, "within the matrices"),
        ([1, 2], 4, "one triangle"),
    ],
)
def test_samples_that_cannot_be_gathered_are_refused(rng, chosen, entries, message):
    packed = packed_by_core(random_grams(rng, 1, 5), np.float64)
    with pytest.raises(ValueError, match=message):
        _core.gather(packed, np.array(chosen, dtype=np.uint64), np.empty((1, entries)))


def test_packing_reads_the_lower_triangle_only(rng):
    (K,) = random_grams(rng, 1, 70)
    expected = packed_by_core([K], np.float64)
    np.testing.assert_array_equal(packed_by_core([np.tril(K)], np.float64), expected)


@pytest.mark.parametrize(("n", "n_kernels"), [(1, 1), (40, 5), (1100, 3)])
def test_the_product_with_a_sum_is_the_sum_of_the_products_and_so_is_its_size(rng, n, n_kernels):
    packed = packed_by_core(random_grams(rng, n_kernels, n), np.float32)
    eta, V = rng.random(n_kernels), rng.normal(size=(2, n))
    eta[0] = 0.0 if n_kernels > 1 else 1.0
    product, sizes, alone = np.empty((3, 2, n))
    _core.matvec_and_size(packed, eta, V, product, sizes, 3)
    for grams, vectors, found in ((packed, V, product), (np.abs(packed), np.abs(V), sizes)):
        products = np.empty((n_kernels, 2, n))
        _core.matvecs(grams, vectors, products)
        expected = np.tensordot(eta, products, axes=1)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11 * np.abs(products).max())
    _core.matvec_and_size(packed, eta, V, alone, np.empty((2, n)), 1)
    np.testing.assert_array_equal(product, alone)  # threads do not change the digits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 9, 65])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_only_the_entries_asked_for_are_computed(rng, n, share, dtype):
    packed, needed = packed_by_core(random_grams(rng, 3, n), dtype), (rng.random((2, n)) < share)
    V = np.where(rng.random((2, n)) < 0.7, rng.normal(size=(2, n)), 0.0) * needed
    found = np.full((3, 2, n), np.nan)
    _core.matvecs(packed, V, found, 2, needed.astype(np.uint8))
    expected = loops.matvecs(packed, V.T, needed.T).transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9 * n)
    assert not found[:, ~needed].any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 64, 65, 200])
def test_the_mirror_shows_the_lower_triangle(rng, n, dtype):
    K = rng.normal(size=(n, n)).astype(dtype)
    expected = np.tril(K) + np.tril(K, -1).T
    _core.mirror(K, 2)
    np.testing.assert_array_equal(K, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 9, 65, 200])
def test_passes_agree_with_their_twins(rng, n, n_threads, dtype):
    matrices = random_grams(rng, 4, n)
    packed = packed_by_core(matrices, dtype)
    eta = np.array([0.5, 0.0, 1.25, 0.25])
    V = rng.normal(size=(3, n))
    V[:, rng.random(n) < 0.3] = 0.0  # samples that are not support vectors
    K = np.empty((n, n), dtype=dtype)
    _core.combine(packed, eta, K, n_threads)
    products, energies = np.empty((4, 3, n)), np.empty(4)
    _core.matvecs(packed, V, products, n_threads)
    _core.energies(packed, V, energies, n_threads)
    tight = dict(rtol=1e-10, atol=1e-9 * n)
    loose = dict(rtol=1e-6, atol=1e-5 * n) if dtype == np.float32 else tight
    np.testing.assert_allclose(K, loops.combine(packed, eta), **loose)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(products.transpose(0, 2, 1), loops.matvecs(packed, V.T), **tight)
    np.testing.assert_allclose(energies, loops.energies(packed, V.T), **tight)
    if dtype == np.float32:
        product, sizes = np.empty((2, 3, n))
        _core.matvec_and_size(packed, eta, V, product, sizes, n_threads)
        for found, expected in zip((product, sizes), loops.matvec_and_size(packed, eta, V), strict=True):
            np.testing.assert_allclose(found, expected, **tight)


def test_combining_many_kernels_rounds_like_single_additions(rng):
    n = 40
    packed = packed_by_core(random_grams(rng, 30, n), np.float32)
    eta = rng.random(30)
    K = np.empty((n, n), dtype=np.float32)
    _core.combine(packed, eta, K)
    exact = loops.combine(packed.astype(np.float64), eta)
    assert np.abs(K - exact).max() <= 2.0**-24 * 2 * np.sqrt(30) * np.abs(exact).max()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _core.pack(np.ones((2, 1)), 0, np.empty(2), np.empty(3)), "diagonal"),
        (lambda: _core.pack(np.ones((2, 2)).T[::2], 0, np.empty(2), np.empty(3)), "one piece"),
        (lambda: _core.pack(np.ones((2, 2)), 0, np.empty(2), np.empty(2)), "triangle"),
        (lambda: _core.pack(np.ones((2, 2)), 0, np.empty(1), np.empty(3)), "shift"),
        (lambda: _core.mirror(np.ones((2, 3))), "square"),
        (
            lambda: _core.matvec_and_size(SINGLE, np.ones(3), *np.ones((3, 2, 2))),
            "one weight per kernel",
        ),
        (
            lambda: _core.matvec_and_size(SINGLE_LONG, np.ones(2), *np.ones((3, 2, 2))),
            "n\\(n\\+1\\)/2",
        ),
        (
            lambda: _core.matvec_and_size(SINGLE, np.ones(2), np.eye(2), np.eye(1, 2), np.eye(2)),
            "out must have the shape of V",
        ),
        (
            lambda: _core.matvec_and_size(SINGLE, np.ones(2), np.eye(2), np.eye(2), np.eye(1, 2)),
            "sizes must have the shape of V",
        ),
        (lambda: _core.combine(np.ones((2, 3)), np.ones(3), np.empty((2, 2))), "one weight per kernel"),
        (lambda: _core.combine(np.ones((2, 4)), np.ones(2), np.empty((2, 2))), "n\\(n\\+1\\)/2"),
        (lambda: _core.matvecs(np.ones((2, 3)), np.ones((1, 2)), np.empty((2, 2, 2))), "shape"),
        (
            lambda: _core.matvecs(
                np.ones((2, 3)), np.ones((1, 2)), np.empty((2, 1, 2)), 1, np.ones((2, 1), dtype=np.uint8)
            ),
            "needed must have the shape of V",
        ),
        (lambda: _core.energies(np.ones((2, 3)), np.ones((1, 3)), np.empty(2)), "n\\(n\\+1\\)/2"),
        (lambda: _core.energies(np.ones((2, 3)), np.ones((1, 2)), np.empty(3)), "one entry per kernel"),
    ],
)
def test_wrong_shapes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_wrong_dtypes_are_refused():
    with pytest.raises(TypeError):
        _core.combine(np.ones((2, 3), dtype=np.int64), np.ones(2), np.empty((2, 2)))
    with pytest.raises(TypeError):
        _core.combine(np.ones((2, 3), dtype=np.float32), np.ones(2), np.empty((2, 2)))
