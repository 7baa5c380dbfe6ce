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
    InverseDistance,
    InverseSquareDistance,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)

rng = np.random.default_rng(11)
FEATURES = rng.normal(1.0, 1.0, (30, 4))
FEATURES[7] = FEATURES[3]  # duplicated samples are legal
COUNTS = rng.poisson(2.0, (30, 4)).astype(float)
DISTANCES = np.sqrt(((FEATURES[:, None] - FEATURES[None]) ** 2).sum(axis=2))
GRAM = FEATURES @ FEATURES.T


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
    ExpDistance: [(ExpDistance(), DISTANCES), (ExpDistance(gamma=3.0), DISTANCES)],
    Precomputed: [(Precomputed(), GRAM)],
    FromFunction: [(FromFunction(cosine), FEATURES)],
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
    np.testing.assert_allclose(kernel(X, X), kernel(X), rtol=1e-9)


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_new_rows_are_the_rest_of_the_larger_matrix_of_the_same_kernel(kernel, X):
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
    assert set(kernel.get_params()) == {f.name for f in fields(kernel) if f.init}
    resolved = kernel.resolve(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(resolved))(X), resolved(X))
    assert clone(resolved) == kernel
    assert resolved.label == kernel.label


@pytest.mark.parametrize(("kernel", "X"), ROWS)
def test_a_kernel_reads_lists_and_integers(kernel, X):
    whole = np.round(X) if not kernel.pairwise else X
    resolved = kernel.resolve(whole)
    np.testing.assert_allclose(resolved(whole.tolist()), resolved(whole))
    if not kernel.pairwise:
        np.testing.assert_allclose(resolved(whole.astype(int)), resolved(whole))
