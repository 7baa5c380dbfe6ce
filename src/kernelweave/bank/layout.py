"""What X offers to a bank: its views and columns, and the blocks of columns that kernels look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.views.tables import (
    Table,
    as_cells,
    as_floats,
    as_table,
    column_names,
    holds_numbers,
    is_absent,
    is_sparse,
    near_matches,
    resolve_columns,
    stack,
    take_columns,
)
from kernelweave.views.views import Views

if TYPE_CHECKING:
    from kernelweave.bank.spec import Entry

# The name of a table's columns taken together, as x0, x1, ... are those of nameless single ones.
WHOLE = "x"


class Layout:
    """The training data seen as named views: a ``Views``, or a table with declared column groups."""

    def __init__(self, X: Any, declared: Mapping[str, Any] | None = None) -> None:
        if isinstance(X, Views):
            if declared is not None:
                raise ValueError(
                    f"The bank declares the views {', '.join(declared)} of a table, but X is {X!r}; "
                    "leave views=None, or pass one table."
                )
            self.tables: dict[str | None, Table] = {
                name: as_table(t, f"view {name!r}") for name, t in X.items()
            }
            self.origin = X.origin
        else:
            self.tables = {None: as_table(X, "X")}
            self.origin = None
        self.n_samples = int(next(iter(self.tables.values())).shape[0])
        self._declared = self._resolve(declared)
        self._named: dict[str | None, tuple[str, ...] | None] = {}
        self._found: dict[tuple[str | None, int | None, bool, str], Block | PairwiseBlock] = {}

    def _resolve(self, declared: Any) -> dict[str, Indices]:
        if declared is None:
            return {}
        if not isinstance(declared, Mapping) or not declared:
            raise ValueError(
                f"views= is a dict of name to columns with at least one view, received {declared!r}; "
                'use views={"first": ["a", "b"], "second": slice(2, 8)}.'
            )
        return {
            name: resolve_columns(selection, self.tables[None], f"X (for view {name!r})")
            for name, selection in declared.items()
        }

    @property
    def view_names(self) -> tuple[str | None, ...]:
        """The views a rule runs over; one nameless view for a table without declared ones."""
        return tuple(self._declared) or tuple(self.tables)

    def single_columns(self) -> list[tuple[str | None, int]]:
        """Return every column as a pair (view, position)."""
        return [(view, j) for view, table in self.tables.items() for j in range(table.shape[1])]

    def block(self, entry: Entry) -> Block | PairwiseBlock:
        """Return the block an entry asks for."""
        if entry.columns is not None and type(entry.columns) is not int:
            return self._find(entry)
        # A rule asks for the same few many times.
        key = entry.view, entry.columns, entry.kernel.pairwise, entry.kernel.reads
        if key not in self._found:
            self._found[key] = self._find(entry)
        return self._found[key]

    def _find(self, entry: Entry) -> Block | PairwiseBlock:
        if entry.kernel.pairwise:
            return self._pairwise(entry)
        if entry.view is None and entry.columns is None:
            return self._read(WHOLE, tuple(self._columns(view, None) for view in self.tables), entry)
        if entry.view is None and None not in self.tables:
            raise ValueError(
                f"An entry selects the columns {entry.columns!r} without saying of which view; "
                f"give view= one of {self._known()}."
            )
        part = self._columns(entry.view, entry.columns)
        return self._read(self._label(entry, part), (part,), entry)

    def _read(self, label: str, parts: tuple[Columns, ...], entry: Entry) -> Block:
        """Return a block as the kernel reads it: as objects where it wants them, or takes what there is."""
        reads = entry.kernel.reads
        if reads == "either":
            numbers = all(
                holds_numbers(take_columns(self.tables[part.view], np.array(part.positions)))
                for part in parts
            )
            reads = "numbers" if numbers else "objects"
        return Block(label, parts, reads == "objects")

    def _columns(self, view: str | None, selection: Any) -> Columns:
        what = "X" if view is None else f"view {view!r}"
        if view in self.tables:
            source, table = view, self.tables[view]
            chosen = resolve_columns(selection, table, what)
        elif view in self._declared:
            source, table = None, self.tables[None]
            inside = self._declared[view]
            chosen = inside[resolve_columns(selection, take_columns(table, inside), what)]
        else:
            raise ValueError(f"There is no view {view!r}; {self._advice(view or '')}")
        return Columns(source, tuple(chosen.tolist()), int(table.shape[1]), self._names(source))

    def _pairwise(self, entry: Entry) -> PairwiseBlock:
        if entry.columns is not None or entry.view in self._declared:
            raise ValueError(
                f"{entry.kernel.label} reads a whole block (rows, training samples), not columns of one; "
                "give the block as a view of a Views, or use bank='precomputed'."
            )
        if entry.view not in self.tables:
            name = entry.view or ""
            raise ValueError(f"{entry.kernel.label} needs the name of a view; {self._advice(name)}")
        return PairwiseBlock(entry.view or WHOLE, entry.view, self.n_samples, self.origin)

    def _label(self, entry: Entry, part: Columns) -> str:
        if entry.columns is None:
            return entry.view or WHOLE
        names = self._names(part.view)
        chosen = [names[position] if names else f"x{position}" for position in part.positions]
        text = "+".join(chosen) if len(chosen) <= 3 else f"{chosen[0]}..{chosen[-1]}"
        return text if entry.view is None else f"{entry.view}.{text}"

    def _names(self, view: str | None) -> tuple[str, ...] | None:
        """Return the names of a table's columns, found once: there may be thousands, and as many kernels."""
        if view not in self._named:
            self._named[view] = column_names(self.tables[view])
        return self._named[view]

    def _known(self) -> str:
        return ", ".join(repr(name) for name in (*self.tables, *self._declared) if name is not None)

    def _advice(self, view: str) -> str:
        names = tuple(name for name in (*self.tables, *self._declared) if name is not None)
        if not names:
            return "declare it with views={name: columns} in the bank, or pass X as Views({name: table})."
        return f"the views are {near_matches(view, names)}."


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

    def take_cells(self, X: Any) -> AnyArray:
        """Return the columns as objects after checking that ``X`` still has them."""
        table, what = source(X, self.view)
        return as_cells(take_columns(table, self._find(table, what)), what)

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
    holds_objects: bool = False

    @property
    def key(self) -> object:
        """Equal for blocks that need to be held only once."""
        return self.label, tuple((part.view, part.positions) for part in self.parts), self.holds_objects

    def take(self, X: Any) -> Any:
        """Return the block of ``X`` as float64, dense or CSR, or as objects."""
        if not self.holds_objects:
            return stack([part.take(X) for part in self.parts])
        cells = self._cells(X)
        absent = np.argwhere(is_absent(cells))
        if absent.size:
            row, position = (int(index) for index in absent[0])
            raise ValueError(
                f"Column {self.columns[position]!r} of view {self.label!r} has no value in row {row}; "
                "leave such rows out, or fill them first."
            )
        return cells

    def _cells(self, X: Any) -> AnyArray:
        return np.hstack([part.take_cells(X) for part in self.parts])

    @property
    def columns(self) -> list[str | int]:
        """The columns of the block by name, or by position where they have none."""
        return [
            p if part.table_names is None else part.table_names[p]
            for part in self.parts
            for p in part.positions
        ]

    def missing(self, X: Any) -> AnyArray:
        """Return which values of the block are NaN or None, one row per sample; none of a sparse block."""
        if self.holds_objects:
            return is_absent(self._cells(X))
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
