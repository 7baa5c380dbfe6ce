"""New samples against the training samples: what learnt weights and coefficients say of them.

New samples are read a few rows at a time, and no matrix of kernel values is ever made: kernels of a view share
one pass over the pairs of a slice with the support. Memory grows with the answer, not with the samples.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank.protocol import FittedKernels, n_rows, slices

# Most rows at a time, and most results held of them at a time: 64 MB.
ROWS_PER_SLICE, RESULTS_PER_SLICE = 65_536, 8_000_000


def scores(
    fitted: FittedKernels, X: Any, eta: Matrix, coef: Matrix, columns: Indices, n_threads: int = 1
) -> Matrix:
    """Return Σ_m eta[c, m] k_m(x, x_j) coef[c, j] over the support ``columns``, one column per row c of coef.

    One row of eta serves all rows of coef, or each has its own; kernels without weight are not computed.
    """
    V, active = np.ascontiguousarray(coef.T), np.flatnonzero(eta.any(axis=0))
    if bool((eta == eta[0]).all()):
        return in_slices(
            X,
            lambda rows: fitted.weighted_products(rows, columns, V, eta[0], n_threads),
            len(coef),
            fitted,
        )

    def weighted(rows: Any) -> Matrix:
        each = _products(fitted, rows, columns, V, active, n_threads)
        return np.asarray(np.einsum("mrc,cm->rc", each, eta[:, active]))

    return in_slices(X, weighted, active.size * len(coef), fitted)


def weighted_contributions(
    fitted: FittedKernels, X: Any, eta: Matrix, coef: Matrix, columns: Indices, n_threads: int = 1
) -> AnyArray:
    """Return eta[c, m] Σ_j k_m(x, x_j) coef[c, j] over the support ``columns``, of shape (rows, problems, M).

    What every kernel adds to `scores`.
    """
    V, active = np.ascontiguousarray(coef.T), np.flatnonzero(eta.any(axis=0))

    def of(rows: Any) -> AnyArray:
        each = _products(fitted, rows, columns, V, active, n_threads)
        found = np.zeros((n_rows(rows), len(coef), eta.shape[1]))
        found[:, :, active] = each.transpose(1, 2, 0) * eta[:, active]
        return found

    return in_slices(X, of, (active.size + eta.shape[1]) * len(coef), fitted)


def layered_scores(
    fitted: FittedKernels, X: Any, eta: Matrix, coef: AnyArray, columns: Indices, n_threads: int = 1
) -> Matrix:
    """Return Σ_m eta[c, m] k_m(x, x_j) coef[m, c, j] over the support ``columns``, a classifier a kernel.

    ``coef`` is (M, classifiers per kernel, support); one row of eta serves all, or each has its own.
    """
    weighted = eta[:, :, None] * coef.transpose(1, 0, 2)
    return in_slices(
        X,
        lambda rows: contributions(fitted, rows, weighted, columns, n_threads).sum(axis=2),
        2 * weighted.shape[0] * weighted.shape[1],
        fitted,
    )


def contributions(
    fitted: FittedKernels, X: Any, coef: AnyArray, columns: Indices, n_threads: int = 1
) -> AnyArray:
    """Return Σ_j k_m(x, x_j) coef[c, m, j] over the support ``columns``, of shape (rows, problems, M).

    What every kernel says of a sample, for coefficients that differ from kernel to kernel.
    """
    active = np.flatnonzero(coef.any(axis=(0, 2)))
    V = np.ascontiguousarray(coef[:, active].transpose(1, 2, 0))

    def of(rows: Any) -> AnyArray:
        found = np.zeros((n_rows(rows), *coef.shape[:2]))
        found[:, :, active] = _products(fitted, rows, columns, V, active, n_threads).transpose(1, 2, 0)
        return found

    return in_slices(X, of, (active.size + coef.shape[1]) * coef.shape[0], fitted)


def combined(fitted: FittedKernels, X: Any, eta: Matrix, Z: Any = None) -> Matrix:
    """Return Σ_m eta_m k_m between the rows of X and those of Z (None: the training samples)."""
    active = np.flatnonzero(eta)
    if Z is not None:
        return np.asarray(sum(eta[m] * K for m, K in fitted.between(X, Z, which=active)))
    return np.concatenate(
        [sum(eta[m] * K for m, K in fitted.cross(rows, which=active)) for rows in slices(fitted, X)]
    )


def in_slices(
    X: Any, of: Callable[[Any], AnyArray], results_per_row: int, fitted: FittedKernels | None = None
) -> AnyArray:
    """Return what a function says of samples, which it is given a few rows at a time.

    The size of a slice follows from the number of results that are held for every row. What kernels can say
    against samples they say of all of them, by their numbers among all.
    """
    n = n_rows(X)
    size = max(1, min(ROWS_PER_SLICE, RESULTS_PER_SLICE // max(results_per_row, 1)))
    if isinstance(X, list | tuple) or n <= size:  # a list of kernel matrices is in memory already
        return of(X)
    if fitted is not None:
        fitted.check_rows(X)
    first = of(_safe_indexing(X, slice(0, size)))
    found = np.empty((n, *first.shape[1:]), dtype=first.dtype)
    found[:size] = first
    for start in range(size, n, size):
        rows = slice(start, min(n, start + size))
        found[rows] = of(_safe_indexing(X, rows))
    return found


def _products(
    fitted: FittedKernels, rows: Any, columns: Indices, V: AnyArray, active: Indices, n_threads: int
) -> AnyArray:
    if not active.size:
        return np.zeros((0, n_rows(rows), V.shape[-1]))
    return fitted.products(rows, columns, V, active, n_threads)
