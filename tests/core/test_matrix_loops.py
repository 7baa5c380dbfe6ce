"""Passes over matrices as the user gave them: checked, packed, combined and multiplied where they lie."""

import numpy as np
import pytest
from tests.reference import loops

from kernelweave import _core

DTYPES = [np.float32, np.float64]
# One row; less than a block of rows; a few; more than an accumulator holds.
SIZES = [1, 9, 70, 1100]


def random_grams(rng, n_kernels, n):
    return [A @ A.T / n for A in rng.normal(size=(n_kernels, n, n // 2 + 1))]


def roots_of(matrices, factor=1.0 + 1e-9):
    return np.sqrt([np.diagonal(K) for K in matrices]) * factor


def upset(matrices):
    """The same lower triangles, and nonsense above."""
    return [np.tril(K) + np.triu(np.full(K.shape, 7.0), 1) for K in matrices]


def assert_near(found, expected, digits=1e-11):
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits * np.abs(expected).max())


@pytest.mark.parametrize("n_threads", [1, 3])
def test_every_pass_agrees_with_its_twin(rng, n_threads):
    n, n_kernels = 37, 5
    matrices, V = random_grams(rng, n_kernels, n), rng.normal(size=(2, n))
    shifts, eta, roots = rng.normal(size=(n_kernels, n)), rng.normal(size=n_kernels), roots_of(matrices)
    eta[1] = 0.0
    matrices[3] = matrices[3] * 1.01  # entries beyond what the roots allow
    probes, needed = rng.normal(size=(2, n)), (rng.random((2, n)) < 0.6).astype(np.uint8)
    reports = _core.check_matrices(matrices, roots, probes, n_threads)
    expected = loops.check_matrices(matrices, roots, probes)
    assert [minors for minors, _ in reports] == [minors for minors, _ in expected]
    assert [found for _, found in reports] == pytest.approx([found for _, found in expected], abs=1e-9)
    chosen = np.array([0, 4, 5, 36])
    out = np.empty((n_kernels, n))
    _core.reference_means(matrices, chosen.astype(np.uint64), out, n_threads)
    assert_near(out, loops.reference_means(matrices, chosen))
    _core.diagonals(matrices, out, n_threads)
    np.testing.assert_array_equal(out, [np.diagonal(K) for K in matrices])
    given, lower = upset(matrices), matrices
    combined, products, h = np.empty((n, n)), np.empty((n_kernels, 2, n)), np.empty(n_kernels)
    _core.combine_matrices(given, eta, shifts[0], combined, n_threads)
    assert_near(combined, loops.combine_matrices(lower, eta, shifts[0]))
    _core.energies_of_matrices(given, V, h, n_threads)
    assert_near(h, loops.energies_of_matrices(lower, V))
    _core.matvecs_of_matrices(given, V, products, n_threads)
    assert_near(products, loops.matvecs_of_matrices(lower, V))
    _core.matvecs_of_matrices(given, V * needed, products, n_threads, needed)
    assert_near(products, loops.matvecs_of_matrices(lower, V * needed, needed))
    product = np.empty((2, n))
    _core.matvec_of_matrices(given, eta, V, product, n_threads)
    assert_near(product, loops.matvec_of_matrices(lower, eta, V))
    for dtype in DTYPES:
        packed = np.empty((n_kernels, n * (n + 1) // 2), dtype=dtype)
        _core.pack_matrices(given, shifts, packed, n_threads)
        assert_near(packed, loops.pack_matrices(lower, shifts, dtype), np.finfo(dtype).eps)
        few = np.empty((n_kernels, 10), dtype=dtype)
        some = np.ascontiguousarray(shifts[:, chosen])
        _core.gather_matrices(given, chosen.astype(np.uint64), some, few, n_threads)
        assert_near(few, loops.gather_matrices(lower, chosen, some, dtype), np.finfo(dtype).eps)


@pytest.mark.parametrize("n", SIZES)
def test_gram_matrices_pass_the_check(rng, n):
    matrices, probes = random_grams(rng, 3, n), rng.normal(size=(2, n))
    for minors, asymmetry in _core.check_matrices(matrices, roots_of(matrices), probes, 2):
        assert minors
        assert abs(asymmetry) <= 1e-13 * n**1.5


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("place", [(0, 0), (3, 69), (69, 3), (40, 39), (69, 69)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e9])
def test_the_check_finds_a_bad_entry_wherever_it_is_and_blames_no_other_matrix(rng, place, value, n_threads):
    matrices = random_grams(rng, 6, 70)
    roots, probes = roots_of(matrices), rng.normal(size=(2, 70))
    matrices[4][place] = value
    reports = _core.check_matrices(matrices, roots, probes, n_threads)
    assert [minors for minors, _ in reports] == [m != 4 for m in range(6)]
    assert all(abs(asymmetry) < 1e-9 for m, (_, asymmetry) in enumerate(reports) if m != 4)


@pytest.mark.parametrize("size", [1e-9, 1e-3])
@pytest.mark.parametrize("place", [(50, 2), (2, 50)])
def test_the_check_measures_asymmetry(rng, size, place):
    matrices, (left, right) = random_grams(rng, 2, 70), rng.normal(size=(2, 70))
    roots = roots_of(matrices, 2.0)
    matrices[1][place] += size
    expected = size * (left[place[0]] * right[place[1]] - right[place[0]] * left[place[1]])
    found = _core.check_matrices(matrices, roots, np.array([left, right]))
    assert found[1][1] == pytest.approx(expected, rel=1e-3, abs=1e-11)
    assert found[0][1] == pytest.approx(0.0, abs=1e-11)


def test_the_check_sees_an_asymmetry_whose_rows_add_up_to_nothing(rng):
    (K,) = random_grams(rng, 1, 40)
    i = np.arange(40)
    K[i, (i + 1) % 40] += 0.1
    K[(i + 1) % 40, i] -= 0.1
    ((_, asymmetry),) = _core.check_matrices([K], roots_of([K], 2.0), rng.normal(size=(2, 40)))
    assert abs(asymmetry) > 1e-3


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n", SIZES)
def test_products_and_energies_are_those_of_the_lower_triangles_whatever_the_threads(rng, n, n_threads):
    matrices, V, eta = random_grams(rng, 4, n), rng.normal(size=(2, n)), np.array([0.5, 0.0, 2.0, 1.0])
    V[:, ::3] = 0.0  # rows that are not support vectors
    V[1, n // 2] = 1.0
    given = upset(matrices)
    h, products, product = np.empty(4), np.full((4, 2, n), np.nan), np.full((2, n), np.nan)
    _core.energies_of_matrices(given, V, h, n_threads)
    _core.matvecs_of_matrices(given, V, products, n_threads)
    _core.matvec_of_matrices(given, eta, V, product, n_threads)
    assert_near(h, [0.5 * np.vdot(V @ K, V) for K in matrices])
    assert_near(products, V @ np.array(matrices))
    assert_near(product, np.tensordot(eta, V @ np.array(matrices), axes=1))
    alone = np.empty(4), np.empty((4, 2, n)), np.empty((2, n))
    _core.energies_of_matrices(given, V, alone[0], 1)
    _core.matvecs_of_matrices(given, V, alone[1], 1)
    _core.matvec_of_matrices(given, eta, V, alone[2], 1)
    for found, by_one in zip((h, products, product), alone, strict=True):
        np.testing.assert_array_equal(found, by_one)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_only_the_entries_asked_for_are_computed(rng, n, share):
    matrices, needed = random_grams(rng, 3, n), (rng.random((2, n)) < share).astype(np.uint8)
    V = np.where(rng.random((2, n)) < 0.7, rng.normal(size=(2, n)), 0.0) * needed
    found = np.full((3, 2, n), np.nan)
    _core.matvecs_of_matrices(matrices, V, found, 2, needed)
    expected = np.where(needed, V @ np.array(matrices), 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert not found[:, needed == 0].any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(("n", "n_kernels"), [(1, 1), (40, 4), (41, 6), (1100, 9)])
def test_matrices_are_combined_by_their_lower_triangles(rng, n, n_kernels, dtype, n_threads):
    matrices = random_grams(rng, n_kernels, n)
    eta, shift = rng.random(n_kernels), rng.normal(size=n)
    eta[n_kernels // 2] = 0.0
    total = np.tensordot(eta, matrices, axes=1) - shift[:, None] - shift
    out, alone = rng.normal(size=(2, n, n)).astype(dtype)
    _core.combine_matrices(upset(matrices), eta, shift, out, n_threads)
    np.testing.assert_allclose(out, total, atol=32 * np.finfo(dtype).eps * np.abs(total).max())
    np.testing.assert_array_equal(out, out.T)
    _core.combine_matrices(matrices, eta, shift, alone, 1)
    np.testing.assert_array_equal(out, alone)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n", SIZES)
def test_packing_and_gathering_shift_before_they_round(rng, n, n_threads, dtype):
    matrices, shifts = [K + 1e4 for K in random_grams(rng, 3, n)], rng.normal(5e3, 1.0, size=(3, n))
    given, lower = upset(matrices), np.tril_indices(n)
    exact = np.array([K - shift[:, None] - shift for K, shift in zip(matrices, shifts, strict=True)])
    packed = np.empty((3, lower[0].size), dtype=dtype)
    _core.pack_matrices(given, shifts, packed, n_threads)
    np.testing.assert_allclose(packed, exact[:, *lower], rtol=np.finfo(dtype).eps, atol=1e-11)
    some = np.unique([0, n // 3, *range(n // 2, n // 2 + n // 4), n - 1])
    for chosen in (some[:1], some, np.arange(n)):
        few, corner = np.tril_indices(chosen.size), np.ix_(range(3), chosen, chosen)
        out = np.empty((3, few[0].size), dtype=dtype)
        own = np.ascontiguousarray(shifts[:, chosen])
        _core.gather_matrices(given, chosen.astype(np.uint64), own, out, n_threads)
        np.testing.assert_allclose(out, exact[corner][:, *few], rtol=np.finfo(dtype).eps, atol=1e-11)


ONE, ROOTS, PROBES, FIRST = [np.eye(2)], np.ones((1, 2)), np.ones((2, 2)), np.array([0], dtype=np.uint64)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _core.check_matrices([np.eye(3)], ROOTS, PROBES), "square and of one size"),
        (lambda: _core.check_matrices([np.ones((2, 3))], ROOTS, PROBES), "square and of one size"),
        (lambda: _core.check_matrices(ONE, np.ones((1, 3)), PROBES), "one row of n entries per matrix"),
        (lambda: _core.check_matrices(ONE, np.ones((2, 2)), PROBES), "one row of n entries per matrix"),
        (lambda: _core.check_matrices(ONE, ROOTS, np.ones((3, 2))), "two rows of n > 0 entries"),
        (lambda: _core.check_matrices([np.ones((0, 0))], np.ones((1, 0)), np.ones((2, 0))), "n > 0"),
        (lambda: _core.gather_matrices(ONE, FIRST + 2, *np.ones((2, 1, 1))), "within K"),
        (lambda: _core.gather_matrices(ONE, FIRST, ROOTS, np.ones((1, 1))), "row of chosen entries"),
        (lambda: _core.gather_matrices(ONE, FIRST, np.ones((1, 1)), ROOTS), "one triangle per matrix"),
        (lambda: _core.gather_matrices([], FIRST, *np.ones((2, 1, 1))), "at least one matrix"),
        (lambda: _core.pack_matrices(ONE, np.ones((2, 2)), np.ones((1, 3))), "one row per matrix"),
        (lambda: _core.pack_matrices(ONE, np.ones((1, 3)), np.ones((1, 3))), "of one size"),
        (lambda: _core.pack_matrices(ONE, np.ones((1, 2)), np.ones((1, 2))), "n\\(n\\+1\\)/2"),
        (lambda: _core.diagonals([np.ones((2, 3))], np.ones((1, 2))), "square"),
        (lambda: _core.diagonals(ONE, np.ones((2, 2))), "per matrix"),
        (lambda: _core.reference_means(ONE, FIRST + 2, np.eye(1, 2)), "within"),
        (lambda: _core.reference_means(ONE, FIRST[:0], np.eye(1, 2)), "one row"),
        (lambda: _core.reference_means(ONE, FIRST, np.eye(2)), "one row per matrix"),
        (lambda: _core.energies_of_matrices(ONE, np.ones((1, 3)), np.ones(1)), "of one size"),
        (lambda: _core.energies_of_matrices(ONE, np.ones((1, 2)), np.ones(2)), "one entry per matrix"),
        (lambda: _core.matvecs_of_matrices(ONE, np.ones((1, 2)), np.ones((1, 2, 2))), "out"),
        (
            lambda: _core.matvecs_of_matrices(
                ONE, np.ones((1, 2)), np.ones((1, 1, 2)), 1, np.ones((2, 2), dtype=np.uint8)
            ),
            "needed must have the shape of V",
        ),
        (lambda: _core.matvec_of_matrices(ONE, np.ones(2), np.eye(2), np.eye(2)), "one weight per matrix"),
        (lambda: _core.matvec_of_matrices(ONE, np.ones(1), np.eye(2), np.eye(1, 2)), "shape of V"),
        (lambda: _core.combine_matrices(ONE, np.ones(1), np.ones(2), np.ones((2, 3))), "square"),
        (lambda: _core.combine_matrices(ONE, np.ones(2), np.ones(2), np.eye(2)), "one weight per matrix"),
        (lambda: _core.combine_matrices(ONE, np.ones(1), np.ones(3), np.eye(2)), "one entry per column"),
    ],
)
def test_what_does_not_fit_together_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
