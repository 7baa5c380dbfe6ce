"""One table, whatever holds it: numpy, pandas, polars or scipy sparse; and selections of its columns."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Real
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from kernelweave._typing import AnyArray, Indices

Table: TypeAlias = Any  # a 2-D numpy array, a pandas or polars frame, or a scipy sparse CSR matrix


def is_pandas(table: Table) -> bool:
    """Return True for a pandas frame."""
    return hasattr(table, "iloc") and hasattr(table, "columns")


def is_polars(table: Table) -> bool:
    """Return True for a polars frame."""
    return type(table).__module__.startswith("polars") and type(table).__name__ == "DataFrame"


def is_sparse(table: Table) -> bool:
    """Return True for a scipy sparse matrix or array."""
    return bool(sparse.issparse(table))


def is_arrow(data: Any) -> bool:
    """Return True for a table of pyarrow."""
    return (
        type(data).__module__.startswith("pyarrow") and hasattr(data, "to_pandas") and hasattr(data, "schema")
    )


def of_arrow(table: Any) -> Table:
    """Return a table of pyarrow as a pandas frame; whole numbers stay such beside empty cells."""
    import pandas as pd
    from pyarrow import types

    return table.to_pandas(types_mapper=lambda t: pd.ArrowDtype(t) if types.is_integer(t) else None)


def as_table(data: Any, what: str) -> Table:
    """Return ``data`` as a table with at least one row and one column, without copying it unless it is pyarrow's."""
    if hasattr(data, "collect"):
        raise TypeError(f"{what} is a {type(data).__name__} without rows yet; pass X.collect().")
    if is_arrow(data):
        require_unique_names(data, what)
        data = of_arrow(data)
    if is_sparse(data):
        table = data.tocsr()
    elif is_pandas(data) or is_polars(data):
        require_unique_names(data, what)
        table = data
    elif is_column_of_objects(data):
        table = as_column(data)
    else:
        table = np.asarray(data)
    if len(table.shape) != 2:
        raise ValueError(
            f"{what} has to be 2-D (samples, features), received {len(table.shape)} dimension(s) of shape "
            f"{tuple(table.shape)}. Reshape your data with .reshape(-1, 1) for one feature or "
            ".reshape(1, -1) for one sample."
        )
    n, d = table.shape
    if n == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=({n}, {d})) for {what} while a minimum of 1 is required."
        )
    if d == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape=({n}, {d})) for {what} while a minimum of 1 is required."
        )
    return table


def require_unique_names(data: Any, what: str) -> None:
    """Raise ValueError where columns of a frame share their name: new rows could not tell them apart."""
    columns = data.column_names if is_arrow(data) else getattr(data, "columns", ())
    if getattr(columns, "is_unique", False) or len(set(columns)) == len(columns):
        return
    names = ", ".join(repr(name) for name, count in Counter(columns).items() if count > 1)
    raise ValueError(f"{what} has several columns named {names}; give every column a name of its own.")


def is_column_of_objects(data: Any) -> bool:
    """Return True for one column of strings, sets or other objects: a Series, a 1-D array, or a list."""
    if hasattr(data, "to_frame") and hasattr(data, "to_list"):  # a pandas or polars Series
        return bool(np.asarray(data).dtype.kind not in "biufcmM")
    if isinstance(data, np.ndarray):
        return data.ndim == 1 and data.dtype.kind in "OUT" and not _are_numbers(data)
    cells = isinstance(data, list | tuple) and len(data) > 0
    return cells and all(isinstance(cell, str | set | frozenset | NoneType) for cell in data)


def is_table_of_objects(data: Any) -> bool:
    """Return True for a 2-D array some of whose cells are no numbers."""
    return (
        isinstance(data, np.ndarray)
        and data.ndim == 2
        and data.dtype.kind in "OUT"
        and not holds_numbers(data)
    )


def as_column(data: Any) -> Table:
    """Return one column of objects as a table."""
    if hasattr(data, "to_frame"):
        return data.to_frame()
    column = np.empty((len(data), 1), dtype=object)
    for row, cell in enumerate(data):  # in one go numpy would look into cells that are sequences
        column[row, 0] = cell
    return column


def holds_numbers(table: Table) -> bool:
    """Return whether all columns are numbers."""
    if is_pandas(table):
        return all(numeric for _, numeric in _pandas_dtypes(table))
    if is_polars(table):
        return all(numeric for _, numeric in _polars_dtypes(table))
    return table.dtype.kind in "biuf" or (table.dtype.kind == "O" and _are_numbers(table.ravel()))


def as_cells(table: Table, what: str) -> AnyArray:
    """Return a table as an object array (samples, columns)."""
    if is_sparse(table):
        raise TypeError(
            f"{what} is sparse and holds numbers, but a kernel of it reads objects; pass a dense table."
        )
    if not (is_pandas(table) or is_polars(table)):
        return np.asarray(table.astype(object))
    cells = np.empty(table.shape, dtype=object)
    for position in range(table.shape[1]):
        column = table.iloc[:, position] if is_pandas(table) else table[:, position]
        cells[:, position : position + 1] = as_column(column.to_list())
    return cells


def is_absent(cells: AnyArray) -> AnyArray:
    """Return which cells hold None, NaN or what pandas has for a missing value."""
    return np.array([[_is_absent(cell) for cell in row] for row in cells], dtype=bool).reshape(cells.shape)


def _is_absent(cell: Any) -> bool:
    if isinstance(cell, float):
        return cell != cell
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _are_numbers(cells: AnyArray) -> bool:
    return all(isinstance(cell, Real) or cell is None for cell in cells)


def column_names(table: Table) -> tuple[str, ...] | None:
    """Return the names of the columns, or None where they have none that are text."""
    if not (is_pandas(table) or is_polars(table)):
        return None
    names = tuple(table.columns)
    return names if all(isinstance(name, str) for name in names) else None


def take_rows(table: Table, rows: slice | Indices) -> Table:
    """Return these rows, of the same kind of table."""
    return table.iloc[rows] if is_pandas(table) else table[rows]


def take_columns(table: Table, columns: Indices) -> Table:
    """Return these columns, of the same kind of table."""
    if is_pandas(table):
        return table.iloc[:, columns]
    if is_polars(table):
        return table[:, [int(column) for column in columns]]
    return table[:, columns]


def as_floats(table: Table, what: str, *, finite: bool = True) -> Any:
    """Return a float64 matrix (CSR for a sparse table), or say which column is not a number or not finite.

    With ``finite=False`` NaN and infinity are let through.
    """
    if is_pandas(table):
        _require_numeric(table, _pandas_dtypes(table), what)
        values = table.to_numpy(dtype=np.float64, na_value=np.nan)
    elif is_polars(table):
        _require_numeric(table, _polars_dtypes(table), what)
        values = table.cast(_polars().Float64).to_numpy()
    elif is_sparse(table):
        _require_numeric(table, [(table.dtype, table.dtype.kind in "biuf")] * table.shape[1], what)
        values = table.astype(np.float64, copy=False)
    else:
        values = _array_as_floats(table, what)
    if finite:
        require_finite(values, table, what)
    return values if is_sparse(values) else np.ascontiguousarray(values)


def stack(blocks: list[Any]) -> Any:
    """Return float64 blocks side by side, sparse when one of them is."""
    if len(blocks) == 1:
        return blocks[0]
    if any(is_sparse(block) for block in blocks):
        return sparse.hstack(blocks, format="csr")
    return np.hstack(blocks)


def _polars() -> Any:
    return sys.modules["polars"]  # a polars frame cannot exist without it


def _pandas_dtypes(table: Table) -> list[tuple[Any, bool]]:
    types = sys.modules["pandas"].api.types
    return [(t, types.is_numeric_dtype(t) and not types.is_complex_dtype(t)) for t in table.dtypes]


def _polars_dtypes(table: Table) -> list[tuple[Any, bool]]:
    return [(t, t.is_numeric() or t == _polars().Boolean) for t in table.dtypes]


def _require_numeric(table: Table, dtypes: list[tuple[Any, bool]], what: str) -> None:
    for position, (dtype, numeric) in enumerate(dtypes):
        if not numeric:
            raise ValueError(
                f"{column_called(table, position, what)} is not numeric (its type is {dtype}); "
                "encode it as numbers or leave it out of the columns."
            )


def _array_as_floats(table: Table, what: str) -> Any:
    kind = table.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: {what} is of type {table.dtype}; pass real numbers.")
    if kind in "biuf":
        return table.astype(np.float64, copy=False)
    if kind == "O":
        return np.column_stack([_objects_as_floats(table, j, what) for j in range(table.shape[1])])
    raise ValueError(f"{what} is not numeric (its type is {table.dtype}); encode it as numbers first.")


def _objects_as_floats(table: Table, position: int, what: str) -> Any:
    try:
        return table[:, position].astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{column_called(table, position, what)} is not numeric: {error}; encode it or leave it out."
        ) from None


def require_finite(values: Any, table: Table, what: str, *, gaps: bool = False) -> None:
    """Raise ValueError where numbers read from a table are infinite, or NaN unless gaps are allowed."""
    numbers = values.data if is_sparse(values) else values
    finite = ~np.isinf(numbers) if gaps and not is_sparse(values) else np.isfinite(numbers)
    if finite.all():
        return
    if is_sparse(values):
        entries = values.tocoo()
        row, position = (int(axis[~finite][0]) for axis in (entries.row, entries.col))
        value = entries.data[~finite][0]
    else:
        row, position = (int(index) for index in np.argwhere(~finite)[0])
        value = values[row, position]
    kind = "NaN" if np.isnan(value) else "inf"
    raise ValueError(
        f"{column_called(table, position, what)} contains {kind} in row {row}; impute such values first."
    )


class TablePart(str):
    """How to call a table some columns of which were taken: what the whole is called, and where they stand in it."""

    positions: Sequence[int]

    def __new__(cls, what: str, positions: Sequence[int]) -> TablePart:
        made = super().__new__(cls, what)
        before = getattr(what, "positions", None)
        made.positions = positions if before is None else [before[int(k)] for k in positions]
        return made


def column_called(table: Table, position: int, what: str) -> str:
    """Return how to call a column in a message."""
    names = column_names(table)
    if names is not None:
        return f"Column {names[position]!r} of {what}"
    return f"Column {what.positions[position] if isinstance(what, TablePart) else position} of {what}"


def resolve_columns(selection: Any, table: Table, what: str = "X") -> Indices:
    """Return the positions a selection means.

    ``selection`` is None (all columns), a name or list of names, a position or list of positions, a slice of
    either, a boolean mask, or a callable such as scikit-learn's ``make_column_selector``; for a polars frame
    also a polars selector.
    """
    if selection is None:
        return np.arange(table.shape[1])
    if callable(selection):
        return resolve_columns(selection(table), table, what)
    if is_polars(table) and type(selection).__module__.startswith("polars"):
        return resolve_columns(table.select(selection).columns, table, what)
    positions = (
        _slice(selection, table, what) if isinstance(selection, slice) else _list(selection, table, what)
    )
    if positions.size == 0:
        raise ValueError(
            f"The selection {selection!r} takes no column of {what}; it has to take at least one."
        )
    return positions


def near_matches(name: str, known: tuple[str, ...]) -> str:
    """Return the known names to show for an unknown one: the closest, else the first few."""
    close = get_close_matches(name, known, n=3) or list(known[:8])
    shown = ", ".join(repr(candidate) for candidate in close)
    return shown if len(close) == len(known) or close != list(known[:8]) else f"{shown}, ..."


def _list(selection: Any, table: Table, what: str) -> Indices:
    values = np.atleast_1d(np.asarray(selection))
    if values.ndim != 1:
        raise ValueError(
            f"A column selection for {what} is one-dimensional, received {values.shape}; pass a flat list."
        )
    if values.size == 0:
        return np.empty(0, dtype=np.intp)
    if values.dtype.kind == "b":
        return _mask(values, table, what)
    if values.dtype.kind in "iu":
        return np.array([_position(int(value), table, what) for value in values], dtype=np.intp)
    if all(isinstance(value, str) for value in values.tolist()):
        return np.array([_named(value, table, what) for value in values.tolist()], dtype=np.intp)
    raise TypeError(
        f"The selection {selection!r} for {what} is neither names nor positions; "
        "pass names, whole numbers, a slice, a boolean mask or a callable."
    )


def _mask(mask: AnyArray, table: Table, what: str) -> Indices:
    if mask.size != table.shape[1]:
        raise ValueError(
            f"The boolean mask for {what} has {mask.size} entries; "
            f"it needs one for each of the {table.shape[1]} columns."
        )
    return np.flatnonzero(mask)


def _slice(selection: slice, table: Table, what: str) -> Indices:
    bounds = (selection.start, selection.stop)
    if any(isinstance(bound, str) for bound in bounds):
        # Between names both ends belong to the selection, as in pandas and scikit-learn.
        first = 0 if selection.start is None else _named(selection.start, table, what)
        last = table.shape[1] - 1 if selection.stop is None else _named(selection.stop, table, what)
        return np.arange(first, last + 1)[:: selection.step]
    return np.arange(table.shape[1])[selection]


def _position(position: int, table: Table, what: str) -> int:
    d = int(table.shape[1])
    if not -d <= position < d:
        raise ValueError(f"Column {position} is out of range: {what} has {d} columns, 0 to {d - 1}.")
    return position % d


def _named(name: str, table: Table, what: str) -> int:
    names = column_names(table)
    if names is None:
        raise ValueError(
            f"Column {name!r} was asked for, but {what} is a {type(table).__name__} without column names; "
            "use positions, or pass a pandas or polars frame."
        )
    if name not in names:
        raise ValueError(f"{what} has no column {name!r}; did you mean {near_matches(name, names)}?")
    if names.count(name) > 1:
        raise ValueError(f"{what} has {names.count(name)} columns named {name!r}; select them by position.")
    return names.index(name)
