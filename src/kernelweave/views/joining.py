"""Tables of the same samples brought to the same order: by the labels of their rows, or joined on a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.views.column_values import is_empty, word
from kernelweave.views.tables import (
    Table,
    column_names,
    is_pandas,
    is_polars,
    near_matches,
    take_columns,
    take_rows,
)


def row_labels(table: Any) -> Any:
    """Return the labels of a pandas frame's or series' rows, None where they only count or there are none."""
    index = getattr(table, "index", None)
    if index is None or not hasattr(table, "iloc") or type(index).__name__ == "RangeIndex":
        return None
    return index


def aligned_by_label(tables: Mapping[str, Table]) -> tuple[dict[str, Table], Any]:
    """Return the tables with all labelled rows in the order of the first labelled table, and its labels.

    The columns of a square frame follow where they have the same labels as its rows: it holds kernels or distances.
    Labels that are not the same set raise ValueError.
    """
    labels = {name: row_labels(table) for name, table in tables.items()}
    labelled = [name for name, own in labels.items() if own is not None]
    if not labelled:
        counting = [name for name, table in tables.items() if is_pandas(table)]
        for name in counting[1:]:
            _require_positions(counting[0], tables[counting[0]], name, tables[name].index)
        return dict(tables), None
    first, found = labelled[0], dict(tables)
    order = labels[first]
    for name, table in tables.items():
        own = labels[name]
        if own is None:
            _require_positions(name, table, first, order)
            continue
        moved = not own.equals(order)
        if moved:
            found[name] = take_rows(table, _order(name, own, first, order))
        found[name] = _with_columns_like_rows(name, found[name], own.tolist(), order.tolist(), moved=moved)
    return found, order


def are_permuted(one: Any, other: Any) -> bool:
    """Tell whether two sequences of labels are the same in another order."""
    if len(one) != len(other) or one.equals(other):
        return False
    return set(one) == set(other)


def _require_positions(name: str, table: Table, first: str, order: Any) -> None:
    """Refuse a frame that only counts its rows beside one whose labels are these counts in another order."""
    if is_pandas(table) and are_permuted(table.index, order):
        raise ValueError(
            f"The rows of view {first!r} are labelled with the row numbers of view {name!r}, in another order: it is "
            f"not clear which rows belong together. Use .reset_index(drop=True) on view {first!r} if both are in the "
            "same order, or Views.join."
        )


def _with_columns_like_rows(
    name: str, table: Table, labels: list[Any], order: list[Any], *, moved: bool
) -> Table:
    """Return a frame whose columns are in the order of its rows, where they are labelled like these.

    A square frame whose rows have ``moved`` may hold kernels or distances: then its columns have to be labelled.
    """
    columns = list(table.columns)
    if len(columns) != len(labels):
        return table
    place = {label: number for number, label in enumerate(columns)}
    if len(place) == len(columns) and place.keys() == set(labels):
        absent = [label for label in order if label not in place]
        if absent:
            raise ValueError(
                f"View {name!r} holds values between the samples of its rows and has no column for {absent[0]!r}; use "
                "Views.join(..., how='inner'), which keeps the samples that all views have."
            )
        if columns == order:
            return table
        return take_columns(table, np.array([place[label] for label in order], dtype=np.intp))
    if moved:
        raise ValueError(
            f"View {name!r} is square and its rows come in another order, but its columns are not labelled like its "
            "rows: it is not clear whether they are samples too; label them alike if they are, or bring the rows of "
            "all views into the same order beforehand, with .loc."
        )
    return table


def _order(name: str, own: Any, first: str, order: Any) -> Indices:
    """Return which rows to take, so that their labels come in an order."""
    if own.is_unique and order.is_unique and len(own) == len(order):
        places = own.get_indexer(order)
        if (places >= 0).all():
            return np.asarray(places, dtype=np.intp)
    if not own.is_unique or not order.is_unique:
        repeated = name if not own.is_unique else first
        raise ValueError(
            f"The rows of views {first!r} and {name!r} are labelled differently, and view {repeated!r} has labels more "
            "than once, so they cannot be put in order; make the labels unique, or use .reset_index(drop=True) on both "
            "if their rows are in the same order."
        )
    missing = [label for label in order if label not in own][:1]
    extra = [label for label in own if label not in order][:1]
    lacks = (
        f"view {name!r} has no row {missing[0]!r}" if missing else f"view {first!r} has no row {extra[0]!r}"
    )
    raise ValueError(
        f"The rows of views {first!r} and {name!r} do not have the same labels ({lacks}); join them with "
        "Views.join({...}, on=...), which keeps everybody, or use .reset_index(drop=True) on both if their rows are "
        "in the same order."
    )


def joined(
    tables: Mapping[str, Table], on: Any, how: str, *, strangers: bool = False
) -> tuple[dict[str, Table], dict[str, Indices], AnyArray]:
    """Return tables without their keys, the place of every row among the samples, and the keys of the samples."""
    if how not in ("outer", "inner"):
        raise ValueError(f"how must be 'outer', which keeps everybody, or 'inner'; got {how!r}.")
    keys = {name: _keys(name, table, _of_table(on, name)) for name, table in tables.items()}
    if not strangers:
        _require_common(keys)
    _require_one_spelling(keys)
    if how == "outer":
        ids = list(dict.fromkeys(key for own in keys.values() for key in own))
    else:
        common = set.intersection(*(set(own) for own in keys.values()))
        ids = [key for key in next(iter(keys.values())) if key in common]
        if not ids:
            raise ValueError(
                f"No value of {on!r} is in all of the tables {', '.join(tables)}; use how='outer', or check the keys."
            )
    place = {key: number for number, key in enumerate(ids)}
    found, places = {}, {}
    for name, table in tables.items():
        rows = np.array([k for k, key in enumerate(keys[name]) if key in place], dtype=np.intp)
        places[name] = np.array([place[keys[name][k]] for k in rows], dtype=np.intp)
        every = np.arange(len(ids))
        moved = not np.array_equal(places[name], every) and np.array_equal(np.sort(places[name]), every)
        part = _with_columns_like_rows(
            name, _without(table, _of_table(on, name)), keys[name], ids, moved=moved
        )
        found[name] = take_rows(part, rows)
    values = np.empty(len(ids), dtype=object)
    values[:] = ids
    return found, places, _plain(values)


def _plain(ids: AnyArray) -> AnyArray:
    """Return keys of one plain type as an array of it."""
    kinds = {type(key) for key in ids}
    return np.array(ids.tolist()) if kinds in ({int}, {str}) else ids


def _of_table(on: Any, name: str) -> Any:
    if not isinstance(on, Mapping):
        return on
    if name not in on:
        raise ValueError(f"on= names the key of {', '.join(on)}, but not that of {name!r}.")
    return on[name]


def _keys(name: str, table: Table, on: Any) -> list[Any]:
    if on is None:
        labels = row_labels(table)
        if labels is None:
            raise ValueError(
                f"View {name!r} has no row labels to join on; name the column that says who is who: on='patient'."
            )
        keys: Iterable[Any] = labels.tolist()
    elif not is_pandas(table) and not is_polars(table):
        raise TypeError(
            f"View {name!r} is a {type(table).__name__}, which has no column {on!r} to join on; pass a pandas or "
            "polars frame, or use Views({...}, rows={...})."
        )
    elif is_pandas(table) and on not in table.columns and on in table.index.names:
        keys = table.index.get_level_values(on).tolist()
    elif on not in table.columns:
        known = column_names(table) or ()
        raise ValueError(
            f"View {name!r} has no column {on!r} to join on; did you mean {near_matches(str(on), known)}?"
        )
    else:
        keys = table[on].to_list()
    keys = list(keys)
    seen: set[Any] = set()
    for row, key in enumerate(keys):
        if is_empty(key):
            raise ValueError(
                f"View {name!r} has no {on or 'label'} in row {row}; leave the row out, or fill it in."
            )
        if key in seen:
            raise ValueError(
                f"View {name!r} has the {on or 'label'} {key!r} more than once; one row per sample is needed: average "
                "them, or keep one."
            )
        seen.add(key)
    return keys


def _require_common(keys: Mapping[str, list[Any]]) -> None:
    """Refuse a table none of whose keys another table has: they are written differently."""
    for name, own in keys.items():
        others = {key for other, theirs in keys.items() if other != name for key in theirs}
        if len(keys) > 1 and others.isdisjoint(own):
            example = next(iter(others))
            raise ValueError(
                f"View {name!r} shares no key with any other view: it has {own[0]!r} ({type(own[0]).__name__}), others "
                f"{example!r} ({type(example).__name__}); write the keys in the same way."
            )


def _require_one_spelling(keys: Mapping[str, list[Any]]) -> None:
    """Refuse keys of two tables that differ in type, leading zeros or blanks alone: they would be two samples."""
    own = {name: set(found) for name, found in keys.items()}
    common = set.intersection(*own.values())
    spelled: dict[str, tuple[str, Any]] = {}
    for name, found in keys.items():
        for key in found:
            if key in common or not isinstance(key, str | int | float):
                continue
            text = word(key).strip()
            first, other = spelled.setdefault(
                (text.lstrip("0") or "0") if text.isdigit() else text, (name, key)
            )
            if other != key and key not in own[first] and other not in own[name]:
                raise ValueError(
                    f"View {name!r} has the key {key!r} ({type(key).__name__}) and view {first!r} {other!r} "
                    f"({type(other).__name__}): they look like one, but would not be matched; write the keys in the "
                    "same way."
                )


def _without(table: Table, on: Any) -> Table:
    """Return a table without its key."""
    if is_polars(table):
        return table.drop(on)
    table = table.reset_index(drop=True)
    return table if on is None or on not in table.columns else table.drop(columns=on)
