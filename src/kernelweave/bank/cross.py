"""New samples against the training samples: what learnt weights and coefficients say of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank.protocol import FittedKernels, n_rows, slices

# Rows are taken in slices whose results, kernel by kernel, stay near 64 MB.
RESULTS_PER_SLICE = 8_000_000


def scores(
    fitted: FittedKernels, X: Any, eta: Matrix, coef: Matrix, columns: Indices, n_threads: int = 1
) -> Matrix:
    """Return Σ_m eta[c, m] k_m(x, x_j) coef[c, j] over the support ``columns``, one column per row c of coef.

    One row of eta serves all rows of coef, or each has its own; kernels without weight are not computed.
    """
    if bool((eta == eta[0]).all()):
        return fitted.weighted_products(X, columns, np.ascontiguousarray(coef.T), eta[0], n_threads)
    return np.asarray(
        contributions(fitted, X, eta[:, :, None] * coef[:, None, :], columns, n_threads).sum(axis=2)
    )


def layered_scores(
    fitted: FittedKernels, X: Any, eta: Matrix, coef: AnyArray, columns: Indices, n_threads: int = 1
) -> Matrix:
    """Return Σ_m eta[c, m] k_m(x, x_j) coef[m, c, j] over the support ``columns``, a classifier a kernel.

    ``coef`` is (M, classifiers per kernel, support); one row of eta serves all, or each has its own.
    """
    weighted = eta[:, :, None] * coef.transpose(1, 0, 2)
    return np.asarray(contributions(fitted, X, weighted, columns, n_threads).sum(axis=2))


def contributions(
    fitted: FittedKernels, X: Any, coef: AnyArray, columns: Indices, n_threads: int = 1
) -> AnyArray:
    """Return Σ_j k_m(x, x_j) coef[c, m, j] over the support ``columns``, of shape (rows, problems, M).

    What every kernel says of a sample, for coefficients that differ from kernel to kernel.
    """
    active = np.flatnonzero(coef.any(axis=(0, 2)))
    V = np.ascontiguousarray(coef[:, active].transpose(1, 2, 0))
    parts = []
    for rows in _slices(X, max(active.size, 1) * coef.shape[0]):
        found = np.zeros((n_rows(rows), *coef.shape[:2]))
        if active.size:
            found[:, :, active] = fitted.products(rows, columns, V, active, n_threads).transpose(1, 2, 0)
        parts.append(found)
    return np.concatenate(parts)


def combined(fitted: FittedKernels, X: Any, eta: Matrix, Z: Any = None) -> Matrix:
    """Return Σ_m eta_m k_m between the rows of X and those of Z (None: the training samples)."""
    active = np.flatnonzero(eta)
    if Z is not None:
        return np.asarray(sum(eta[m] * K for m, K in fitted.between(X, Z, which=active)))
    return np.concatenate(
        [sum(eta[m] * K for m, K in fitted.cross(rows, which=active)) for rows in slices(fitted, X)]
    )


def _slices(X: Any, results_per_row: int) -> list[Any]:
    """Return the samples a few at a time, by what is computed for each."""
    size, n = max(1, RESULTS_PER_SLICE // results_per_row), n_rows(X)
    if isinstance(X, list | tuple) or n <= size:
        return [X]
    return [_safe_indexing(X, slice(start, min(n, start + size))) for start in range(0, n, size)]
