"""Blocks: the columns a kernel looks at, found at fit and taken again from every new X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.views.columns import near_matches
from kernelweave.views.tables import Table, as_floats, as_table, column_names, is_sparse, stack, take_columns
from kernelweave.views.views import Views


@dataclass(frozen=True)
class Columns:
    """Some columns of one table: of a view, or of X itself when ``view`` is None."""

    view: str | None
    positions: tuple[int, ...]
    n_columns: int
    table_names: tuple[str, ...] | None

    def take(self, X: Any, *, finite: bool = True) -> Any:
        """Return the columns as float64 after checking that ``X`` still has them."""
        table, what = source(X, self.view)
        return as_floats(take_columns(table, self._find(table, what)), what, finite=finite)

    def _find(self, table: Table, what: str) -> Indices:
        positions = np.array(self.positions, dtype=np.intp)
        names = column_names(table)
        if names is not None and self.table_names is not None and names != self.table_names:
            return np.array([self._find_name(p, names, what) for p in self.positions], dtype=np.intp)
        if table.shape[1] != self.n_columns:
            raise ValueError(
                f"{what} has {table.shape[1]} features, but the bank was fitted with {self.n_columns}; "
                "pass the same columns in the same order."
            )
        return positions

    def _find_name(self, position: int, names: tuple[str, ...], what: str) -> int:
        assert self.table_names is not None
        name = self.table_names[position]
        if name not in names:
            raise ValueError(
                f"{what} has no column {name!r}, which the bank was fitted with; "
                f"it has {near_matches(name, names)}."
            )
        return names.index(name)


@dataclass(frozen=True)
class Block:
    """The features of one or more kernels: columns of one table, or of several side by side."""

    label: str
    parts: tuple[Columns, ...]

    @property
    def key(self) -> object:
        """Equal for blocks that need to be held only once."""
        return self.label, tuple((part.view, part.positions) for part in self.parts)

    def take(self, X: Any) -> Any:
        """Return the block of ``X`` as float64, dense or CSR."""
        return stack([part.take(X) for part in self.parts])

    @property
    def columns(self) -> list[str | int]:
        """The columns of the block by name, or by position where they have none."""
        return [
            p if part.table_names is None else part.table_names[p]
            for part in self.parts
            for p in part.positions
        ]

    def missing(self, X: Any) -> AnyArray:
        """Return which values of the block are NaN, one row per sample; none of a sparse block."""
        values = stack([part.take(X, finite=False) for part in self.parts])
        return np.zeros((values.shape[0], 1), dtype=bool) if is_sparse(values) else np.isnan(values)


@dataclass(frozen=True)
class PairwiseBlock:
    """A block (rows, training samples) of kernel values or distances.

    ``reference`` holds the training rows when the training data were a slice of a larger square matrix, as in
    cross-validation: then the columns of later slices are picked by it.
    """

    label: str
    view: str | None
    n_train: int
    reference: tuple[Indices, int] | None = None

    @property
    def key(self) -> object:
        """Equal for blocks that need to be held only once."""
        return "pairwise", self.label, self.view

    @property
    def columns(self) -> list[str | int]:
        """What `missing` has columns for: the block as a whole."""
        return [self.label]

    def missing(self, X: Any) -> AnyArray:
        """Return which samples have no values at all, as one column."""
        table, what = source(X, self.view)
        values = as_floats(table, what, finite=False)
        if is_sparse(values):
            return np.zeros((values.shape[0], 1), dtype=bool)
        return np.asarray(np.isnan(values).all(axis=1))[:, None]

    def take(self, X: Any) -> Any:
        """Return the block of ``X`` against the training samples."""
        table, what = source(X, self.view)
        values = as_floats(table, what, finite=False)
        return as_floats(
            self._against_training(X, values.toarray() if is_sparse(values) else values, what), what
        )

    def _against_training(self, X: Any, values: Any, what: str) -> Any:
        if self.reference is not None and values.shape[1] == self.reference[1]:
            # A slice of the original has the original's columns; a new table of that width has them only if
            # it cannot have the training samples' instead.
            sliced = isinstance(X, Views) and X.origin is not None
            if sliced or self.n_train != self.reference[1]:
                return np.ascontiguousarray(values[:, self.reference[0]])
        if values.shape[1] != self.n_train:
            raise ValueError(
                f"{what} holds values against {self.n_train} training samples, received {values.shape[1]} "
                "columns; pass one column per training sample."
            )
        return values


def source(X: Any, view: str | None) -> tuple[Table, str]:
    """Return the table a block reads, and how to call it in a message."""
    if view is None:
        if isinstance(X, Views):
            raise TypeError(f"The bank was fitted on one table, received {X!r}; pass views.concatenate().")
        return as_table(X, "X"), "X"
    if not isinstance(X, Views):
        raise TypeError(
            f"The bank was fitted with Views and needs view {view!r}, received {type(X).__name__}; "
            "pass Views with the same names."
        )
    if view not in X:
        raise ValueError(
            f"X has no view {view!r}, which the bank was fitted with; it has {', '.join(X.names)}."
        )
    return X[view], f"view {view!r}"
