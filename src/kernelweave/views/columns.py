"""A column selection, resolved against a table into positions."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.views.tables import Table, column_names, is_polars


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
