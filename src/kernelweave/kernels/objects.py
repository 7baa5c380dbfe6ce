"""Rows that are no numbers: strings, sets, graphs, one object per cell."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from kernelweave._typing import AnyArray


def as_cells(X: Any, label: str) -> AnyArray:
    """Return samples as an object array (samples, columns): a list, an array, a column or a frame of objects."""
    if sparse.issparse(X):
        raise TypeError(f"{label} reads objects, not a sparse matrix; pass a column of them.")
    if hasattr(X, "columns"):  # a pandas or polars frame
        columns = [_as_column(X[name].to_list()) for name in X.columns]
        return np.column_stack(columns) if columns else np.empty((len(X), 0), dtype=object)
    if hasattr(X, "to_list"):
        return _as_column(X.to_list())[:, None]
    if isinstance(X, np.ndarray):
        cells = X.astype(object, copy=False)
        return cells[:, None] if cells.ndim == 1 else _require_table(cells, label)
    if isinstance(X, list | tuple):
        return _as_column(X)[:, None]
    raise TypeError(f"{label} needs a list or a column of objects, received {type(X).__name__}.")


def is_numeric(X: Any) -> bool:
    """Tell whether samples are rows of numbers already."""
    if sparse.issparse(X):
        return True
    if isinstance(X, np.ndarray):
        return X.dtype.kind in "biuf"
    if hasattr(X, "columns") or hasattr(X, "to_list"):
        return bool(np.asarray(X).dtype.kind in "biuf")
    rows = isinstance(X, list | tuple) and all(isinstance(row, list | tuple | np.ndarray) for row in X)
    return rows and len({len(row) for row in X}) == 1 and all(isinstance(c, Real) for row in X for c in row)


def are_objects(X: Any) -> bool:
    """Tell whether rows are cells of objects, as `as_cells` returns them."""
    return isinstance(X, np.ndarray) and X.dtype.kind == "O"


def only_column(cells: AnyArray, label: str) -> AnyArray:
    """Return the one column of objects a kernel reads."""
    if cells.shape[1] != 1:
        raise ValueError(
            f"{label} reads one column of objects, received {cells.shape[1]}; name it, in "
            'Entry(kernel, columns="name") or kernel.on("name").'
        )
    return np.asarray(cells[:, 0])


def require(column: AnyArray, accepts: Callable[[Any], bool], label: str, wanted: str) -> None:
    """Raise TypeError unless every cell is what a kernel can read."""
    for row, cell in enumerate(column):
        if not accepts(cell):
            raise TypeError(f"{label} reads {wanted}, received {_short(cell)} in row {row}.")


def _short(cell: Any) -> str:
    text = repr(cell)
    return f"{type(cell).__name__} {text if len(text) <= 40 else text[:37] + '...'}"


def _as_column(cells: Any) -> AnyArray:
    column = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):  # in one go numpy would look into cells that are sequences
        column[row] = cell
    return column


def _require_table(cells: AnyArray, label: str) -> AnyArray:
    if cells.ndim != 2:
        raise ValueError(f"{label} needs one column of objects, received an array of shape {cells.shape}.")
    return cells
