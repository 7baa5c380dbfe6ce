"""Passes over matrices as the user gave them: inspected, combined, measured and sampled where they lie."""

import weakref
from itertools import product

import numpy as np
import pytest

from kernelweave import _core

DTYPES = [np.float32, np.float64]


def random_grams(rng, n_kernels, n):
    return [A @ A.T / n for A in rng.normal(size=(n_kernels, n, n))]


def packed_by_loop(matrices, dtype, shifts):
    lower = np.tril_indices(len(matrices[0]))
    return [
        (K - shift[:, None] - shift)[lower].astype(dtype) for K, shift in zip(matrices, shifts, strict=True)
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "n_kernels", "n_threads"), [(1, 1, 1), (40, 5, 3), (1030, 3, 2), (2060, 9, 2)])
def test_matrices_are_inspected_and_combined_in_one_reading(rng, n, n_kernels, n_threads, dtype):
    matrices = random_grams(rng, n_kernels, n)
    roots, shift = np.sqrt([np.diagonal(K) for K in matrices]) * (1 + 1e-9), rng.normal(size=n)
    matrices[-1][n - 1, 0] += 1e-3
    probes, eta = rng.normal(size=(2, n)), rng.random(n_kernels)
    out, alone, anew = np.full((3, n, n), np.nan, dtype=dtype)
    reports = _core.admit_and_combine(matrices, roots, probes, eta, shift, out, n_threads)
    upper = _core.UpperSums(matrices, probes, n_threads).finish()
    for K, root, (minors, lower_sum), upper_sum in zip(matrices, roots, reports, upper, strict=True):
        expected = _core.inspect(K, root, probes)
        assert minors == expected[0]
        assert lower_sum + upper_sum == pytest.approx(expected[1], abs=1e-12 * n**1.5)
    lower = np.tril_indices(n)
    expected = sum(w * K for w, K in zip(eta, matrices, strict=True)) - shift[:, None] - shift
    tolerance = 1e-6 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(out[lower], expected[lower], rtol=tolerance, atol=tolerance * n)
    _core.admit_and_combine(matrices, roots, probes, eta, shift, alone, 1)
    np.testing.assert_array_equal(out[lower], alone[lower])  # threads do not change the digits
    _core.combine_all(matrices, eta, shift, anew, n_threads)
    np.testing.assert_allclose(anew[lower], out[lower], rtol=tolerance, atol=tolerance * n)


@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("place", [(0, 0), (3, 69), (69, 3), (40, 39), (69, 69)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e9])
def test_combining_finds_a_bad_entry_wherever_it_is(rng, place, value, equal):
    """With equal diagonals one comparison tells all; else rows are compared with every root."""
    matrices = [A @ A.T for A in rng.normal(size=(6, 70, 90))]
    if equal:
        matrices = [K / np.sqrt(np.outer(K.diagonal(), K.diagonal())) for K in matrices]
    roots = np.sqrt([np.diagonal(K) for K in matrices]) * (1 + 1e-9)
    matrices[4][place] = value
    out, eta = np.empty((70, 70)), np.full(6, 0.5)
    probes = rng.normal(size=(2, 70))
    reports = _core.admit_and_combine(matrices, roots, probes, eta, np.zeros(70), out)
    upper = _core.UpperSums(matrices, probes).finish()
    for m, ((minors, lower), above) in enumerate(zip(reports, upper, strict=True)):
        assert (minors and abs(lower + above) < 1e-9) == (m != 4)
        assert minors or place[0] >= place[1]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize(("n", "n_kernels"), [(1, 1), (9, 3), (300, 6)])
def test_upper_sums_are_those_of_a_plain_loop_whoever_adds_them(rng, n, n_kernels, n_threads):
    matrices, probes = list(rng.normal(size=(n_kernels, n, n))), rng.normal(size=(2, n))
    expected = [
        sum(K[i, j] * (probes[0, i] * probes[1, j] - probes[1, i] * probes[0, j]) for i, j in pairs(n))
        for K in matrices
    ]
    found = _core.UpperSums(matrices, probes, n_threads).finish()
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert found == _core.UpperSums(matrices, probes, 1).finish()


def pairs(n):
    return [(i, j) for i in range(n) for j in range(i + 1, n)]


def test_upper_sums_that_nobody_asks_for_are_given_up(rng):
    """The helper is told to stop before the matrices it reads are gone, whoever lets go of them last."""
    probes = rng.normal(size=(2, 900))
    for _ in range(10):
        matrices = [np.ones((900, 900)) for _ in range(4)]
        seen = [weakref.ref(K) for K in matrices]
        sums = _core.UpperSums(matrices, probes, 2)
        del matrices
        assert all(K() is not None for K in seen)
        del sums
        assert all(K() is None for K in seen)


def test_upper_sums_are_the_same_whatever_passes_come_between(rng):
    matrices, probes = random_grams(rng, 3, 700), rng.normal(size=(2, 700))
    sums, V, h = _core.UpperSums(matrices, probes, 2), rng.normal(size=(1, 700)), np.empty(3)
    for _ in range(30):
        _core.energies_all(matrices, V, h, 2)
    assert sums.finish() == _core.UpperSums(matrices, probes, 1).finish()


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("n", "n_kernels"), [(1, 1), (41, 5), (1030, 3)])
def test_energies_and_samples_of_matrices_as_they_are(rng, n, n_kernels, n_threads):
    matrices = random_grams(rng, n_kernels, n)
    V = rng.normal(size=(2, n))
    V[:, ::3] = 0.0
    V[1, n // 2] = 1.0
    h = np.empty(n_kernels)
    _core.energies_all(matrices, V, h, n_threads)
    np.testing.assert_allclose(h, [0.5 * np.vdot(V @ K, V) for K in matrices], rtol=1e-10, atol=1e-10)
    upset = [np.tril(K) for K in matrices]  # the lower triangle is enough
    again = np.empty(n_kernels)
    _core.energies_all(upset, V, again, 1)
    np.testing.assert_array_equal(again, h)
    runs = np.unique(np.concatenate([[0, n // 3, n - 1], np.arange(n // 2, n // 2 + n // 4)]))
    for dtype, rows in product(DTYPES, (np.unique([0, n // 3, n - 1]), runs, np.arange(n))):
        shifts = rng.normal(size=(n_kernels, rows.size))
        packed = np.empty((n_kernels, rows.size * (rows.size + 1) // 2), dtype=dtype)
        assert _core.take_all(matrices, rows.astype(np.uint64), shifts, packed, n_threads)
        few = [K[np.ix_(rows, rows)] for K in matrices]
        np.testing.assert_allclose(packed, packed_by_loop(few, dtype, shifts), rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("what", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sample_tells_of_entries_that_are_no_numbers(rng, dtype, what):
    rows = np.arange(0, 210, 3, dtype=np.uint64)  # 70: enough for the loops of wide registers
    matrices, shifts = random_grams(rng, 3, 210), np.zeros((3, 70))
    packed = np.empty((3, 70 * 71 // 2), dtype=dtype)
    matrices[1][5, 5] = what  # of no sample
    assert _core.take_all(matrices, rows, shifts, packed, 2)
    for i, j in ((0, 0), (3, 0), (207, 207), (207, 0), (207, 204), (102, 60), (150, 150), (99, 3)):
        kept, matrices[2][i, j] = matrices[2][i, j], what
        assert not _core.take_all(matrices, rows, shifts, packed, 2)
        matrices[2][i, j] = kept
    assert _core.take_all(matrices, rows, shifts, packed, 2)
    shifts[0, 33] = what
    assert not _core.take_all(matrices, rows, shifts, packed, 1)


@pytest.mark.parametrize("n", [1, 70, 300])
def test_a_product_and_its_sizes(rng, n):
    K, V = rng.normal(size=(n, n)).astype(np.float32), rng.normal(size=(2, n))
    out, sizes = np.empty((2, 2, n))
    _core.product(K, V, out, sizes, 2)
    np.testing.assert_allclose(out, V @ K.T.astype(float), atol=1e-12 * n)
    np.testing.assert_allclose(sizes, np.abs(V) @ np.abs(K.T.astype(float)), rtol=1e-12)


def combined(K, roots=None, probes=None, eta=None, shift=None, out=None):
    roots = np.ones((1, 2)) if roots is None else roots
    probes = np.ones((2, 2)) if probes is None else probes
    eta, shift = np.ones(1) if eta is None else eta, np.ones(2) if shift is None else shift
    return _core.admit_and_combine(K, roots, probes, eta, shift, np.ones((2, 2)) if out is None else out)


def taken(K, chosen=(0,), shifts=None, packed=None):
    shifts = np.ones((1, 1)) if shifts is None else shifts
    packed = np.ones((1, 1)) if packed is None else packed
    return _core.take_all(K, np.array(chosen, dtype=np.uint64), shifts, packed)


def one_product(K=None, out=None, sizes=None):
    K = np.eye(2) if K is None else K
    out, sizes = (np.ones((1, 2)) if one is None else one for one in (out, sizes))
    return _core.product(K.astype(np.float32), np.ones((1, 2)), out, sizes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: combined([np.eye(2)], out=np.ones((2, 3))), "square"),
        (lambda: combined([np.eye(3)]), "square and of one size"),
        (lambda: combined([np.eye(2)], roots=np.ones((1, 3))), "one row of n entries per matrix"),
        (lambda: combined([np.eye(2)], probes=np.ones((3, 2))), "two rows of n entries"),
        (lambda: combined([np.eye(2)], eta=np.ones(2)), "one weight per matrix"),
        (lambda: combined([np.eye(2)], shift=np.ones(3)), "one entry per column"),
        (lambda: _core.UpperSums([], np.ones((2, 2))), "at least one matrix"),
        (lambda: _core.UpperSums([np.eye(2)], np.ones((1, 2))), "two rows"),
        (lambda: _core.UpperSums([np.eye(3)], np.ones((2, 2))), "square and of one size"),
        (lambda: taken([np.eye(2)], chosen=[2]), "within K"),
        (lambda: taken([np.eye(2)], shifts=np.ones((1, 2))), "row of chosen entries"),
        (lambda: taken([np.eye(2)], packed=np.ones((1, 2))), "one triangle per matrix"),
        (lambda: taken([]), "at least one matrix"),
        (lambda: _core.energies_all([np.eye(2)], np.ones((1, 3)), np.ones(1)), "of one size"),
        (lambda: _core.energies_all([np.eye(2)], np.ones((1, 2)), np.ones(2)), "one entry per matrix"),
        (lambda: one_product(np.eye(3)), "one row per column of V"),
        (lambda: one_product(out=np.ones((2, 2))), "out must have the shape of V"),
        (lambda: one_product(sizes=np.ones((2, 2))), "sizes must have the shape of V"),
    ],
)
def test_what_does_not_fit_together_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
