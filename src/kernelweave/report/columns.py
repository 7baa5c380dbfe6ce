"""What was done with the columns and the rows of the data, for a page or a screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.bank.column_table import ColumnTable, ColumnUse
from kernelweave.bank.layout import Layout
from kernelweave.estimators.validation import as_bank, as_samples, is_precomputed

# Names of samples that are shown of those that lack a view.
MOST_NAMED = 20


def columns_of(model: Any) -> ColumnTable:
    """Return what a fitted model did with every column, nothing where it does not say."""
    try:
        return model.columns_  # type: ignore[no-any-return]
    except (AttributeError, TypeError):
        return ColumnTable()


def alike(columns: Iterable[ColumnUse]) -> list[dict[str, Any]]:
    """Return one row for all columns of a view that were treated alike: their names, and how often each was filled."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in columns:
        key = one.view, one.type, one.encoding, one.lacking, one.note
        row = found.setdefault(
            key,
            {"view": one.view or "", "names": [], "type": one.type, "encoding": one.encoding, "filled": []},
        )
        row |= {"lacking": one.lacking, "note": one.note}
        row["names"].append(str(one.column))
        row["filled"].append(one.filled)
    for row in found.values():
        low, high = min(row["filled"]), max(row["filled"])
        row["filled"] = f"{low}" if low == high else f"{low} to {high}"
    return list(found.values())


def lacking_rows(bank: Any, X: Any) -> dict[str, Indices]:
    """Return the samples that lack a view, by view; views that all have are left out."""
    found = {view: np.flatnonzero(absent) for view, absent in _absences(bank, X).items()}
    return {view: rows for view, rows in found.items() if rows.size}


def rows_without_a_view(bank: Any, X: Any) -> Indices:
    """Return the samples that lack all views."""
    found = list(_absences(bank, X).values())
    return np.flatnonzero(np.logical_and.reduce(found)) if found else np.empty(0, dtype=np.intp)


def _absences(bank: Any, X: Any) -> dict[str, AnyArray]:
    """Return which samples lack a view, by view; nothing where samples cannot lack any."""
    if is_precomputed(bank) or not hasattr(bank := as_bank(bank), "declared_views"):
        return {}
    layout = Layout(as_samples(X), bank.declared_views())
    found = {}
    for view in layout.view_names:
        whole = layout.columns(view)
        empty = layout.empty(whole)
        if view is not None and layout.scope(whole) is None:
            absent = np.zeros(layout.n_samples, dtype=bool) if empty is None else empty.all(axis=1)
            found[view] = np.asarray(absent)
    return found


def lacking_summary(lacking: Mapping[str, Indices], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return how many samples lack each view, and the names of the first."""
    return {
        view: {"rows": int(rows.size), "who": [str(names[row]) for row in rows[:MOST_NAMED]]}
        for view, rows in lacking.items()
    }
