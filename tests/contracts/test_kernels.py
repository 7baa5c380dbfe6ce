"""What every kernel promises; a kernel class without a row in the table fails the first test."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, fields
from inspect import isabstract

import numpy as np
import pytest
from sklearn.base import clone

import kernelweave.kernels as package
from kernelweave.kernels import (
    ChiSquared,
    ExpDistance,
    FromFunction,
    Gaussian,
    Intersection,
    InverseDistance,
    InverseSquareDistance,
    Jaccard,
    Kernel,
    Laplacian,
    Linear,
    MinMax,
    MonotoneConjunctive,
    MonotoneDisjunctive,
    Multiple,
    Normalized,
    OnColumns,
    Polynomial,
    Power,
    Precomputed,
    Product,
    Repaired,
    Spectrum,
    Subsequence,
    Sum,
)

rng = np.random.default_rng(11)
FEATURES = rng.normal(1.0, 1.0, (30, 4))
FEATURES[7] = FEATURES[3]  # duplicated samples are legal
COUNTS = rng.poisson(2.0, (30, 4)).astype(float)
DISTANCES = np.sqrt(((FEATURES[:, None] - FEATURES[None]) ** 2).sum(axis=2))
GRAM = FEATURES @ FEATURES.T
BOOLEANS = (rng.random((30, 7)) < 0.5).astype(float)
BOOLEANS[5] = 0.0


def column(cells):
    out = np.empty((len(cells), 1), dtype=object)
    out[:, 0] = cells
    return out


TEXT = column(["".join(rng.choice(list("abc"), rng.integers(0, 12))) for _ in range(30)])
TEXT[4] = ""
SETS = column([set(rng.choice(list("abcdef"), rng.integers(0, 5)).tolist()) for _ in range(30)])
BAGS = column([", ".join(rng.choice(list("abcdef"), rng.integers(0, 5))) for _ in range(30)])
MIXED = np.hstack([FEATURES.astype(object), TEXT])


def same_start(X, Z):
    return np.array([[float(x[:1] == z[:1]) for z in Z] for x in X])


def sigmoid(X, Z):
    return np.tanh(0.3 * X @ Z.T - 1.0)


def cosine(X, Z):
    return (X @ Z.T) / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(Z, axis=1)


CASES = {
    Linear: [(Linear(), FEATURES)],
    Polynomial: [
        (Polynomial(degree=d, offset=o, gamma=0.3), FEATURES) for d in (1, 2, 3) for o in (0.0, 1.0)
    ],
    Gaussian: [
        (Gaussian(scale=0.1), FEATURES),
        (Gaussian(width=0.5), FEATURES),
        (Gaussian(gamma=2.0), FEATURES),
    ],
    Laplacian: [(Laplacian(scale=4.0), FEATURES), (Laplacian(gamma=0.1), FEATURES)],
    InverseSquareDistance: [
        (InverseSquareDistance(), FEATURES),
        (InverseSquareDistance(gamma=9.0), FEATURES),
    ],
    InverseDistance: [(InverseDistance(scale=0.5), FEATURES), (InverseDistance(gamma=9.0), FEATURES)],
    ChiSquared: [(ChiSquared(scale=2.0), COUNTS), (ChiSquared(gamma=0.1), COUNTS)],
    ExpDistance: [
        (ExpDistance(), DISTANCES),
        (ExpDistance(gamma=3.0), DISTANCES),
        *((ExpDistance(form=form), DISTANCES) for form in ("gaussian", "inverse", "inverse_square")),
    ],
    Precomputed: [(Precomputed(), GRAM)],
    FromFunction: [(FromFunction(cosine), FEATURES), (FromFunction(same_start), TEXT)],
    Spectrum: [(Spectrum(2), TEXT), (Spectrum((1, 3)), TEXT)],
    Subsequence: [(Subsequence(length, decay), TEXT) for length, decay in ((1, 0.3), (2, 0.5), (3, 1.0))],
    Jaccard: [(Jaccard(), SETS), (Jaccard(separator=","), BAGS), (Jaccard(), COUNTS)],
    MinMax: [(MinMax(), SETS), (MinMax(separator=","), BAGS), (MinMax(), COUNTS), (MinMax(), FEATURES**2)],
    Intersection: [
        (Intersection(), SETS),
        (Intersection(separator=","), BAGS),
        (Intersection(), FEATURES**2),
    ],
    MonotoneConjunctive: [
        (MonotoneConjunctive(a, raw), BOOLEANS) for a in (1, 3, 8) for raw in (True, False)
    ],
    MonotoneDisjunctive: [
        (MonotoneDisjunctive(a, raw), BOOLEANS) for a in (1, 3, 8) for raw in (True, False)
    ],
    Sum: [(Gaussian() + Linear(), FEATURES), (Precomputed() + Precomputed(), GRAM)],
    Product: [(Gaussian(scale=0.1) * Gaussian().on([0, 1]), FEATURES), (Spectrum(1) * Subsequence(2), TEXT)],
    Power: [(Gaussian() ** 3, FEATURES), (Spectrum(2) ** 2, TEXT)],
    Multiple: [(2.0 * Laplacian(), FEATURES)],
    OnColumns: [
        (Gaussian().on(slice(1, 3)), FEATURES),
        (Spectrum(2).on(4), MIXED),
        (Gaussian().on([0, -2]), MIXED),
    ],
    Normalized: [(Polynomial().normalized(), FEATURES), (Subsequence(2).normalized(), TEXT)],
    Repaired: [(FromFunction(sigmoid).repaired(how), FEATURES) for how in ("clip", "flip", "shift")]
    + [(Precomputed().repaired(), GRAM - 5.0)],
}
ROWS = [pytest.param(k, X, id=f"{k.label}") for cases in CASES.values() for k, X in cases]


def all_kernels(base=Kernel):
    for kind in base.__subclasses__():
        if kind.__module__.startswith("kernelweave."):
            if not isabstract(kind):
                yield kind
            yield from all_kernels(kind)


def train_and_new(kernel, X):
    """The first 20 samples to train on and the last 10 as new rows, in the form the kernel reads."""
    return (X[:20, :20], X[20:, :20]) if kernel.pairwise else (X[:20], X[20:])


def shifts(kernel):
    """Whether a sample differs from one with the same features: k(x, x) is more than k(x, z) for z = x."""
    return isinstance(kernel, Repaired) and kernel.how == "shift"


def test_every_kernel_has_a_row_in_the_table():
    assert set(all_kernels()) == set(CASES)


def test_the_table_would_notice_a_new_kernel():
    @dataclass
    class Forgotten(Linear):
        pass

    Forgotten.__module__ = "kernelweave.kernels.forgotten"
    try:
        assert Forgotten in set(all_kernels())
    finally:
        Forgotten.__module__ = "elsewhere"


def test_every_kernel_is_exported():
    assert {kind.__name__ for kind in CASES} <= set(package.__all__)


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_the_gram_matrix_is_exactly_symmetric_float64_and_positive_semidefinite(kernel, X):
    K = kernel.resolve(X)(X)
    assert K.dtype == np.float64
    assert K.shape == (30, 30)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * np.trace(K)


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_the_diagonal_is_the_diagonal_of_the_matrix(kernel, X):
    kernel = kernel.resolve(X)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(kernel(X)), rtol=1e-12)


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_rows_against_themselves_are_the_gram_matrix(kernel, X):
    kernel = kernel.resolve(X)
    K = kernel(X)
    if shifts(kernel):
        np.fill_diagonal(K, np.diagonal(kernel(X, X)))
    np.testing.assert_allclose(kernel(X, X), K, rtol=1e-9, atol=1e-13 * np.abs(K).max())


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_new_rows_are_the_rest_of_the_larger_matrix_of_the_same_kernel(kernel, X):
    if kernel.of_training:
        return  # the training samples decide what is taken from its values
    train, new = train_and_new(kernel, X)
    resolved = kernel.resolve(train)
    np.testing.assert_allclose(resolved(new, train), resolved(X)[20:, :20], rtol=1e-9)


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_resolving_again_on_other_rows_changes_nothing(kernel, X):
    train, _ = train_and_new(kernel, X)
    resolved = kernel.resolve(train)
    assert resolved.resolve(X) == resolved
    np.testing.assert_array_equal(resolved.resolve(X)(train), resolved(train))


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_using_a_kernel_leaves_it_and_its_input_as_they_were(kernel, X):
    before, data = pickle.dumps(kernel), X.copy()
    resolved = kernel.resolve(X)
    assert resolved(X).flags.writeable
    resolved.diagonal(X)
    assert pickle.dumps(kernel) == before
    np.testing.assert_array_equal(X, data)


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_a_kernel_survives_clone_pickle_and_its_own_parameters(kernel, X):
    assert clone(kernel) == kernel
    assert type(kernel)(**kernel.get_params(deep=False)) == kernel
    assert set(kernel.get_params(deep=False)) == {f.name for f in fields(kernel) if f.init}
    resolved = kernel.resolve(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(resolved))(X), resolved(X))
    assert clone(resolved) == kernel
    assert resolved.label == kernel.label


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_a_kernel_reads_lists_and_integers(kernel, X):
    if X.dtype == object:
        cells = X if X.shape[1] > 1 else X[:, 0].tolist()
        resolved = kernel.resolve(cells)
        np.testing.assert_array_equal(resolved(cells), resolved(X))
        return
    whole = np.round(X) if not kernel.pairwise else X
    resolved = kernel.resolve(whole)
    np.testing.assert_allclose(resolved(whole.tolist()), resolved(whole))
    if not kernel.pairwise:
        np.testing.assert_allclose(resolved(whole.astype(int)), resolved(whole))
