"""The shared distances: accurate, exactly symmetric, computed once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from kernelweave.kernels import ChiSquared, Gaussian, Laplacian
from kernelweave.kernels import pairs as pairs_module
from kernelweave.kernels.distances import inner_products, mean_squared_euclidean, squared_euclidean
from kernelweave.kernels.pairs import Pairs


def exact(X, Z):
    return (
        ((X[:, None, :].astype(np.longdouble) - Z[None].astype(np.longdouble)) ** 2).sum(axis=2).astype(float)
    )


@pytest.mark.parametrize("columns", [1, 16, 17, 60])
def test_squared_distances_keep_their_digits_far_from_the_origin(columns):
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(30, columns))
    Z = np.vstack([X[:5], X[5:10] + 1e-4, 1e6 + rng.normal(size=(5, columns))])
    np.testing.assert_allclose(squared_euclidean(X, Z), exact(X, Z), rtol=1e-6)
    np.testing.assert_allclose(squared_euclidean(X), exact(X, X), rtol=1e-6)


@pytest.mark.parametrize("columns", [2, 60])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_a_sample_has_distance_zero_to_itself_even_among_new_rows(columns, make):
    X = np.random.default_rng(1).normal(size=(40, columns))
    D = squared_euclidean(make(X), make(X[::-1]))
    np.testing.assert_array_equal(np.diagonal(D[:, ::-1]), 0.0)
    assert Laplacian(gamma=1.0)(X, X[:1])[0, 0] == 1.0


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40), d=st.integers(1, 60))
@settings(max_examples=40, deadline=None)
def test_symmetric_matrices_are_symmetric_to_the_last_bit(seed, n, d):
    X = np.random.default_rng(seed).normal(3.0, 1.0, size=(n, d))
    for rows in (X, np.asfortranarray(X), X[:, ::-1], sparse.csr_matrix(X)):
        for function in (inner_products, squared_euclidean):
            K = function(rows)
            np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(squared_euclidean(X)), 0.0)
    assert (squared_euclidean(X) >= 0.0).all()


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 12), d=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_the_mean_squared_distance_in_one_pass_is_the_mean_over_distinct_pairs(seed, n, d):
    X = np.random.default_rng(seed).normal(3.0, 2.0, size=(n, d))
    expected = exact(X, X)[~np.eye(n, dtype=bool)].mean()
    assert mean_squared_euclidean(X) == pytest.approx(expected, rel=1e-10)
    assert mean_squared_euclidean(sparse.csr_matrix(X)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3.0])
def test_constant_data_learn_a_gamma_of_one(value):
    X = np.full((7, 3), value)
    for kernel in (Gaussian(), Laplacian(), ChiSquared()):
        resolved = kernel.resolve(X)
        assert resolved.rate == 1.0
        np.testing.assert_array_equal(resolved(X), np.ones((7, 7)))
    assert Gaussian().resolve(X[:1]).rate == 1.0


def test_sparse_rows_with_unsorted_columns_still_give_exactly_symmetric_matrices():
    rng = np.random.default_rng(6)
    dense = rng.normal(size=(15, 40))
    order = np.argsort(rng.random(dense.shape), axis=1)
    indptr = np.arange(0, dense.size + 1, 40)
    X = sparse.csr_matrix(
        (np.take_along_axis(dense, order, axis=1).ravel(), order.ravel(), indptr), shape=dense.shape
    )
    assert not X.has_sorted_indices
    for function in (inner_products, squared_euclidean):
        np.testing.assert_array_equal(function(X), function(X).T)
        np.testing.assert_allclose(function(X), function(dense), atol=1e-12)


def test_the_mean_ignores_the_order_of_magnitude_of_a_constant_column():
    X = np.random.default_rng(2).normal(size=(20, 2)) * 1e-3
    shifted = np.column_stack([X, np.full(20, 1e9 / 3.0)])
    assert mean_squared_euclidean(shifted) == pytest.approx(mean_squared_euclidean(X), rel=1e-10)


def test_pairs_compute_a_matrix_once_and_hold_only_the_last(monkeypatch):
    calls = []

    def counted(X, Z):
        calls.append("sqeuclidean")
        return squared_euclidean(X, Z)

    monkeypatch.setitem(pairs_module.METRICS, "sqeuclidean", counted)
    pairs = Pairs(np.random.default_rng(0).normal(size=(6, 2)))
    D = pairs.matrix("sqeuclidean")
    assert pairs.matrix("sqeuclidean") is D
    assert calls == ["sqeuclidean"]
    pairs.matrix("inner")
    pairs.matrix("sqeuclidean")
    assert calls == ["sqeuclidean"] * 2


def test_a_shared_matrix_cannot_be_written_to_and_the_users_array_still_can():
    D = np.array([[0.0, 1.0], [1.0, 0.0]])
    shared = Pairs(D, D).matrix("given")
    with pytest.raises(ValueError, match="read-only"):
        shared[0, 0] = 5.0
    D[0, 0] = 5.0
