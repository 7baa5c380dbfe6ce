"""New samples against the training samples, all kernels at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank.protocol import FittedKernels

# Rows are taken in slices, so that one kernel's block of new rows stays near 64 MB.
ENTRIES_PER_SLICE = 8_000_000


def scores(fitted: FittedKernels, X: Any, eta: Matrix, coef: Matrix, columns: Indices) -> Matrix:
    """Return Σ_m eta[c, m] k_m(x, x_j) coef[c, j] over the support ``columns``, one column per row c of coef.

    One row of eta serves all rows of coef, or each has its own; kernels without weight are not computed.
    """
    active = np.flatnonzero(eta.any(axis=0))
    parts = []
    for rows in slices(fitted, X):
        total = np.zeros((n_rows(rows), coef.shape[0]))
        for m, K in fitted.cross(rows, which=active, columns=columns):
            total += eta[:, m] * (K @ coef.T)
        parts.append(total)
    return np.concatenate(parts)


def layered_scores(fitted: FittedKernels, X: Any, eta: Matrix, coef: AnyArray, columns: Indices) -> Matrix:
    """Return Σ_m eta[c, m] k_m(x, x_j) coef[m, c, j] over the support ``columns``, a classifier a kernel.

    ``coef`` is (M, classifiers per kernel, support); one row of eta serves all, or each has its own.
    """
    active = np.flatnonzero(eta.any(axis=0))
    parts = []
    for rows in slices(fitted, X):
        total = np.zeros((n_rows(rows), coef.shape[1]))
        for m, K in fitted.cross(rows, which=active, columns=columns):
            total += eta[:, m] * (K @ coef[m].T)
        parts.append(total)
    return np.concatenate(parts)


def contributions(fitted: FittedKernels, X: Any, coef: AnyArray, columns: Indices) -> AnyArray:
    """Return Σ_j k_m(x, x_j) coef[c, m, j] over the support ``columns``, of shape (rows, problems, M).

    What every kernel says of a sample, for coefficients that differ from kernel to kernel.
    """
    active = np.flatnonzero(coef.any(axis=(0, 2)))
    parts = []
    for rows in slices(fitted, X):
        found = np.zeros((n_rows(rows), *coef.shape[:2]))
        for m, K in fitted.cross(rows, which=active, columns=columns):
            found[:, :, m] = K @ coef[:, m].T
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


def slices(fitted: FittedKernels, X: Any) -> Iterator[Any]:
    """Yield the samples a few at a time."""
    if isinstance(X, list | tuple):  # a list of kernel matrices is in memory already
        yield X
        return
    size = max(1, ENTRIES_PER_SLICE // max(fitted.n_samples, 1))
    n = n_rows(X)
    if n <= size:
        yield X
        return
    for start in range(0, n, size):
        yield _safe_indexing(X, slice(start, min(n, start + size)))


def n_rows(X: Any) -> int:
    """Return the number of samples, also of a list of kernel matrices."""
    return int(np.shape(X[0])[0]) if isinstance(X, list | tuple) else int(X.shape[0])
