"""Kernels that are never stored: their passes, and the parts they are asked for."""

import numpy as np
import pytest

from kernelweave.gram import KernelSource, PackedGrams, StreamedGrams
from kernelweave.gram.source import matrix_sources
from kernelweave.kernels import Gaussian, Laplacian, Linear, Polynomial
from kernelweave.kernels.fitted_scaling import ScaledForm
from kernelweave.kernels.groups import grouped

N, M = 40, 4
KERNELS = [Gaussian(width=1.0), Linear(), Laplacian(gamma=0.3), Polynomial(degree=2)]
HERE = np.setdiff1d(np.arange(N), [0, 7, 39])


@pytest.fixture
def table(rng):
    return rng.normal(size=(N, 3))


@pytest.fixture
def matrices(table):
    """Kernels that all samples have, and those that some of them lack."""
    found = [kernel(table) for kernel in KERNELS]
    for K in found[1:]:
        K[np.setdiff1d(np.arange(N), HERE)] = 0.0
        K[:, np.setdiff1d(np.arange(N), HERE)] = 0.0
    return np.array(found)


@pytest.fixture
def make(table):
    """Return a stack; the first kernel is of all samples, the others of those that are here."""

    def made(**options):
        sources = []
        for kernels, first, samples in ((KERNELS[:1], 0, None), (KERNELS[1:], 1, HERE)):
            X = table if samples is None else table[samples]
            for places, group in grouped(kernels, X):
                forms = (ScaledForm.plain(len(X)),) * len(places)
                own = np.array(places) + first
                sources.append(KernelSource(own, group, group.training_rows(X), forms, N, samples))
        return StreamedGrams(sources, M, N, **options)

    return made


def near(dtype):
    return dict(rtol=1e-5, atol=1e-4) if dtype == "float32" else dict(rtol=1e-10, atol=1e-11)


DTYPES = ["float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [(), (3,)])
def test_products_with_some_samples_are_those_of_their_columns(rng, make, matrices, dtype, columns):
    chosen = np.array([0, 3, 20, 38])
    V = rng.normal(size=(4, *columns))
    found = make(dtype=dtype).products(chosen, V)
    np.testing.assert_allclose(found, matrices[:, :, chosen] @ V, **near(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_samples_without_a_coefficient_are_left_out_of_a_pass(rng, make, matrices, dtype):
    stack, V = make(dtype=dtype), np.zeros((N, 2))
    V[[3, 7, 30]] = rng.normal(size=(3, 2))
    V[5, 0] = 1.0  # of one vector only
    eta = np.array([0.5, 0.0, 2.0, 1.0])
    np.testing.assert_allclose(stack.matvecs(V), matrices @ V, **near(dtype))
    np.testing.assert_allclose(stack.matvec(eta, V), np.tensordot(eta, matrices, 1) @ V, **near(dtype))
    np.testing.assert_allclose(
        stack.energies(V), [0.5 * np.trace(V.T @ K @ V) for K in matrices], **near(dtype)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_of_the_combined_matrix_are_computed_without_the_rest(make, matrices, dtype):
    stack, eta = make(dtype=dtype), np.array([0.5, 0.0, 2.0, 1.0])
    rows, columns, K = np.array([1, 7, 30]), np.array([0, 30, 31, 32]), np.tensordot(eta, matrices, 1)
    found = stack.combined_block(eta, rows, columns)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, K[np.ix_(rows, columns)], **near(dtype))
    square = stack.combined_block(eta, rows, rows)
    np.testing.assert_array_equal(square, square.T)
    np.testing.assert_allclose(square, K[np.ix_(rows, rows)], **near(dtype))
    out = np.full((3, 4), np.nan, dtype=dtype)
    assert stack.combined_block(eta, rows, columns, out) is out
    np.testing.assert_array_equal(out, found)
    np.testing.assert_array_equal(stack.combined_block(0.0 * eta, rows, columns), 0.0)


def test_diagonals_and_sizes_are_exact_whatever_the_precision(make, matrices):
    for dtype in DTYPES:
        stack = make(dtype=dtype)
        np.testing.assert_allclose(stack.diagonals, np.diagonal(matrices, axis1=1, axis2=2), rtol=1e-12)
        np.testing.assert_allclose(stack.sizes, [np.diagonal(K).max() for K in matrices], rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_do_not_change_a_digit(rng, make, dtype):
    V, eta = rng.normal(size=(N, 2)), rng.random(M)
    answers = set()
    for n_threads in (1, 2, 3, 2):
        stack = make(dtype=dtype, n_threads=n_threads)
        found = (stack.combine(eta), stack.matvecs(V), stack.matvec(eta, V), stack.energies(V))
        answers.add(tuple(one.tobytes() for one in found))
    assert len(answers) == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_a_stack_are_streamed_too(rng, make, matrices, dtype):
    stack = make(dtype=dtype, n_threads=2)
    rows, which, v = np.array([0, 1, 7, 20, 39]), np.array([3, 0]), rng.normal(size=N)
    few, some = stack.streamed_sample(rows), stack.streamed_subset(which)
    np.testing.assert_allclose(few.matvecs(v[rows]), matrices[:, rows][:, :, rows] @ v[rows], **near(dtype))
    np.testing.assert_allclose(some.matvecs(v), matrices[which] @ v, **near(dtype))
    assert (few.n_kernels, few.n_samples) == (M, 5)
    assert (some.n_kernels, some.n_samples) == (2, N)
    for part in (few, some):
        assert isinstance(part, StreamedGrams)
        assert (part.dtype, part.n_threads) == (dtype, 2)


def test_a_sample_of_few_entries_is_held_in_float64(rng, make, table):
    stack = make(dtype="float32")
    assert isinstance(stack.sample(np.arange(10)), PackedGrams)
    assert not stack.sample(np.arange(10)).is_rounded
    [(_, group)] = grouped(KERNELS[:1], rng.normal(size=(1500, 1)))
    rows = group.training_rows(rng.normal(size=(1500, 1)))
    large = StreamedGrams(
        [KernelSource(np.array([0]), group, rows, (ScaledForm.plain(1500),), 1500)], 1, 1500, dtype="float32"
    )
    assert large.sample(np.arange(1500)).is_rounded
    assert not large.sample(np.arange(1400)).is_rounded


def test_kernels_of_a_few_samples_may_be_all_zero(make, rng):
    away = np.array([0, 7, 39])  # who lack all kernels but the first
    part = make().streamed_sample(away)
    assert not part.matvecs(rng.normal(size=3))[1:].any()
    assert not part.energies(rng.normal(size=3))[1:].any()
    np.testing.assert_array_equal(part.sizes[1:], 0.0)


def test_given_matrices_can_be_streamed(rng, matrices):
    stack, V, eta = (
        StreamedGrams(matrix_sources(list(matrices)), M, N),
        rng.normal(size=(N, 2)),
        rng.random(M),
    )
    np.testing.assert_allclose(stack.combine(eta), np.tensordot(eta, matrices, 1), atol=1e-12)
    np.testing.assert_allclose(stack.matvecs(V), matrices @ V, atol=1e-12)


@pytest.mark.parametrize("width", [10.0, 1e4, 1e8])
def test_wide_gaussians_keep_their_energies_in_float32(rng, width):
    X, v = rng.normal(size=(200, 2)), rng.normal(size=200)
    v -= v.mean()
    v = v.astype(np.float32).astype(float)
    v[0] -= v.sum()  # what is left of rounding
    [(_, group)] = grouped([Gaussian(width=width)], X)
    source = KernelSource(np.array([0]), group, group.training_rows(X), (ScaledForm.plain(200),), 200)
    D = ((X[:, None].astype(np.longdouble) - X) ** 2).sum(axis=2)
    exact = float(0.5 * v @ np.expm1(-D / (2 * np.longdouble(width) ** 2)) @ v)
    found = StreamedGrams([source], 1, 200, dtype="float32").energies(v)[0]
    assert found == pytest.approx(exact, rel=1e-4)
