"""What X offers to a bank: its views and columns, and the blocks of columns that kernels look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelweave._typing import AnyArray, Indices
from kernelweave.views.column_types import ColumnType, column_types
from kernelweave.views.column_values import empty_cells, number_matrix, numeric_dtypes
from kernelweave.views.encode import encode_together
from kernelweave.views.encoders import Encoder
from kernelweave.views.tables import (
    Table,
    TablePart,
    as_cells,
    as_floats,
    as_table,
    column_names,
    holds_numbers,
    is_absent,
    is_sparse,
    near_matches,
    require_finite,
    resolve_columns,
    stack,
    take_columns,
    take_rows,
)
from kernelweave.views.text_encoders import Transformed
from kernelweave.views.views import Views

if TYPE_CHECKING:
    from kernelweave.bank.spec import Entry

# The name of a table's columns taken together, as x0, x1, ... are those of nameless single ones.
WHOLE = "x"
# In place of a transformer: every column encoded by its type, numbers as z-scores.
BY_TYPE = "by_type"


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
        self._found: dict[tuple[object, ...], Block | PairwiseBlock] = {}
        self._encoded: dict[tuple[object, ...], Columns] = {}
        self._empty: dict[str | None, AnyArray | None] = {}
        self._numeric: dict[str | None, AnyArray] = {}
        # Columns that no kernel looks at, because they can teach nothing.
        self.left_out: list[LeftOut] = []

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

    def require_views(self, names: Mapping[str, Any]) -> None:
        """Raise ValueError unless all names are those of views."""
        for name in names:
            if name not in self.tables and name not in self._declared:
                raise ValueError(
                    f"transform= names the view {name!r}, which is not there; {self._advice(name)}"
                )

    def single_columns(self) -> list[tuple[str | None, int]]:
        """Return every column as a pair (view, position)."""
        return [(view, j) for view, table in self.tables.items() for j in range(table.shape[1])]

    def block(self, entry: Entry) -> Block | PairwiseBlock:
        """Return the block an entry asks for."""
        if entry.columns is not None and type(entry.columns) is not int:
            return self._find(entry)
        # A rule asks for the same few many times.
        key = entry.view, entry.columns, entry.kernel.pairwise, id(entry.transform), entry.kernel.reads
        if key not in self._found:
            self._found[key] = self._find(entry)
        return self._found[key]

    def _find(self, entry: Entry) -> Block | PairwiseBlock:
        if entry.kernel.pairwise:
            return self._pairwise(entry)
        if entry.view is None and entry.columns is None:
            objects = self._reads_objects(entry, tuple(self.tables))
            whole = len(self.tables) == 1  # else a sample may lack some of the block
            parts = tuple(self._part(entry, view, objects, whole=whole) for view in self.tables)
            return Block(WHOLE, parts, objects)
        if entry.view is None and None not in self.tables:
            raise ValueError(
                f"An entry selects the columns {entry.columns!r} without saying of which view; "
                f"give view= one of {self._known()}."
            )
        objects = self._reads_objects(entry, (entry.view,))
        part = self._part(entry, entry.view, objects)
        label = self.label(entry.view, None if entry.columns is None else part.positions)
        return Block(label, (part,), objects)

    def _reads_objects(self, entry: Entry, views: tuple[str | None, ...]) -> bool:
        """Tell whether a kernel looks at cells as they are: it wants to, or it takes both and finds no numbers."""
        if entry.kernel.reads == "either":
            raw = [self.columns(view, entry.columns) for view in views]
            tables = [take_columns(self.tables[one.view], np.array(one.positions)) for one in raw]
            return not all(holds_numbers(table) for table in tables)
        return entry.kernel.reads == "objects"

    def _part(self, entry: Entry, view: str | None, objects: bool, *, whole: bool = True) -> Columns:
        """Return the columns of an entry in one view, with what turns them into numbers."""
        raw = self.columns(view, entry.columns)
        transform = entry.transform
        if isinstance(transform, Mapping):
            transform = transform.get(view)
        if transform is None and (objects or (self.is_plain(raw) and (whole or self.empty(raw) is None))):
            return raw
        key = raw.view, raw.positions, id(transform)
        if key not in self._encoded:
            self._encoded[key] = self._filled(raw) if transform is None else self.transformed(raw, transform)
        return self._encoded[key]

    def _filled(self, raw: Columns) -> Columns:
        """Return columns whose numbers stay as they are, gaps filled, and whose words are encoded."""
        table, what = self.rows_with(raw)
        if not table.shape[0]:
            return raw  # nobody has this view, as is said elsewhere
        types = column_types(table, what)
        return raw.encoded(encode_together(table, types, what, plain=True), types, self.scope(raw))

    def transformed(self, raw: Columns, transformer: Any, whole: Columns | None = None) -> Columns:
        """Return columns as a transformer makes them, which is fitted to the samples that have the view.

        ``whole`` are all columns of the view, where the columns are some of those.
        """
        table, what = self.rows_with(raw, whole)
        if not table.shape[0]:
            return raw
        scope = self.scope(whole or raw)
        if scope is None and whole is not None:
            scope = whole.positions
        types = column_types(table, what)
        if isinstance(transformer, str) and transformer == BY_TYPE:
            return raw if is_sparse(table) else raw.encoded(encode_together(table, types, what), types, scope)
        return raw.encoded(Transformed.learn(transformer, table, what), types, scope)

    def is_plain(self, raw: Columns) -> bool:
        """Tell whether columns hold numbers which no sample lacks in part."""
        table = self.tables[raw.view]
        if is_sparse(table):
            return True
        places = list(raw.positions)
        if raw.view not in self._numeric:
            self._numeric[raw.view] = np.array(numeric_dtypes(table), dtype=bool)
        if not self._numeric[raw.view][places].all():
            return False
        empty = self.empty(raw)
        return empty is None or not (empty.any(axis=1) & ~empty.all(axis=1)).any()

    def empty(self, raw: Columns) -> AnyArray | None:
        """Return which cells of some columns are empty, None where none of the whole table is."""
        if raw.view not in self._empty:
            table, what = self.tables[raw.view], self._called(raw.view)
            cells = None if is_sparse(table) else empty_cells(table, np.arange(table.shape[1]), what)
            self._empty[raw.view] = cells if cells is not None and cells.any() else None
        cells = self._empty[raw.view]
        return None if cells is None else cells[:, list(raw.positions)]

    def scope(self, raw: Columns) -> tuple[int, ...] | None:
        """Return the columns all of which have to be empty for a sample to lack a block of these columns.

        A sample of a single table cannot lack it: an empty row has gaps, which are filled.
        """
        return () if len(self.view_names) == 1 and len(raw.positions) == raw.n_columns else None

    def rows_with(self, raw: Columns, whole: Columns | None = None) -> tuple[Table, str]:
        """Return some columns of the samples that have a value in any of them, or of ``whole``; how to call them."""
        table, empty = (
            take_columns(self.tables[raw.view], np.array(raw.positions, dtype=np.intp)),
            self.empty(whole or raw),
        )
        if empty is not None and (absent := empty.all(axis=1)).any():
            table = take_rows(table, np.flatnonzero(~absent))
        return table, TablePart(self._called(raw.view), raw.positions)

    def _called(self, view: str | None) -> str:
        return "X" if view is None else f"view {view!r}"

    def columns(self, view: str | None, selection: Any = None) -> Columns:
        """Return columns of a view as they are in its table."""
        what = self._called(view)
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

    def label(self, view: str | None, positions: tuple[int, ...] | None) -> str:
        """Return how to call some columns of a view, or all of it."""
        if positions is None:
            return view or WHOLE
        names = self._names(view if view in self.tables else None)
        chosen = [names[position] if names else f"x{position}" for position in positions]
        text = "+".join(chosen) if len(chosen) <= 3 else f"{chosen[0]}..{chosen[-1]}"
        return text if view is None else f"{view}.{text}"

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
class LeftOut:
    """A column that no kernel looks at, because of what it is: constant, an identifier."""

    view: str | None
    name: str | int
    type: str
    filled: int
    note: str
    lacking: int = 0


@dataclass(frozen=True)
class Columns:
    """Some columns of one table: of a view, or of X itself when ``view`` is None.

    ``encoder`` turns them into numbers, None for numbers as they are; ``types`` names what they hold, None for
    numbers. A sample lacks the view if all columns of ``scope`` are empty, None for those of the part itself; no sample
    does where it names none.
    """

    view: str | None
    positions: tuple[int, ...]
    n_columns: int
    table_names: tuple[str, ...] | None
    encoder: Encoder | None = field(default=None, repr=False)
    types: tuple[ColumnType, ...] | None = None
    scope: tuple[int, ...] | None = None

    def encoded(
        self, encoder: Encoder, types: tuple[ColumnType, ...], scope: tuple[int, ...] | None = None
    ) -> Columns:
        """Return the columns with what turns them into numbers."""
        return replace(self, encoder=encoder, types=types, scope=scope)

    @property
    def names(self) -> list[str | int]:
        """The columns by name, or by position where they have none."""
        names = self.table_names
        return [position if names is None else names[position] for position in self.positions]

    def take(self, X: Any, *, gaps: bool = False, known: dict[int, Any] | None = None) -> Any:
        """Return the columns as float64 after checking that ``X`` still has them, NaN for gaps if asked for.

        ``known`` keeps what encoders made of ``X``, so that blocks which share one encode once.
        """
        table, what = source(X, self.view)
        part = take_columns(table, self._find(self.positions, table, what))
        if self.encoder is not None:
            return self.encoder.once(part, TablePart(what, self.positions), {} if known is None else known)
        values = number_matrix(part, TablePart(what, self.positions))
        require_finite(values, part, TablePart(what, self.positions), gaps=gaps)
        return values if is_sparse(values) else np.ascontiguousarray(values)

    def absent(self, X: Any) -> AnyArray:
        """Return which rows of X have none of the columns."""
        table, what = source(X, self.view)
        positions = self.positions if self.scope is None else self.scope
        if is_sparse(table) or not positions:
            return np.zeros(table.shape[0], dtype=bool)
        return np.asarray(empty_cells(table, self._find(positions, table, what), what).all(axis=1))

    def take_cells(self, X: Any) -> AnyArray:
        """Return the columns as objects after checking that ``X`` still has them."""
        table, what = source(X, self.view)
        return as_cells(take_columns(table, self._find(self.positions, table, what)), what)

    def _find(self, wanted: tuple[int, ...], table: Table, what: str) -> Indices:
        positions = np.array(wanted, dtype=np.intp)
        names = column_names(table)
        if names is not None and self.table_names is not None and names != self.table_names:
            return np.array([self._find_name(p, names, what) for p in wanted], dtype=np.intp)
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
    """The features of one or more kernels: columns of one table, or of several side by side.

    ``preparation`` tells blocks apart that hold the same columns prepared in several ways.
    """

    label: str
    parts: tuple[Columns, ...]
    holds_objects: bool = False
    preparation: str = ""

    @property
    def key(self) -> object:
        """Equal for blocks that need to be held only once."""
        return (
            self.label,
            tuple((part.view, part.positions, id(part.encoder)) for part in self.parts),
            self.holds_objects,
        )

    @property
    def tables(self) -> list[tuple[str | None, int]]:
        """The views that the block looks at, with their numbers of columns."""
        return [(part.view, part.n_columns) for part in self.parts]

    @property
    def columns(self) -> list[str | int]:
        """The columns of the block by name, or by position where they have none."""
        return [name for part in self.parts for name in part.names]

    def take(self, X: Any, training: Any = None, known: dict[int, Any] | None = None) -> Any:
        """Return the block of ``X`` as float64, dense or CSR, or as objects.

        With the rows of the block in training, single empty cells are filled by their medians.
        """
        if self.holds_objects:
            return self._cells(X)
        values = stack([part.take(X, gaps=training is not None, known=known) for part in self.parts])
        if training is None or is_sparse(values) or not (gone := np.isnan(values)).any():
            return values
        self._require(~gone.all(axis=1))
        broken = np.flatnonzero(gone.any(axis=0))
        held = training[:, broken]
        fill = np.median(held.toarray() if is_sparse(held) else held, axis=0)
        values[:, broken] = np.where(gone[:, broken], fill, values[:, broken])
        return values

    def require_present(self, X: Any) -> None:
        """Raise ValueError where a row of X has nothing of what the block encodes."""
        if all(part.encoder is None for part in self.parts):
            return  # numbers are checked as they are read
        self._require(~self.absent(X))

    def _require(self, present: AnyArray) -> None:
        if not present.all():
            raise ValueError(
                f"Row {int(np.argmin(present))} of X lacks view {self.label!r}: all of its cells are empty (NaN); "
                "use an estimator that accepts missing views, such as MKLClassifier, or leave the row out."
            )

    def _cells(self, X: Any) -> AnyArray:
        """Return the cells of the block as they are; each has to have a value."""
        cells = np.hstack([part.take_cells(X) for part in self.parts])
        empty = np.argwhere(is_absent(cells))
        if empty.size:
            row, position = (int(index) for index in empty[0])
            raise ValueError(
                f"Column {self.columns[position]!r} of view {self.label!r} has no value in row {row}; "
                "leave such rows out, or fill them first."
            )
        return cells

    @property
    def presence_key(self) -> object:
        """Equal for blocks that the same samples lack."""
        return tuple((part.view, part.positions if part.scope is None else part.scope) for part in self.parts)

    def absent(self, X: Any) -> AnyArray:
        """Return which rows of X lack the block: all of its cells are empty."""
        if self.holds_objects:
            cells = np.hstack([part.take_cells(X) for part in self.parts])
            return np.asarray(is_absent(cells).all(axis=1))
        return np.asarray(np.logical_and.reduce([part.absent(X) for part in self.parts]))

    def of_rows(self, X: Any) -> Block:  # noqa: ARG002 - see PairwiseBlock
        """Return the block for a fit to rows X of the samples it was resolved for."""
        return self


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
    preparation: str = ""

    @property
    def key(self) -> object:
        """Equal for blocks that need to be held only once."""
        return "pairwise", self.label, self.view

    @property
    def tables(self) -> list[tuple[str | None, int]]:
        """The view that the block is, with its number of columns."""
        return [(self.view, self.n_train)]

    @property
    def columns(self) -> list[str | int]:
        """The block as a whole: its columns are training samples."""
        return [self.label]

    @property
    def presence_key(self) -> object:
        """Equal for blocks that the same samples lack."""
        return "pairwise", self.view

    def require_present(self, X: Any) -> None:
        """Values are checked as they are read."""

    def absent(self, X: Any) -> AnyArray:
        """Return which samples have no values at all."""
        table, what = source(X, self.view)
        values = as_floats(table, what, finite=False)
        if is_sparse(values):
            return np.zeros(values.shape[0], dtype=bool)
        return np.asarray(np.isnan(values).all(axis=1))

    def of_rows(self, X: Any) -> PairwiseBlock:
        """Return the block for a fit to rows X of the samples it was resolved for."""
        rows = source(X, self.view)[0].shape[0]
        return replace(self, n_train=int(rows), reference=X.origin if isinstance(X, Views) else None)

    def take(self, X: Any, training: Any = None, known: Any = None) -> Any:  # noqa: ARG002 - nothing is encoded
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
