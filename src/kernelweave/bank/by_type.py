"""Banks that follow the types of the columns: numbers, categories, dates, text and sets of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._typing import Indices
from kernelweave.bank.layout import WHOLE, Block, Columns, Layout, LeftOut, PairwiseBlock
from kernelweave.bank.rule_banks import SCALES, DistancesBank, distance_kernels
from kernelweave.bank.spec import Bank, Entry
from kernelweave.kernels import Gaussian, Kernel, Laplacian, Linear, Scaling, UnitMean
from kernelweave.views.column_types import ColumnType, are_counts, column_types
from kernelweave.views.encode import ColumnGroup, column_groups, side_by_side
from kernelweave.views.encoders import NumberEncoder
from kernelweave.views.tables import is_sparse, take_columns

# Sparse tables of more columns are words, genes or clicks: their distances say little before they are weighted.
WIDE = 1000


class NothingToLearnError(ValueError):
    """A view has only columns that can teach nothing."""


@dataclass
class ByTypeBank(Bank):
    r"""Kernels by the types of the columns, each encoded as its type asks; for tables as they are.

    Numbers become z-scores (empty cells the median, beside an indicator of the gap), categories indicators whose
    product is the share of columns that agree, ordered categories ranks, dates elapsed time, season and weekday,
    text tf-idf, sets indicators, counts log1p x idf. All of it is learnt on the training samples.

    Parameters
    ----------
    scales : multiples of gamma_0 of the kernels of `KernelBank.distances()`, for numbers. Columns of one other type
        get a linear and a Gaussian kernel, and all columns of a view together, where they are of several types,
        a Laplacian and Gaussians of three widths.
    views : dict of name to columns for a table; None takes the views of a ``Views``, or all columns as one.
    transform : transformer of scikit-learn for all columns of every view, or a dict of view, of column of a single
        table, or of "view.column", to transformer; fitted to the training samples.
    scaling : scaling of every Gram matrix, or a tuple of them; None is UnitMean of the linear kernels.

    Notes
    -----
    Columns that are constant or number the rows are left out.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.array([[1.5, "a"], [2.0, "b"], [None, "a"], [4.0, "b"]], dtype=object)
    >>> fitted = ByTypeBank(scales=(1.0,)).fit(table)
    >>> fitted.names[0], fitted.names[-1]
    ('x·laplacian(scale=1)', 'x1·gaussian(scale=1)')

    """

    scales: Sequence[float] = SCALES
    views: Mapping[str, Any] | None = None
    transform: Any = None
    scaling: Scaling | Sequence[Scaling] | None = None

    def declared_views(self) -> Mapping[str, Any] | None:
        return self.views

    def plan(self, layout: Layout) -> list[Entry]:
        return [entry for entry, _ in self.placed(layout)]

    def placed(self, layout: Layout) -> list[tuple[Entry, Block | PairwiseBlock]]:
        self.require_known(layout)
        return [pair for view in layout.view_names for pair in self._of_view(view, layout)]

    def require_known(self, layout: Layout) -> None:
        """Raise ValueError where transform= names neither a view nor a column of the table."""
        if not isinstance(self.transform, Mapping):
            return
        known = {name for view in layout.view_names for name in self._own(view, layout).values()}
        layout.require_views({name: None for name in self.transform if name not in known})

    def _own(self, view: str | None, layout: Layout) -> dict[int, str | int]:
        """Return which columns have a transformer, and how it calls them: by name in a single table, "view.column"."""
        if not isinstance(self.transform, Mapping):
            return {}
        found: dict[int, str | int] = {}
        for k, column in enumerate(layout.columns(view).names):
            alone = column if None in layout.tables and column not in layout.view_names else None
            for name in (alone, f"{view}.{column}"):
                if name is not None and name in self.transform:
                    found[k] = name
        return found

    def _of_view(self, view: str | None, layout: Layout) -> list[tuple[Entry, Block]]:
        return [
            pair
            for block, kernels in self.blocks(view, layout)
            for pair in self._entries(view, block, kernels)
        ]

    def blocks(self, view: str | None, layout: Layout) -> list[tuple[Block, str]]:
        """Return the blocks of a view, each with the group of types its columns are of."""
        whole = layout.columns(view)
        empty = layout.empty(whole)
        if empty is not None and empty.all():
            raise ValueError(
                f"{'X' if view is None else f'View {view!r}'} has no value in any row: all of its cells are empty "
                "(NaN); leave it out."
            )
        transform = self.transform.get(view) if isinstance(self.transform, Mapping) else self.transform
        if transform is not None:
            part = layout.transformed(whole, transform)
            return [(Block(view or WHOLE, (part,)), "numbers")]
        own = {k: self.transform[name] for k, name in self._own(view, layout).items()}
        groups = _Groups(view, whole, layout, own)
        blocks = groups.blocks()
        if not blocks:
            raise NothingToLearnError(
                f"{'X' if view is None else f'View {view!r}'} has only columns that are constant or number the rows: "
                f"{', '.join(repr(one.name) for one in layout.left_out[:5])}, in {layout.n_samples} sample(s); "
                "leave it out, or give other columns."
            )
        if len(blocks) > 1 and (together := groups.together()) is not None:
            blocks.insert(0, (together, "together"))
        return blocks

    def _entries(self, view: str | None, block: Block, kernels: str) -> list[tuple[Entry, Block]]:
        own = UnitMean() if self.scaling is None else None
        return [
            (Entry(kernel, view=view, scaling=own if isinstance(kernel, Linear) else None), block)
            for kernel in self._kernels(kernels)
        ]

    def _kernels(self, what: str) -> list[Kernel]:
        if what == "numbers":
            return distance_kernels(self.scales)
        if what == "together":
            return [Laplacian(), *(Gaussian(scale=scale) for scale in (0.25, 1.0, 4.0))]
        return [Linear(), Gaussian()]


@dataclass
class DefaultBank(DistancesBank):
    r"""What ``bank=None`` means: ``KernelBank.distances()`` of plain numbers, else ``KernelBank.by_type()``.

    Plain are tables of numbers without empty cells (a sample may lack a whole view), sparse ones up to 1000 columns.

    Parameters
    ----------
    scales, views, scaling : as in these.

    Notes
    -----
    Differs from the paper: see these.

    Examples
    --------
    >>> import numpy as np
    >>> DefaultBank(scales=(1.0,)).fit(np.array([[1.0, np.nan], [2.0, 5.0], [4.0, 3.0]])).names[0]
    'x·gaussian(scale=1)'

    """

    def placed(self, layout: Layout) -> list[tuple[Entry, Block | PairwiseBlock]]:
        wide = any(is_sparse(table) and table.shape[1] > WIDE for table in layout.tables.values())
        if not wide and all(layout.is_plain(layout.columns(view)) for view in layout.view_names):
            return super().placed(layout)
        return ByTypeBank(self.scales, self.views, self.transform, self.scaling).placed(layout)


class _Groups:
    """The columns of one view in groups by type, each with its encoder."""

    def __init__(self, view: str | None, whole: Columns, layout: Layout, own: Mapping[int, Any]) -> None:
        self.view, self.whole, self.layout = view, whole, layout
        self.table, self.what = layout.rows_with(whole)
        self.types = column_types(self.table, self.what)
        self.own = own  # transformers of single columns
        if not is_sparse(self.table):
            self._leave_out()
        self.raw: list[int] = []  # of a sparse table with negative numbers
        self.groups = self._encoded()

    def _leave_out(self) -> None:
        """Note the columns that can teach nothing: constant ones without gaps, identifiers."""
        empty, types = self.layout.empty(self.whole), list(self.types)
        here = slice(None) if empty is None else ~empty.all(axis=1)
        can_lack = empty is not None and self.layout.scope(self.whole) is None
        lacking = int(empty.all(axis=1).sum()) if empty is not None and can_lack else 0
        for k, kind in enumerate(types):
            if k in self.own or not kind.note:
                continue
            gaps = 0 if empty is None else int(empty[here, k].sum())
            if kind.note == "constant" and 0 < gaps < self.table.shape[0]:
                types[k] = ColumnType(kind.name, levels=kind.levels)  # the gaps themselves may tell something
                continue
            self.layout.left_out.append(
                LeftOut(self.whole.view, self.whole.names[k], kind.name, gaps, kind.note, lacking)
            )
        self.types = tuple(types)

    def _encoded(self) -> list[ColumnGroup]:
        """Return the columns that are kept in groups; those whose numbers do not vary are in none."""
        kept = [k for k, kind in enumerate(self.types) if not kind.note and k not in self.own]
        if not kept or (is_sparse(self.table) and not are_counts(take_columns(self.table, np.array(kept)))):
            self.raw = kept
            return []
        groups = column_groups(self.table, self.types, self.what, kept)
        return [g for g in groups if not isinstance(g.encoder, NumberEncoder) or g.encoder.standardiser.size]

    def blocks(self) -> list[tuple[Block, str]]:
        """Return a block per group, and which it is; columns with a transformer are one each."""
        alone = len(self.groups) + len(self.own) + bool(self.raw) == 1
        found = [
            (self._block(group, self._label(group.name, group.columns, alone)), group.name)
            for group in self.groups
        ]
        if self.raw:
            found.append(
                (Block(self._label("sparse", self.raw, alone), (self._columns(self.raw),)), "sparse")
            )
        for k, transformer in self.own.items():
            part = self.layout.transformed(self._columns([k]), transformer, self.whole)
            found.append((Block(self._label("", [k], alone), (part,)), "own"))
        return found

    def together(self) -> Block | None:
        """Return one block of all groups, in which columns of all types count alike."""
        return self._block(side_by_side(self.groups), self.view or WHOLE) if len(self.groups) > 1 else None

    def _columns(self, members: Sequence[int] | Indices) -> Columns:
        return self.layout.columns(self.view, [int(k) for k in members])

    def _block(self, group: ColumnGroup, label: str) -> Block:
        types, scope = tuple(self.types[k] for k in group.columns), self.layout.scope(self.whole)
        scope = self.whole.positions if scope is None else scope
        return Block(label, (self._columns(group.columns).encoded(group.encoder, types, scope),))

    def _label(self, name: str, members: Sequence[int] | Indices, alone: bool) -> str:
        if alone:
            return self.view or WHOLE
        if len(members) <= 3:
            return self.layout.label(self.view, self._columns(members).positions)
        return f"{self.view or WHOLE} ({name})"
