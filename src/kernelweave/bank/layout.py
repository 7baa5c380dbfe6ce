"""What X offers to a bank: its views, its columns, and the blocks that entries ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelweave._typing import Indices
from kernelweave.bank.blocks import Block, Columns, PairwiseBlock
from kernelweave.bank.entry import Entry
from kernelweave.views.columns import near_matches, resolve_columns
from kernelweave.views.tables import Table, as_table, column_names, take_columns
from kernelweave.views.views import Views

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
        self._found: dict[tuple[str | None, int | None, bool], Block | PairwiseBlock] = {}

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
        key = entry.view, entry.columns, entry.kernel.pairwise  # a rule asks for the same few many times
        if key not in self._found:
            self._found[key] = self._find(entry)
        return self._found[key]

    def _find(self, entry: Entry) -> Block | PairwiseBlock:
        if entry.kernel.pairwise:
            return self._pairwise(entry)
        if entry.view is None and entry.columns is None:
            return Block(WHOLE, tuple(self._columns(view, None) for view in self.tables))
        if entry.view is None and None not in self.tables:
            raise ValueError(
                f"An entry selects the columns {entry.columns!r} without saying of which view; "
                f"give view= one of {self._known()}."
            )
        part = self._columns(entry.view, entry.columns)
        return Block(self._label(entry, part), (part,))

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
