"""Tables with a row for every sample, made of tables that have some of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelweave._typing import Indices
from kernelweave.views.columns import near_matches
from kernelweave.views.tables import Table, as_floats, is_pandas, is_polars, is_sparse


def spread_rows(tables: Mapping[str, Table], rows: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables with their rows at the places given, and rows of NaN at all others."""
    for name in rows:
        if name not in tables:
            raise ValueError(
                f"rows= names no view {name!r}; did you mean {near_matches(name, tuple(tables))}?"
            )
    places = {name: _places(where, tables[name], name) for name, where in rows.items()}
    whole = [int(table.shape[0]) for name, table in tables.items() if name not in rows]
    n = max([*whole, *(int(where.max()) + 1 for where in places.values())])
    return {
        name: _spread(table, places[name], n, name) if name in places else table
        for name, table in tables.items()
    }


def _places(where: Any, table: Table, name: str) -> Indices:
    places = np.asarray(where)
    if places.dtype.kind == "b":
        places = np.flatnonzero(places)
    distinct = np.unique(places).size == places.size
    if places.ndim != 1 or places.dtype.kind not in "iu" or not distinct or places.size != table.shape[0]:
        raise ValueError(
            f"rows={{{name!r}: ...}} must be {table.shape[0]} different places, one for every row of that "
            f"view; got {np.asarray(where).size} of type {np.asarray(where).dtype}."
        )
    if places.min() < 0:
        raise ValueError(f"rows={{{name!r}: ...}} must be places from 0 on; got {places.min()}.")
    return places.astype(np.intp)


def _spread(table: Table, places: Indices, n: int, name: str) -> Table:
    if is_sparse(table):
        raise TypeError(
            f"View {name!r} is sparse, which has no way to say that a sample is missing; pass a dense table."
        )
    if is_pandas(table):
        return table.set_axis(places, axis=0).reindex(range(n))
    values = as_floats(table, f"view {name!r}", finite=False)
    full = np.full((n, values.shape[1]), np.nan)
    full[places] = values
    return type(table)(full, schema=table.columns) if is_polars(table) else full
