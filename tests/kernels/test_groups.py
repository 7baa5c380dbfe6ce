"""Kernels that are evaluated together say what each of them says alone, by its own matrix."""

import numpy as np
import pytest
from scipy import sparse

from kernelweave.kernels import (
    ChiSquared,
    ExpDistance,
    FromFunction,
    Gaussian,
    InverseDistance,
    InverseSquareDistance,
    Laplacian,
    Linear,
    MinMax,
    Polynomial,
    Precomputed,
    Spectrum,
)
from kernelweave.kernels.algebra import NormalizedGroup
from kernelweave.kernels.composite import CompositeGroup
from kernelweave.kernels.counts import CountGroup, InnerCountGroup
from kernelweave.kernels.groups import AnyGroup, CompiledGroup, GivenGroup, KernelGroup, LinearGroup, grouped
from kernelweave.kernels.repair import RepairedGroup

RNG = np.random.default_rng(1)
N, NEW = 37, 11
DENSE = RNG.normal(2.0, 1.0, size=(N + NEW, 4))
DENSE[20] = DENSE[3]  # duplicated samples are legal
COUNTS = RNG.poisson(2.0, size=(N + NEW, 4)).astype(float)
SPARSE = sparse.random_array((N + NEW, 30), density=0.2, rng=RNG, format="csr")
RADIAL = [
    Gaussian(width=1.0),
    Gaussian(gamma=1e-9),
    Laplacian(gamma=0.3),
    InverseDistance(gamma=0.3),
    InverseSquareDistance(gamma=0.3),
]
POWERS = [Polynomial(degree=1), Polynomial(degree=3, offset=0.0, gamma=0.2), Polynomial(degree=2)]

TEXT = np.array(
    [["".join(RNG.choice(list("abc"), RNG.integers(0, 9)))] for _ in range(N + NEW)], dtype=object
)
TEXT[N:, 0] = [text + "zz" for text in TEXT[N:, 0]]  # new samples have k-mers that no training sample has
MIXED = np.hstack([DENSE.astype(object), TEXT])
HALF = Gaussian(gamma=0.1).on([0, 1]) + 2.0 * Spectrum(1).on(4)
SIGMOID = FromFunction(lambda X, Z: np.tanh(0.2 * X @ Z.T - 1.0), name="sigmoid")

# The class, its kernels, and all samples: the first N of them are the training samples.
CASES = {
    "distances": (CompiledGroup, RADIAL, DENSE),
    "inner products": (CompiledGroup, POWERS, DENSE),
    "linear": (LinearGroup, [Linear(), Linear()], DENSE),
    "linear, sparse": (LinearGroup, [Linear(), Linear()], SPARSE),
    "any": (AnyGroup, [ChiSquared(gamma=0.3), FromFunction(lambda X, Z: X @ Z.T + 1.0)], COUNTS),
    "any, sparse": (AnyGroup, [Gaussian(width=2.0), Polynomial(degree=2), Laplacian(gamma=0.1)], SPARSE),
    "given": (GivenGroup, [Precomputed()], DENSE @ DENSE.T),
    "counts": (CountGroup, [MinMax()], COUNTS),
    "counts, sparse": (CountGroup, [MinMax()], SPARSE),
    "inner products of counts": (InnerCountGroup, [Spectrum((1, 3))], TEXT),
    "sum": (CompositeGroup, [HALF], MIXED),
    "sum, sparse": (CompositeGroup, [Linear() + Gaussian(gamma=0.1)], SPARSE),
    "product": (CompositeGroup, [(HALF * Spectrum(1).on(4)) ** 2], MIXED),
    "normalised": (NormalizedGroup, [(Linear() + Gaussian(gamma=0.1)).normalized()], DENSE),
    "clipped": (RepairedGroup, [SIGMOID.repaired("clip")], DENSE),
    "flipped": (RepairedGroup, [SIGMOID.repaired("flip")], DENSE),
    "shifted, in a sum": (CompositeGroup, [SIGMOID.repaired("shift") + Linear()], DENSE),
    "given and given": (GivenGroup, [Precomputed() * Precomputed()], DENSE @ DENSE.T),
    "given distances": (GivenGroup, [ExpDistance(gamma=3.0)], np.abs(DENSE[:, :1] - DENSE[:, 0])),
}


def all_groups(base=KernelGroup):
    for kind in base.__subclasses__():
        yield kind
        yield from all_groups(kind)


@pytest.fixture(params=CASES)
def case(request):
    """The group, its training rows and new ones, and the matrices its kernels have between them."""
    kind, kernels, X = CASES[request.param]
    train, new = (X[:N, :N], X[N:, :N]) if kernels[0].pairwise else (X[:N], X[N:])
    [(places, group)] = grouped(kernels, train)
    assert type(group) is kind
    assert places == list(range(len(kernels)))
    own = np.array([kernel(train) for kernel in kernels])
    cross = np.array([kernel(new, train) for kernel in kernels])
    return group, group.training_rows(train), group.rows(new), own, cross


@pytest.fixture(params=[1, 10, 1 << 18])
def block(request, monkeypatch):
    """As many values at a time."""
    monkeypatch.setattr(KernelGroup, "block_entries", request.param)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * np.abs(expected).max())


def weights_of(group):
    return np.arange(len(group)) / 2.0  # the first one not at all


def test_every_kind_of_group_has_a_case():
    assert {kind for kind, *_ in CASES.values()} == set(all_groups())


def test_values_of_a_group_are_its_matrices(case, block):
    group, rows, new, own, cross = case
    chosen = np.array([30, 2, 17])
    for left, right, expected in (
        (rows, rows, own),
        (new, rows, cross),
        (rows[chosen], rows[:5], own[:, chosen, :5]),
    ):
        for K, E in zip(group.values(left, right), expected, strict=True):
            close(K, E)


def test_values_between_the_same_samples_are_exactly_symmetric(case):
    group, rows, *_ = case
    for K in group.values(rows, rows):
        np.testing.assert_array_equal(K, K.T)


def test_diagonals_of_a_group_are_those_of_its_matrices(case):
    group, rows, _, own, _ = case
    close(group.diagonals(rows), np.diagonal(own, axis1=1, axis2=2))


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_products_of_a_group_are_those_of_its_matrices(case, block, columns, n_threads):
    group, rows, new, own, cross = case
    coef = RNG.normal(size=(N, columns))
    for left, K in ((rows, own), (new, cross)):
        found = group.products(left, rows, coef, n_threads=n_threads)
        assert found.shape == (len(group), left.shape[0], columns)
        close(found, K @ coef)
        some = np.array([1, 5, 30])
        close(group.products(left, rows[some], coef[some]), K[:, :, some] @ coef[some])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_weighted_products_are_the_weighted_sum_of_the_products(case, n_threads):
    group, rows, new, own, cross = case
    coef, weights = RNG.normal(size=(N, 2)), weights_of(group)
    for left, K in ((rows, own), (new, cross)):
        for eta in (weights, weights + 1.0):
            found = group.weighted_products(left, rows, coef, eta, n_threads)
            size = 1.0 + np.abs(np.tensordot(eta, K, 1)).max()
            np.testing.assert_allclose(found, np.tensordot(eta, K, 1) @ coef, atol=1e-12 * size)
        np.testing.assert_array_equal(group.weighted_products(left, rows, coef, 0.0 * weights), 0.0)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_weighted_values_are_added_to_what_is_there(case, block, n_threads):
    group, rows, new, own, cross = case
    weights = weights_of(group) + 0.5
    for left, K in ((rows, own), (new, cross)):
        out = np.ones((left.shape[0], N))
        group.add_weighted_values(left, rows, weights, out, n_threads)
        close(out, 1.0 + np.tensordot(weights, K, 1))
        np.testing.assert_array_equal(out, out.T if left is rows else out)
        before = out.copy()
        group.add_weighted_values(left, rows, 0.0 * weights, out, n_threads)
        np.testing.assert_array_equal(out, before)


@pytest.mark.parametrize("columns", [1, 3])
def test_energies_of_a_group_are_half_the_traces(case, columns):
    group, rows, _, own, _ = case
    coef = RNG.normal(size=(N, columns))
    expected = np.array([0.5 * np.trace(coef.T @ K @ coef) for K in own])
    size = np.array([np.abs(coef.T) @ np.abs(K) @ np.abs(coef) for K in own]).max()
    np.testing.assert_allclose(group.energies(rows, coef), expected, atol=1e-13 * size)
    np.testing.assert_allclose(group.energies(rows, coef, 2), expected, atol=1e-13 * size)
    some = np.array([1, 5, 30])
    few = [0.5 * np.trace(coef[some].T @ K[np.ix_(some, some)] @ coef[some]) for K in own]
    np.testing.assert_allclose(group.energies(rows[some], coef[some]), few, atol=1e-13 * size)


def test_some_kernels_of_a_group_are_a_group(case):
    group, rows, _, own, _ = case
    some = [len(group) - 1, 0][: len(group)]
    part = group.only(some)
    assert part.kernels == tuple(group.kernels[a] for a in some)
    for K, E in zip(part.values(rows, rows), own[some], strict=True):
        close(K, E)
    coef = RNG.normal(size=(N, 2))
    close(part.products(rows, rows, coef), own[some] @ coef)
    close(part.energies(rows, coef), [0.5 * np.trace(coef.T @ own[a] @ coef) for a in some])
    assert len(group) == len(own)


def test_no_number_on_the_way_to_a_value_is_larger_than_it_says(case):
    group, rows, _, own, _ = case
    assert np.isfinite(group.largest(rows))
    assert group.largest(rows) >= np.abs(own).max() * (1.0 - 1e-12)
    assert group.errors_in_float32(rows).shape == (len(group),)


@pytest.mark.parametrize("name", ["distances", "inner products"])
def test_compiled_groups_do_with_float32_what_rounding_allows(name):
    _, kernels, X = CASES[name]
    X = X + (100.0 if name == "distances" else 0.0)  # a shift that distances do not feel
    [(_, group)] = grouped(kernels, X)
    rows = group.training_rows(X)
    single, coef = group.rows_in_dtype(rows, "float32"), RNG.integers(-8, 9, size=(N + NEW, 2)).astype(float)
    coef[0] -= coef.sum(axis=0)  # they sum to zero, also in float32
    assert single.dtype == np.float32
    assert group.rows_in_dtype(rows, "float64") is rows
    errors = group.errors_in_float32(rows)
    assert (errors > 0.0).all()
    for kernel, K, error in zip(kernels, group.values(single, single), errors, strict=True):
        assert K.dtype == np.float32
        assert np.abs(K - kernel(X)).max() <= error
    for coarse, exact in zip(
        group.products(single, single, coef), group.products(rows, rows, coef), strict=True
    ):
        np.testing.assert_allclose(coarse, exact, atol=2e-5 * np.abs(exact).max())
    exact = group.energies(rows, coef)
    np.testing.assert_allclose(group.energies(single, coef), exact, rtol=2e-5)


def test_other_groups_compute_in_float64_whatever_is_asked():
    [(_, group)] = grouped([ChiSquared(gamma=1.0)], COUNTS)
    assert group.rows_in_dtype(COUNTS, "float32") is COUNTS
    assert not group.errors_in_float32(COUNTS).any()


def test_kernels_of_one_kind_are_evaluated_together():
    kernels = [*RADIAL[:2], Linear(), ChiSquared(gamma=1.0), POWERS[0], RADIAL[2], Linear(), POWERS[1]]
    found = {tuple(places): type(group) for places, group in grouped(kernels, COUNTS)}
    assert found == {
        (0, 1, 5): CompiledGroup,
        (2, 6): LinearGroup,
        (3,): AnyGroup,
        (4, 7): CompiledGroup,
    }
    light = {tuple(places): type(group) for places, group in grouped(kernels[:3], SPARSE)}
    assert light == {(0, 1): AnyGroup, (2,): LinearGroup}
    square = DENSE @ DENSE.T
    given = {tuple(places): type(group) for places, group in grouped([Precomputed(), Precomputed()], square)}
    assert given == {(0,): GivenGroup, (1,): GivenGroup}


def test_a_function_that_is_no_kernel_is_found_out_on_some_training_samples():
    wrong = FromFunction(lambda X, Z: X @ Z.T - 100.0, name="wrong")
    [(_, group)] = grouped([wrong], DENSE)
    with pytest.raises(ValueError, match="Kernel 'wrong' is indefinite"):
        group.training_rows(DENSE)
    sizes = []

    def counted(X, Z):
        sizes.append(len(X))
        return X @ Z.T

    long = np.ones((3000, 1))
    [(_, group)] = grouped([FromFunction(counted)], long)
    assert group.training_rows(long) is long
    assert sizes == [1000]


def test_new_rows_of_a_given_kernel_do_not_show_their_diagonal():
    K = DENSE @ DENSE.T
    [(_, group)] = grouped([Precomputed()], K[:N, :N])
    np.testing.assert_array_equal(group.diagonals(np.array([3, 1])), [K[[3, 1], [3, 1]]])
    with pytest.raises(ValueError, match=r"does not show its k\(x, x\)"):
        group.diagonals(group.rows(K[N:, :N]))
    with pytest.raises(ValueError, match="one column per training sample"):
        group.rows(K[N:, : N - 1])
