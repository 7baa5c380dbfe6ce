"""Distances that several kernels share: one matrix, and one mean, per view."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.utils.sparsefuncs import mean_variance_axis

from kernelweave._typing import Matrix, Vector

# Up to this many columns differences cost about what a matrix product does, and they lose no digits.
DIRECT_COLUMNS = 16
# ||x||^2 + ||z||^2 - 2x'z has the rounding of the norms: pairs closer than this share of them are redone.
NEAR = 1e-8
PAIRS_AT_ONCE = 1 << 16


def is_sparse(X: Any) -> bool:
    """Return True for a scipy sparse matrix or array."""
    return bool(sparse.issparse(X))


def inner_products(X: Any, Z: Any | None = None) -> Matrix:
    """Return X Z' as a dense matrix, exactly symmetric when ``Z`` is None."""
    if not is_sparse(X):
        X = np.ascontiguousarray(X)  # numpy takes its symmetric product only for contiguous rows
        return np.asarray(X @ (X if Z is None else Z).T)
    product = X @ (X if Z is None else Z).T
    G = product.toarray() if is_sparse(product) else np.asarray(product)
    return G if Z is not None else (G + G.T) / 2.0


def squared_norms(X: Any) -> Vector:
    """Return ||x||^2 of every row."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X))


def squared_euclidean(X: Any, Z: Any | None = None) -> Matrix:
    """Return ||x - z||^2 for all rows of X and Z; symmetric with a zero diagonal when ``Z`` is None."""
    dense = not is_sparse(X) and not is_sparse(Z)
    if dense and X.shape[1] <= DIRECT_COLUMNS:
        return np.asarray(cdist(X, X if Z is None else Z, "sqeuclidean"))
    if dense:  # distances do not feel a shift, but the digits of ||x||^2 do
        centre = (X if Z is None else Z).mean(axis=0)
        X, Z = X - centre, None if Z is None else Z - centre
    x = squared_norms(X)
    z = x if Z is None else squared_norms(Z)
    sums = x[:, None] + z
    D = inner_products(X, Z)
    D *= -2.0
    D += sums
    sums *= NEAR
    near = sums >= D
    if Z is None:
        np.fill_diagonal(near, False)
        np.fill_diagonal(D, 0.0)
    _redo(D, np.flatnonzero(near), X, X if Z is None else Z)
    return D


def _redo(D: Matrix, pairs: Any, X: Any, Z: Any) -> None:
    """Fill the given flat positions of ``D`` with squared differences: exact zeros, no cancellation."""
    for start in range(0, pairs.size, PAIRS_AT_ONCE):
        i, j = np.unravel_index(pairs[start : start + PAIRS_AT_ONCE], D.shape)
        D[i, j] = squared_norms(X[i] - Z[j])


def chi_squared(X: Any, Z: Any | None = None) -> Matrix:
    """Return sum_k (x_k - z_k)^2 / (x_k + z_k), with 0/0 = 0, for all rows of X and Z."""
    for rows in (X, Z):
        if rows is not None and rows.size and rows.min() < 0.0:
            raise ValueError(
                f"The chi-squared distance needs features >= 0, received {rows.min():g}; "
                "use histograms or counts, or another kernel for these columns."
            )
    return np.asarray(np.abs(additive_chi2_kernel(X, X if Z is None else Z)))


def given_distances(X: Any, Z: Any | None = None) -> Matrix:
    """Return a block (rows, training samples) that already holds distances, after checking it."""
    if X.size and X.min() < 0.0:
        raise ValueError(
            f"A distance cannot be negative, received {X.min():g}; "
            "pass the distances to the training samples."
        )
    if Z is not None:
        check_block(X, Z)
        return np.asarray(X)
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"The distances between the training samples form a square matrix, received shape {X.shape}; "
            "pass one row and one column per training sample."
        )
    largest = X.max(initial=0.0)
    if not np.allclose(X, X.T, rtol=0.0, atol=1e-8 * largest):
        raise ValueError("The distance matrix of the training samples is not symmetric; pass (D + D.T) / 2.")
    if np.diagonal(X).max(initial=0.0) > 1e-8 * largest:
        raise ValueError(
            f"The distance of a training sample to itself has to be 0, received {np.diagonal(X).max():g}; "
            "pass distances, not similarities."
        )
    D = (X + X.T) / 2.0
    np.fill_diagonal(D, 0.0)
    return np.asarray(D)


def check_block(X: Any, Z: Any) -> None:
    """Raise ValueError unless the block ``X`` has one column per training sample (row of ``Z``)."""
    if X.shape[1] != Z.shape[0]:
        raise ValueError(
            f"A block of new rows has one column per training sample, received shape {X.shape}; "
            f"pass {Z.shape[0]} columns."
        )


def mean_squared_euclidean(X: Any) -> float:
    """Return the mean of ||x_i - x_j||^2 over i != j in O(nd): twice the unbiased variances, summed."""
    n = X.shape[0]
    if n < 2:
        return 0.0
    if is_sparse(X):
        means, variances = mean_variance_axis(X, axis=0)
    else:
        means, variances = X.mean(axis=0), X.var(axis=0)
    # A constant column leaves the square of a rounding error, which must not become a scale.
    variances[np.sqrt(variances) <= 4.0 * np.finfo(np.float64).eps * np.abs(means)] = 0.0
    return float(2.0 * variances.sum() * n / (n - 1))
