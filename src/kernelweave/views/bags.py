"""Bags: sets of instances, one label per set, that slice like one array of bags."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from kernelweave._typing import AnyArray, Indices
from kernelweave.views.tables import Table, as_table, take_rows
from kernelweave.views.views import Views, as_rows


class Bags:
    """Sets of instances: a table of instances and the bag each belongs to.

    ``bags[rows]`` takes whole bags, so scikit-learn's splitters, cross-validation and searches treat it like
    an array with one row per bag.

    Parameters
    ----------
    X : table of instances: numpy array, pandas or polars frame, scipy sparse matrix, or Views.
    bag_ids : one id per instance; bags come in the order of their sorted ids, which is ``ids``.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> bags = Bags(np.arange(8.0).reshape(4, 2), ["b", "a", "b", "b"])
    >>> bags
    Bags(2 bags, 4 instances x 2)
    >>> bags[[1]].sizes
    array([3])

    """

    ndim = 2
    # Bags are taken with bags[rows]; walking over them is done with bags.tables().
    __iter__ = None

    def __init__(self, X: Any, bag_ids: Any) -> None:
        table = X if isinstance(X, Views) else as_table(X, "the table of instances")
        ids = np.asarray(bag_ids)
        if ids.shape != (table.shape[0],):
            raise ValueError(
                f"Bags needs one bag id per instance, received {table.shape[0]} instances and ids of shape "
                f"{ids.shape}."
            )
        self.ids, owner = np.unique(ids, return_inverse=True)
        self.instances: Any = take_rows(table, np.argsort(owner, kind="stable"))
        self.sizes: Indices = np.bincount(owner, minlength=self.ids.size)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of bags, and number of columns of an instance."""
        return len(self), int(self.instances.shape[1])

    def __len__(self) -> int:
        return int(self.sizes.size)

    def __repr__(self) -> str:
        n, d = self.instances.shape
        return f"Bags({len(self)} bags, {n} instances x {d})"

    @property
    def members(self) -> tuple[Indices, ...]:
        """For each bag the rows of its instances in ``instances``."""
        return tuple(np.split(np.arange(int(self.sizes.sum())), np.cumsum(self.sizes)[:-1]))

    def __getitem__(self, key: Any) -> Bags:
        chosen = np.arange(len(self))[as_rows(key, len(self))]
        members = self.members
        taken = object.__new__(Bags)
        taken.ids, taken.sizes = self.ids[chosen], self.sizes[chosen]
        rows = [members[bag] for bag in chosen]
        taken.instances = take_rows(self.instances, np.concatenate(rows) if rows else np.empty(0, np.intp))
        return taken

    def split(self, values: AnyArray) -> list[AnyArray]:
        """Return values of the instances as one array per bag."""
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(f"{self!r} are sets of instances, not one array; bags.instances is their table.")


def is_bags(X: Any) -> bool:
    """Return whether these are sets of instances, and not a table with one sample per row."""
    if is_array_of_tables(X):
        return True
    several = isinstance(X, list | tuple) and (not X or np.ndim(X[0]) != 1 or hasattr(X[0], "columns"))
    return isinstance(X, Bags) or several or getattr(X, "ndim", 2) == 3


def is_array_of_tables(X: Any) -> bool:
    """Return whether this is an array of objects, as numpy makes of bags of different sizes."""
    return isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1


def as_bags(X: Any) -> Bags:
    """Return bags for Bags, tables in a list or array, or one table whose rows are bags of one instance."""
    if isinstance(X, Bags):
        return X
    if isinstance(X, Views) or sparse.issparse(X) or hasattr(X, "columns"):
        return Bags(X, np.arange(X.shape[0]))
    if isinstance(X, list | tuple):
        if not X:
            raise ValueError(
                "There are no bags: received an empty list; pass one array of instances per bag."
            )
        if np.ndim(X[0]) == 1:
            return as_bags(np.asarray(X, dtype=np.float64))
        return _stacked([as_bag(table, place) for place, table in enumerate(X)])
    if is_array_of_tables(X):
        return as_bags(list(X))
    X = np.asarray(X)
    if X.ndim == 3:
        return as_bags(list(X))
    return Bags(X, np.arange(X.shape[0] if X.ndim else 0))


def as_bag(table: Any, place: int) -> Table:
    """Return one bag as a table, or say what is wrong with it."""
    shape = table.shape if hasattr(table, "shape") else np.shape(table)
    if len(shape) != 2:
        raise ValueError(
            f"A bag is a table of instances (instances x columns); bag {place} has shape {tuple(shape)}."
        )
    if shape[0] == 0:
        raise ValueError(f"Bag {place} is empty; every bag needs at least one instance.")
    return table


def _stacked(tables: list[Table]) -> Bags:
    widths = [int(table.shape[1]) if hasattr(table, "shape") else np.shape(table)[1] for table in tables]
    for place, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(
                f"Bags need the same columns: bag 0 has {widths[0]} and bag {place} has {width} columns."
            )
    sizes = [table.shape[0] if hasattr(table, "shape") else len(table) for table in tables]
    owner = np.repeat(np.arange(len(tables)), sizes)
    if hasattr(tables[0], "columns"):
        return Bags(_joined_frames(tables), owner)
    joined = sparse.vstack(tables, format="csr") if sparse.issparse(tables[0]) else np.concatenate(tables)
    return Bags(joined, owner)


def _joined_frames(tables: list[Table]) -> Table:
    if hasattr(tables[0], "iloc"):
        import pandas as pd

        return pd.concat(tables, ignore_index=True)
    import polars as pl

    return pl.concat(tables)
