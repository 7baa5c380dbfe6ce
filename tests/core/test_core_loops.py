"""The compiled loops against their numpy twins."""

import os
from pathlib import Path

import numpy as np
import pytest
from tests.reference import loops

from kernelweave import _core

DTYPES = [np.float32, np.float64]
PLACE = np.array([0], dtype=np.uint64)


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
def test_taking_samples_keeps_what_is_between_them(rng, dtype, chosen):
    matrices = random_grams(rng, 3, 70)
    packed, rows = packed_by_core(matrices, dtype), np.array(chosen, dtype=np.uint64)
    out = np.empty((3, len(chosen) * (len(chosen) + 1) // 2), dtype=dtype)
    _core.take(packed, rows, out, 2)
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
def test_samples_that_cannot_be_taken_are_refused(rng, chosen, entries, message):
    packed = packed_by_core(random_grams(rng, 1, 5), np.float64)
    with pytest.raises(ValueError, match=message):
        _core.take(packed, np.array(chosen, dtype=np.uint64), np.empty((1, entries)))


def test_packing_reads_the_lower_triangle_only(rng):
    (K,) = random_grams(rng, 1, 70)
    expected = packed_by_core([K], np.float64)
    np.testing.assert_array_equal(packed_by_core([np.tril(K)], np.float64), expected)


@pytest.mark.parametrize("n", [1, 5, 32, 33, 100])
def test_a_gram_matrix_passes_inspection(rng, n):
    (K,) = random_grams(rng, 1, n)
    minors, asymmetry = _core.inspect(K, np.sqrt(np.diagonal(K)) * (1 + 1e-9), rng.normal(size=(2, n)))
    assert minors
    assert abs(asymmetry) <= 1e-13 * n**1.5 * np.abs(K).max()


@pytest.mark.parametrize("place", [(0, 0), (3, 69), (69, 3), (40, 39), (69, 69)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e9])
def test_inspection_finds_a_bad_entry_wherever_it_is(rng, place, value):
    (K,) = random_grams(rng, 1, 70)
    roots = np.sqrt(np.diagonal(K)) * (1 + 1e-9)
    K[place] = value
    minors, asymmetry = _core.inspect(K, roots, rng.normal(size=(2, 70)))
    assert not (minors and abs(asymmetry) < 1e-9)  # above the diagonal only the asymmetry tells


@pytest.mark.parametrize("size", [1e-9, 1e-3])
def test_inspection_measures_asymmetry(rng, size):
    (K,) = random_grams(rng, 1, 70)
    K[50, 2] += size
    left, right = probes = rng.normal(size=(2, 70))
    expected = size * (left[50] * right[2] - right[50] * left[2])
    found = _core.inspect(K, np.sqrt(np.diagonal(K)) * 2.0, probes)[1]
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-11)


def test_inspection_sees_an_asymmetry_whose_rows_add_up_to_nothing(rng):
    (K,) = random_grams(rng, 1, 40)
    i = np.arange(40)
    K[i, (i + 1) % 40] += 0.1
    K[(i + 1) % 40, i] -= 0.1
    assert abs(_core.inspect(K, np.sqrt(np.diagonal(K)) * 2.0, rng.normal(size=(2, 40)))[1]) > 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n", [1, 40, 300, 1100])
def test_passes_over_many_matrices_do_what_they_do_for_one(rng, n, dtype, n_threads):
    matrices = random_grams(rng, 4, n)
    roots, shifts = np.sqrt([np.diagonal(K) for K in matrices]) * 2.0, rng.normal(size=(4, n))
    matrices[2][n - 1, 0] += 1e-3
    probes, V = rng.normal(size=(2, 2, n))
    packed = np.empty((4, n * (n + 1) // 2), dtype=dtype)
    even = np.zeros((n, n))
    reports = _core.admit_all(matrices, roots, probes, shifts, packed, n_threads, even)
    total = sum(K - shift[:, None] - shift for K, shift in zip(matrices, shifts, strict=True))
    np.testing.assert_allclose(even, np.tril(total), atol=1e-12 * np.abs(total).max())
    upper = _core.UpperSums(matrices, probes, n_threads).finish()
    for K, root, (minors, lower), above in zip(matrices, roots, reports, upper, strict=True):
        expected = _core.inspect(K, root, probes)
        assert minors == expected[0]
        assert lower + above == pytest.approx(expected[1], abs=1e-9 * n)
    np.testing.assert_array_equal(packed, packed_by_core(matrices, dtype, shifts))
    diagonals = np.empty((4, n))
    _core.diagonals(matrices, diagonals, n_threads)
    np.testing.assert_array_equal(diagonals, [np.diagonal(K) for K in matrices])
    images = np.empty((4, 2, n))
    _core.images_all(matrices, V, images, n_threads)
    for K, image in zip(matrices, images, strict=True):
        lower = np.tril(K) + np.tril(K, -1).T
        np.testing.assert_allclose(image, V @ lower, atol=1e-11 * n * np.abs(K).max())
    eta, image = np.array([0.5, 0.0, 2.0, 1.0]), np.empty((2, n))
    _core.image_all(matrices, eta, V, image, n_threads)
    np.testing.assert_allclose(
        image, np.tensordot(eta, images, axes=1), atol=1e-11 * n * np.abs(images).max()
    )
    alone = np.empty((2, n))
    _core.image_all(matrices, eta, V, alone, 1)
    np.testing.assert_array_equal(image, alone)  # threads do not change the digits
    chosen = np.unique([0, n // 2, n - 1]).astype(np.uint64)
    means = np.empty((4, n))
    _core.reference_means(matrices, chosen, means, n_threads)
    for K, mean in zip(matrices, means, strict=True):
        rows = K[chosen.astype(int)].mean(axis=0)
        np.testing.assert_allclose(mean, rows - 0.5 * rows[chosen.astype(int)].mean(), atol=1e-12 * n)


@pytest.mark.parametrize(("n", "n_kernels"), [(1, 1), (40, 5), (1100, 3)])
def test_the_image_of_a_sum_is_the_sum_of_the_images(rng, n, n_kernels):
    packed = packed_by_core(random_grams(rng, n_kernels, n), np.float32)
    eta, V = rng.random(n_kernels), rng.normal(size=(2, n))
    eta[0] = 0.0 if n_kernels > 1 else 1.0
    image, sizes, alone = np.empty((3, 2, n))
    _core.image(packed, eta, V, image, sizes, 3)
    for grams, vectors, found in ((packed, V, image), (np.abs(packed), np.abs(V), sizes)):
        images = np.empty((n_kernels, n, 2))
        _core.images(grams, np.ascontiguousarray(vectors.T), images)
        expected = np.tensordot(eta, images, axes=1).T
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11 * np.abs(images).max())
    _core.image(packed, eta, V, alone, np.empty((2, n)), 1)
    np.testing.assert_array_equal(image, alone)  # threads do not change the digits


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("n", "n_kernels"), [(1, 1), (40, 4), (41, 6), (1100, 3)])
def test_many_matrices_are_combined_by_their_lower_triangles(rng, n, n_kernels, dtype, n_threads):
    matrices = random_grams(rng, n_kernels, n)
    eta, shift = rng.random(n_kernels), rng.normal(size=n)
    eta[n_kernels // 2] = 0.0
    total = np.tensordot(eta, matrices, axes=1) - shift[:, None] - shift
    for K in matrices:
        K[np.triu_indices(n, 1)] += 1.0  # which is not looked at
    out = rng.normal(size=(n, n)).astype(dtype)
    _core.combine_all(matrices, eta, shift, out, n_threads)
    np.testing.assert_allclose(out, total, atol=32 * np.finfo(dtype).eps * np.abs(total).max())
    np.testing.assert_array_equal(out, out.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_threads", [0, 1, 3])
@pytest.mark.parametrize("size", [1, 5, 5000])
def test_touching_writes_within_the_array_only(size, dtype, n_threads):
    around = np.ones((3, size), dtype=dtype)
    _core.touch(around[1:2], n_threads)
    assert around[1, 0] == 0.0
    np.testing.assert_array_equal(around[[0, 2]], 1.0)


@pytest.mark.parametrize("n", [1, 4, 33, 120])
@pytest.mark.parametrize("columns", [1, 3])
def test_images_of_blocks_of_rows_add_up_to_those_of_the_matrix(rng, n, columns):
    (K,) = random_grams(rng, 1, n)
    V = rng.normal(size=(columns, n)) * rng.integers(0, 2, size=(columns, n))
    out = np.zeros((columns, n))
    for start in range(0, n, 7):
        stop = min(start + 7, n)
        _core.add_images(np.tril(K)[start:stop, :stop], start, V, out)
    np.testing.assert_allclose(out, V @ K, rtol=1e-12, atol=1e-12 * n * np.abs(K).max())


@pytest.mark.parametrize("columns", [0, 1, 5])
def test_squared_distances_are_exactly_symmetric(rng, columns):
    X = rng.normal(size=(23, columns))
    out = np.empty((23, 23))
    _core.squared_distances(X, np.ascontiguousarray(X.T), out)
    np.testing.assert_allclose(out, ((X[:, None] - X[None]) ** 2).sum(axis=2), rtol=1e-14)
    np.testing.assert_array_equal(out, out.T)
    assert not np.diagonal(out).any()


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
    V = rng.normal(size=(n, 3))
    V[rng.random(n) < 0.3] = 0.0  # rows that are not support vectors
    K = np.empty((n, n), dtype=dtype)
    _core.combine(packed, eta, K, n_threads)
    images, energies = np.empty((4, n, 3)), np.empty(4)
    _core.images(packed, V, images, n_threads)
    _core.energies(packed, V, energies, n_threads)
    tight = dict(rtol=1e-10, atol=1e-9 * n)
    loose = dict(rtol=1e-6, atol=1e-5 * n) if dtype == np.float32 else tight
    np.testing.assert_allclose(K, loops.combine(packed, eta), **loose)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(images, loops.images(packed, V), **tight)
    np.testing.assert_allclose(energies, loops.energies(packed, V), **tight)


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
        (lambda: _core.inspect(np.ones((2, 3)), np.ones(2), np.ones((2, 2))), "square"),
        (lambda: _core.inspect(np.ones((2, 2)), np.ones(3), np.ones((2, 3))), "n entries"),
        (lambda: _core.add_images(np.ones((2, 2)), 0, np.ones((1, 1)), np.ones((1, 1))), "per sample"),
        (lambda: _core.add_images(np.ones((2, 2)), 0, np.ones((1, 2)), np.ones((2, 2))), "shape of V"),
        (lambda: _core.add_images(np.ones((2, 1)), 0, np.ones((1, 2)), np.ones((1, 2))), "diagonal"),
        (lambda: _core.exp_scaled(np.ones((2, 2)), 1.0, np.ones((1, 2))), "shape of D"),
        (lambda: _core.squared_distances(np.ones((2, 2)), np.ones((1, 2)), np.ones((2, 2))), "column"),
        (lambda: _core.squared_distances(np.ones((2, 2)), np.ones((2, 2)), np.ones((1, 2))), "out"),
        (lambda: _core.mirror(np.ones((2, 3))), "square"),
        (
            lambda: _core.exp_pack(
                np.eye(2), 0, PLACE, np.ones(2), np.ones(1), np.eye(1, 2), np.ones((1, 3))
            ),
            "one rate",
        ),
        (
            lambda: _core.exp_pack(np.eye(2), 0, PLACE + 1, *np.ones((2, 1)), np.eye(1, 2), np.ones((1, 3))),
            "within the stack",
        ),
        (
            lambda: _core.exp_pack(np.eye(2), 0, PLACE, *np.ones((2, 1)), np.eye(1, 2), np.ones((1, 2))),
            "triangle",
        ),
        (
            lambda: _core.exp_images(
                np.eye(2), 0, PLACE, *np.ones((2, 1)), np.ones((1, 2)), np.ones((1, 2, 2))
            ),
            "shape of V",
        ),
        (
            lambda: _core.exp_images(
                np.eye(2), 1, PLACE, *np.ones((2, 1)), np.ones((1, 2)), np.ones((1, 1, 2))
            ),
            "diagonal",
        ),
        (lambda: _core.diagonals([np.ones((2, 3))], np.ones((1, 2))), "square"),
        (lambda: _core.diagonals([np.ones((2, 2))], np.ones((2, 2))), "per matrix"),
        (lambda: _core.reference_means([np.eye(2)], np.array([2], dtype=np.uint64), np.eye(1, 2)), "within"),
        (lambda: _core.reference_means([np.eye(2)], np.array([], dtype=np.uint64), np.eye(1, 2)), "one row"),
        (lambda: _core.images_all([np.eye(2)], np.ones((1, 2)), np.ones((1, 2, 2))), "out"),
        (lambda: _core.image_all([np.eye(2)], np.ones(2), np.eye(2), np.eye(2)), "one weight per matrix"),
        (lambda: _core.image_all([np.eye(2)], np.ones(1), np.eye(2), np.eye(1, 2)), "shape of V"),
        (lambda: _core.combine_all([np.eye(2)], np.ones(1), np.ones(2), np.ones((2, 3))), "square"),
        (lambda: _core.combine_all([np.eye(2)], np.ones(2), np.ones(2), np.eye(2)), "one weight per matrix"),
        (lambda: _core.combine_all([np.eye(2)], np.ones(1), np.ones(3), np.eye(2)), "one entry per column"),
        (
            lambda: _core.admit_all([np.eye(2)], np.eye(1, 2), np.eye(2), np.eye(1, 2), np.ones((1, 2))),
            "n\\(n\\+1\\)/2",
        ),
        (
            lambda: _core.admit_all([np.eye(2)], np.eye(2), np.eye(2), np.eye(1, 2), np.ones((1, 3))),
            "per matrix",
        ),
        (
            lambda: _core.admit_all([np.eye(0)], *np.ones((2, 1, 0)), np.ones((1, 0)), np.ones((1, 0))),
            "n > 0",
        ),
        (
            lambda: _core.admit_all(
                [np.eye(2)], np.eye(1, 2), np.eye(2), np.eye(1, 2), np.ones((1, 3)), 1, np.eye(3)
            ),
            "even must be square",
        ),
        (lambda: _core.hinge_loss(np.ones(2), np.ones(2), np.ones(3)), "one entry per sample"),
        (lambda: _core.hinge_loss(*np.ones((3, 0))), "one entry per sample"),
        (lambda: _core.image(np.ones((2, 3), "f"), np.ones(3), *np.ones((3, 2, 2))), "one weight per kernel"),
        (lambda: _core.image(np.ones((2, 4), "f"), np.ones(2), *np.ones((3, 2, 2))), "n\\(n\\+1\\)/2"),
        (
            lambda: _core.image(np.ones((2, 3), "f"), np.ones(2), np.eye(2), np.eye(1, 2), np.eye(2)),
            "out must have the shape of V",
        ),
        (
            lambda: _core.image(np.ones((2, 3), "f"), np.ones(2), np.eye(2), np.eye(2), np.eye(1, 2)),
            "sizes must have the shape of V",
        ),
        (lambda: _core.combine(np.ones((2, 3)), np.ones(3), np.empty((2, 2))), "one weight per kernel"),
        (lambda: _core.combine(np.ones((2, 4)), np.ones(2), np.empty((2, 2))), "n\\(n\\+1\\)/2"),
        (lambda: _core.images(np.ones((2, 3)), np.ones((2, 1)), np.empty((2, 2, 2))), "shape"),
        (lambda: _core.energies(np.ones((2, 3)), np.ones((3, 1)), np.empty(2)), "n\\(n\\+1\\)/2"),
        (lambda: _core.energies(np.ones((2, 3)), np.ones((2, 1)), np.empty(3)), "one entry per kernel"),
    ],
)
def test_wrong_shapes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("n", [1, 2, 11, 13, 60, 700])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("positive", [0.0, 0.1, 0.5, 1.0])
def test_the_hinge_loss_is_that_of_the_best_kink(rng, n, ties, positive):
    for _ in range(5):
        f = rng.integers(-3, 4, size=n) / 2.0 if ties else rng.normal(size=n)
        y = np.where(rng.random(n) < positive, 1.0, -1.0)
        C = rng.integers(0, 3, size=n).astype(float) if ties else rng.random(n)
        C[0] += 0.25
        bias, value = _core.hinge_loss(f, y, C)
        losses = np.array([C @ np.maximum(0.0, 1.0 - y * (f + b)) for b in y - f])
        assert value == pytest.approx(C @ np.maximum(0.0, 1.0 - y * (f + bias)), rel=1e-12, abs=1e-12)
        assert value == pytest.approx(losses.min(), rel=1e-9, abs=1e-9)
        best = (y - f)[losses <= losses.min() + 1e-10]
        assert best.min() - 1e-12 <= bias <= best.max() + 1e-12
        if 0.0 < (C[y > 0]).sum() < C.sum() and ties:  # a flat stretch is told by its ends
            used = np.isin(y - f, (y - f)[C > 0.0]) & (losses <= losses.min() + 1e-10)
            assert bias == pytest.approx(0.5 * ((y - f)[used].min() + (y - f)[used].max()))


def test_the_hinge_loss_of_nan_is_nan():
    f, y = np.zeros(40), np.where(np.arange(40) % 2, 1.0, -1.0)
    for i in (0, 13, 39):
        broken = f.copy()
        broken[i] = np.nan
        assert np.isnan(_core.hinge_loss(broken, y, np.ones(40))[1])


def test_wrong_dtypes_are_refused():
    with pytest.raises(TypeError):
        _core.combine(np.ones((2, 3), dtype=np.int64), np.ones(2), np.empty((2, 2)))
    with pytest.raises(TypeError):
        _core.combine(np.ones((2, 3), dtype=np.float32), np.ones(2), np.empty((2, 2)))


def test_the_instrumented_core_is_the_one_under_test():
    wanted = os.environ.get("KERNELWEAVE_CORE_DIR")
    if wanted is None:
        pytest.skip("the core is instrumented by `make sanitize` only")
    assert Path(_core.__file__).parent == Path(wanted)
