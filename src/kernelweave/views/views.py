"""Views: several tables of the same samples that slice like one array."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from copy import copy
from typing import Any, NoReturn, overload

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.views.column_values import EXACT
from kernelweave.views.joining import aligned_by_label, joined
from kernelweave.views.tables import (
    Table,
    as_cells,
    as_floats,
    as_table,
    holds_numbers,
    is_pandas,
    is_polars,
    is_sparse,
    near_matches,
    stack,
    take_rows,
)


class Views:
    """Several representations of the same samples, one table each, with one sample axis.

    ``views[rows]`` takes the same rows of every table, so scikit-learn's splitters, cross-validation and
    pipelines treat it like an array; ``views["rna"]`` is one table.

    Parameters
    ----------
    mapping : dict of name to table: numpy array, pandas or polars frame, scipy sparse matrix, all of the same
        length; or one column of strings, sets or other objects (a Series, a 1-D array) for kernels that read them.
        A square kernel or distance matrix is a view too (for ``Precomputed`` and ``ExpDistance``): slicing
        remembers which rows were taken, so its columns follow the training rows in cross-validation.
    rows : dict of name to places, default=None
        For a view that some samples do not have: which samples the rows of its table belong to. The others
        become rows of NaN, which is what estimators take for a missing view.

    Attributes
    ----------
    labels : the labels of the rows (a pandas Index), None where no table has any
    ids : what the rows are called: the labels, or the keys of `join`, None where they have no names

    Notes
    -----
    Pandas frames with row labels (an index that does not only count) are put into the order of the first of them;
    labels that differ are refused. Tables without labels are joined by position.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> views = Views({"rna": np.ones((5, 3)), "mri": np.zeros((5, 2))})
    >>> views
    Views(rna: 5 x 3, mri: 5 x 2)
    >>> views[[0, 2]].shape
    (2, 5)

    """

    ndim = 2
    # Rows are taken with views[rows]; walking over a Views could mean samples or tables, so it is refused.
    __iter__ = None
    _ids: Any = None  # files of earlier versions hold none

    def __init__(self, mapping: Mapping[str, Any], rows: Mapping[str, Any] | None = None) -> None:
        if not isinstance(mapping, Mapping):
            raise TypeError(
                f"Views needs a dict of name to table, received {type(mapping).__name__}; "
                'use Views({"first": A, "second": B}).'
            )
        if not mapping:
            raise ValueError("Views received an empty dict; it needs at least one named table.")
        for name in mapping:
            if not isinstance(name, str):
                raise TypeError(f"The name of a view is text, received {name!r}; use {str(name)!r}.")
        self._tables: dict[str, Table] = {
            name: as_table(data, f"view {name!r}") for name, data in mapping.items()
        }
        if rows is not None:
            self._tables = spread_rows(self._tables, rows)
        first, *others = self._tables
        for name in others:
            lengths = self._tables[first].shape[0], self._tables[name].shape[0]
            if lengths[0] != lengths[1]:
                raise ValueError(
                    f"View {first!r} has {lengths[0]} samples and view {name!r} has {lengths[1]}; "
                    "all views need the same samples in the same order; Views.join joins tables of different ones."
                )
        self._tables, self._ids = aligned_by_label(self._tables)
        self._rows: Indices | None = None
        self._n_origin = len(self)

    @classmethod
    def join(
        cls, tables: Mapping[str, Any], on: Any = None, how: str = "outer", *, strangers: bool = False
    ) -> Views:
        """Return tables joined on a key: whom a table lacks gets a missing view there.

        Parameters
        ----------
        tables : dict of name to pandas or polars frame
        on : the column that says who is who, or a dict of name to column; None is the labels of the rows
        how : "outer" keeps everybody, in order of appearance; "inner" those whom all tables have
        strangers : let a table have nobody in common with the others, as a few new samples may; refused otherwise,
            for keys are then likely to be written differently

        >>> import pandas as pd
        >>> rna = pd.DataFrame({"patient": ["a", "b"], "g1": [1.0, 2.0], "g2": [0.5, 0.1]})
        >>> mri = pd.DataFrame({"patient": ["b", "c"], "v1": [3.0, 4.0]})
        >>> views = Views.join({"rna": rna, "mri": mri}, on="patient")
        >>> views, views.ids.tolist()
        (Views(rna: 3 x 2, mri: 3 x 1), ['a', 'b', 'c'])
        """
        if not isinstance(tables, Mapping):
            raise TypeError(
                f"Views.join needs a dict of name to frame, received {type(tables).__name__}; use "
                'Views.join({"rna": A, "mri": B}, on="patient").'
            )
        checked = {name: as_table(table, f"view {name!r}") for name, table in tables.items()}
        parts, places, ids = joined(checked, on, how, strangers=strangers)
        everybody = np.arange(len(ids))
        spread = {name: where for name, where in places.items() if not np.array_equal(where, everybody)}
        views = cls(parts, rows=spread or None)
        views._ids = ids
        return views

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views, in order."""
        return tuple(self._tables)

    @property
    def labels(self) -> Any:
        """The labels of the rows, a pandas Index; None where no table has any."""
        return self._ids if hasattr(self._ids, "equals") else None

    @property
    def ids(self) -> AnyArray | None:
        """What the rows are called: their labels, or the keys they were joined on; None without either."""
        return None if self._ids is None else np.asarray(self._ids)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples, and number of columns of all views together."""
        return len(self), sum(int(table.shape[1]) for table in self._tables.values())

    @property
    def origin(self) -> tuple[Indices, int] | None:
        """Which rows of how many were taken from the Views that was sliced; None for one that was not."""
        return None if self._rows is None else (self._rows, self._n_origin)

    def __len__(self) -> int:
        return int(next(iter(self._tables.values())).shape[0])

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __repr__(self) -> str:
        tables = (f"{name}: {table.shape[0]} x {table.shape[1]}" for name, table in self._tables.items())
        return f"Views({', '.join(tables)})"

    def items(self) -> ItemsView[str, Table]:
        """Return the pairs of name and table."""
        return self._tables.items()

    @overload
    def __getitem__(self, key: str) -> Table: ...
    @overload
    def __getitem__(self, key: Any) -> Views: ...
    def __getitem__(self, key: Any) -> Table | Views:
        if isinstance(key, str):
            if key not in self._tables:
                raise KeyError(f"There is no view {key!r}; did you mean {near_matches(key, self.names)}?")
            return self._tables[key]
        rows = as_rows(key, len(self))
        sliced = object.__new__(Views)
        sliced._tables = {name: take_rows(table, rows) for name, table in self._tables.items()}
        sliced._ids = None if self._ids is None else self._ids[rows]
        before = np.arange(self._n_origin) if self._rows is None else self._rows
        sliced._rows, sliced._n_origin = before[rows], self._n_origin
        return sliced

    def with_tables(self, more: Mapping[str, Table]) -> Views:
        """Return the views with more tables of the same samples beside them."""
        found = copy(self)
        found._tables = {**self._tables, **more}
        return found

    def concatenate(self) -> Any:
        """Return all views side by side as one float64 array (CSR when one of them is sparse)."""
        return stack([as_floats(table, f"view {name!r}") for name, table in self.items()])

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            f"{self!r} is several tables, not one array; use views.concatenate() for one array, an estimator "
            "with a KernelBank, or, around one in what takes arrays only, row numbers: "
            "make_pipeline(FunctionTransformer(views.__getitem__), model) learns from np.arange(len(views))[:, None]."
        )


def as_rows(key: Any, n: int) -> slice | Indices:
    """Return the rows an array key means: ``key``, ``key, ...`` and ``key, :`` are the same.

    A table of one column is that column.
    """
    if isinstance(key, tuple):
        key, *rest = key
        if any(
            part is not Ellipsis and not (isinstance(part, slice) and part == slice(None)) for part in rest
        ):
            raise IndexError(
                f"Views are indexed by rows only, received {(key, *rest)!r}; "
                "take a table with views['name'] for columns."
            )
    if key is Ellipsis:
        key = slice(None)
    if isinstance(key, slice):
        return key
    rows = np.atleast_1d(np.asarray(key))
    if rows.ndim == 2 and rows.shape[1] == 1:
        rows = rows[:, 0]
    if rows.size == 0:
        return np.empty(0, dtype=np.intp)
    if rows.dtype.kind == "b":
        if rows.shape != (n,):
            raise IndexError(f"A boolean mask of rows needs shape ({n},), received {rows.shape}.")
        return np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise IndexError(f"Views are indexed by a name, a slice, a mask or whole numbers, received {key!r}.")
    if rows.min() < -n or rows.max() >= n:
        raise IndexError(
            f"Row {rows.max() if rows.max() >= n else rows.min()} is out of range for {n} samples."
        )
    return rows.astype(np.intp)


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
        return _whole_numbers_kept(table).set_axis(places, axis=0).reindex(range(n))
    if is_polars(table):
        return _spread_polars(table, places, n)
    numbers = holds_numbers(table)
    values = (
        as_floats(table, f"view {name!r}", finite=False) if numbers else as_cells(table, f"view {name!r}")
    )
    full = np.full((n, values.shape[1]), np.nan if numbers else None)
    full[places] = values
    return full


def _whole_numbers_kept(table: Table) -> Table:
    """Return a pandas frame whose largest whole numbers survive that a column gets gaps."""
    large = (
        [
            name
            for name, dtype in table.dtypes.items()
            if getattr(dtype, "kind", "") in "iu"
            and len(table)
            and (abs(table[name].astype(object)) >= EXACT).any()
        ]
        if table.columns.is_unique
        else []
    )
    return table.astype(dict.fromkeys(large, "Int64")) if large else table


def _spread_polars(table: Table, places: Indices, n: int) -> Table:
    """Return the rows at their places, nulls at all others: a row number that is null takes nothing."""
    rows: list[int | None] = [None] * n
    for row, place in enumerate(places.tolist()):
        rows[place] = row
    taken = type(table)({"row": rows}).to_series()
    return table.select([column.gather(taken) for column in table.iter_columns()])
