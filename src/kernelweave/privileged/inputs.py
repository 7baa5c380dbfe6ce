"""Privileged features as a fit receives them: one row per sample, rows of NaN where there are none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_array

from kernelweave._typing import AnyArray, Indices
from kernelweave.bank import Views
from kernelweave.views.tables import is_sparse


def read_privileged(privileged: Any, n_samples: int, *, pairwise: bool) -> tuple[Any, Indices]:
    """Return the rows that exist, and which samples they belong to.

    ``pairwise``: the columns are samples too, and those without features are NaN as well.
    """
    if isinstance(privileged, Views):
        _require_rows(privileged.shape[0], n_samples)
        places = _present(np.hstack([_missing(privileged[name]) for name in privileged.names]))
        return (privileged if places.size == n_samples else privileged[places]), places
    if pairwise:
        return _matrices(privileged, n_samples)
    table = check_array(
        privileged,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_all_finite="allow-nan",
        input_name="privileged",
    )
    _require_rows(table.shape[0], n_samples)
    places = np.arange(n_samples) if is_sparse(table) else _present(np.isnan(table))
    rows = privileged if hasattr(privileged, "columns") else table  # frames keep their names
    return (rows if places.size == n_samples else _safe_indexing(rows, places)), places


def _matrices(privileged: Any, n_samples: int) -> tuple[AnyArray, Indices]:
    is_list = isinstance(privileged, list | tuple) and len(privileged) > 0 and np.ndim(privileged[0]) == 2
    stack = np.stack(privileged, axis=2) if is_list else np.asarray(privileged, dtype=np.float64)
    if stack.ndim not in (2, 3) or stack.shape[:2] != (n_samples, n_samples):
        raise ValueError(
            f"With privileged_kernel='precomputed', privileged must be a kernel matrix of shape "
            f"({n_samples}, {n_samples}), several as (.., .., L) or a list; got shape {stack.shape}. "
            "Cross-validation cuts its rows only: there, pass features Z with K* = ZZ' and "
            "privileged_kernel=Linear()."
        )
    known = ~np.isnan(stack.reshape(n_samples, -1)).all(axis=1)
    places = _present(np.isnan(stack[:, known] if known.any() else stack).reshape(n_samples, -1))
    return stack[np.ix_(places, places)], places


def _missing(view: Any) -> AnyArray:
    """Return which rows of a view have no values at all, and which have some that are missing, by column."""
    if is_sparse(view):
        return np.zeros((view.shape[0], 1), dtype=bool)
    unknown = np.isnan(np.asarray(view, dtype=np.float64))
    return np.column_stack([unknown.any(axis=1), unknown.all(axis=1)])


def _present(missing: AnyArray) -> Indices:
    """Return the rows without NaN; rows that are only partly NaN are an error."""
    some = missing.any(axis=1)
    partly = np.flatnonzero(some & ~missing.all(axis=1))
    if partly.size:
        raise ValueError(
            f"{partly.size} row(s) of privileged are partly NaN, the first is row {partly[0]}: a sample "
            "without privileged features is a row of NaN only; impute what is missing, or blank the row."
        )
    places = np.flatnonzero(~some)
    if not places.size:
        warnings.warn(
            "Every row of privileged is NaN: no sample has privileged features, and the slacks are those of "
            "the C-SVC.",
            UserWarning,
            stacklevel=5,
        )
    return places


def _require_rows(received: int, n_samples: int) -> None:
    if received != n_samples:
        raise ValueError(
            f"X has {n_samples} samples but privileged has {received} rows; they must agree, with NaN rows "
            "for samples without privileged features."
        )
