"""Kernels of samples that do not have every view: each kernel lives on the samples that have its view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.column_table import ColumnTable, ColumnUse, column_table
from kernelweave.bank.fitted import FittedBank
from kernelweave.bank.layout import Block, Layout, LeftOut, PairwiseBlock
from kernelweave.bank.precomputed import FittedPrecomputed, PrecomputedBank, as_matrices
from kernelweave.bank.protocol import FittedKernels, n_rows
from kernelweave.bank.scaled import RescaledKernels
from kernelweave.bank.spec import Bank
from kernelweave.gram import KernelSource, StreamedGrams
from kernelweave.kernels import Centering, UnitTrace
from kernelweave.views.views import Views


def fit_with_missing_views(bank: Any, X: Any) -> FittedKernels:
    """Fit a bank to samples some of whose views may be NaN throughout.

    Where no sample lacks a view this is what ``bank.fit(X)`` returns. Otherwise kernels are learnt on the
    samples that have their view and centred there: a sample without it sits at their mean.
    """
    if isinstance(bank, PrecomputedBank):
        fitted = _fit_matrices(bank, X)
    else:
        fitted = _fit_blocks(bank, X) if isinstance(bank, Bank) else bank.fit(X)
    return fitted.centred() if isinstance(fitted, KernelsWithMissingViews) else fitted


def require_views(bank: Any, X: Any) -> None:
    """Check that every sample has at least one view."""
    if isinstance(bank, Bank) and bank.needs_a_view:
        items, blocks = bank.resolve(Layout(X, bank.declared_views()))
        require_a_view(~absences(blocks, X)[:, [item.block for item in items]])


def accepting_missing_views(fitted: Any) -> Any:
    """Return kernels that read new samples some of which lack views: such a row is that of the mean."""
    every, needs_a_view = np.arange(len(fitted)), True
    samples = np.arange(fitted.n_samples)
    if isinstance(fitted, FittedBank):
        needs_a_view = fitted.needs_a_view
        reader: ViewReader = BlockReader(fitted.blocks, fitted.block_of_kernel)
    elif isinstance(fitted, FittedPrecomputed):
        reader = MatrixReader(every, samples, samples.size)
    else:
        return fitted
    group = ViewGroup(every, samples, fitted, reader)
    return KernelsWithMissingViews(
        fitted.names, fitted.view_names, samples.size, (group,), needs_a_view=needs_a_view
    )


class ViewReader(Protocol):
    """How a group of kernels reads samples: which of them it can see, and what of them it looks at."""

    def available_in(self, X: Any) -> AnyArray:
        """Return which rows of X have which kernels of the group, of shape (rows, kernels)."""

    def take(self, X: Any, rows: Indices) -> Any:
        """Return these rows as the fitted kernels of the group want them."""

    def looks_at(self) -> list[tuple[str | None, int, Indices]]:
        """Return the views that are looked at, with their number of columns and the kernels of the group that do."""


@dataclass(frozen=True)
class ViewGroup:
    """Kernels with the same gaps: ``kernels`` are their numbers, ``places`` the samples that have them."""

    kernels: Indices
    places: Indices
    fitted: FittedKernels = field(repr=False)
    reader: ViewReader = field(repr=False)

    def position_of(self, samples: Indices) -> tuple[Indices, Indices]:
        """Return which of these samples the group has, and their positions within the group."""
        found = np.searchsorted(self.places, samples)
        inside = np.flatnonzero(self.places[np.minimum(found, self.places.size - 1)] == samples)
        return inside, found[inside]


@dataclass(frozen=True)
class KernelsWithMissingViews(FittedKernels):
    """Kernels of samples some of which have no value for some of them.

    Widths, scalings and means are learnt on the samples that have the view. Centred, a sample without it sits
    at their mean: its rows and columns are zero. ``needs_a_view`` says whether new samples need one of the views.
    """

    names: tuple[str, ...]
    view_names: tuple[str, ...]
    n_samples: int
    groups: tuple[ViewGroup, ...]
    is_centred: bool = False
    left_out: tuple[LeftOut, ...] = ()
    needs_a_view: bool = True

    @property
    def holds_matrices(self) -> bool:
        return self.complete is not None and self.complete.holds_matrices

    def given_matrices(self, n_threads: int = 1) -> list[Matrix]:
        assert self.complete is not None
        return self.complete.given_matrices(n_threads)

    @property
    def complete(self) -> FittedKernels | None:
        """The kernels themselves, where no training sample lacks any."""
        first = self.groups[0]
        return first.fitted if len(self.groups) == 1 and first.places.size == self.n_samples else None

    @property
    def columns(self) -> ColumnTable:
        """What was done with every column, and how many samples lack it."""
        found: dict[tuple[str | None, str | int], ColumnUse] = {}
        for group in self.groups:
            lacking = self.n_samples - group.places.size
            for one in group.fitted.columns:
                found.setdefault((one.view, one.column), replace(one, lacking=lacking))
        for one in column_table((), self.left_out):
            found.setdefault((one.view, one.column), one)
        return ColumnTable(found.values())

    @property
    def available(self) -> AnyArray:
        """Which kernels every training sample has, of shape (n, M)."""
        found = np.zeros((self.n_samples, len(self)), dtype=bool)
        for group in self.groups:
            found[np.ix_(group.places, group.kernels)] = True
        return found

    def available_in(self, X: Any) -> AnyArray:
        """Return which kernels every row of X has, of shape (rows, M); each must have one where that is needed."""
        parts = [(group.kernels, group.reader.available_in(X)) for group in self.groups]
        found = np.zeros((parts[0][1].shape[0], len(self)), dtype=bool)
        for kernels, seen in parts:
            found[:, kernels] = seen
        if self.needs_a_view:
            require_a_view(found)
        return found

    def centred(self, *, unit_trace: bool = False, n_threads: int = 1) -> KernelsWithMissingViews:
        """Return the kernels centred on the samples that have them, and with a trace of one if asked for."""
        rules = (Centering(), UnitTrace()) if unit_trace else (Centering(),)
        groups = tuple(
            replace(g, fitted=RescaledKernels(g.fitted, rules, n_threads=n_threads)) for g in self.groups
        )
        return replace(self, groups=groups, is_centred=True)

    @property
    def can_be_restricted(self) -> bool:
        return all(group.fitted.can_be_restricted for group in self.groups)

    def restricted(self, samples: Indices) -> KernelsWithMissingViews:
        """Return centred kernels with some of their training samples only, centred on those that have the view."""
        groups = []
        for group in self.groups:
            inside, position = group.position_of(samples)
            if inside.size < 2:
                raise ValueError(
                    f"View {self.view_names[group.kernels[0]]!r} is missing in all but {inside.size} of the "
                    f"{samples.size} samples drawn as landmarks; take more landmarks, or leave it out."
                )
            fitted = group.fitted.fitted if isinstance(group.fitted, RescaledKernels) else group.fitted
            assert isinstance(fitted, FittedBank)
            groups.append(replace(group, places=inside, fitted=fitted.restricted(position)))
        return replace(self, n_samples=samples.size, groups=tuple(groups)).centred()

    def grams(self) -> Iterator[Matrix]:
        """Yield the training Gram matrices in order, zero where a sample has no view."""
        found = {}
        for group in self.groups:
            inside = np.ix_(group.places, group.places)
            for m, K in zip(group.kernels, group.fitted.grams(), strict=True):
                found[int(m)] = np.zeros((self.n_samples, self.n_samples))
                found[int(m)][inside] = K
        yield from (found[m] for m in range(len(self)))

    def sources(self) -> list[KernelSource]:
        if self.complete is not None:
            return self.complete.sources()
        return [
            replace(
                source,
                kernels=group.kernels[source.kernels],
                n_samples=self.n_samples,
                samples=group.places if source.samples is None else group.places[source.samples],
            )
            for group in self.groups
            for source in group.fitted.sources()
        ]

    def for_prediction(self) -> KernelsWithMissingViews:
        """Return what new samples need, without what only training needed."""
        groups = tuple(replace(g, fitted=g.fitted.for_prediction()) for g in self.groups)
        return replace(self, groups=groups)

    def check_rows(self, X: Any) -> None:
        self.available_in(X)

    def with_all_views(self, X: Views) -> tuple[Views, dict[str, Indices]]:
        """Return Views with rows of NaN in place of views that are not in X, and the kernels that look at these."""
        absent: dict[str, tuple[int, list[int]]] = {}
        for group in self.groups:
            for view, width, kernels in group.reader.looks_at():
                if view is not None and view not in X:
                    absent.setdefault(view, (width, []))[1].extend(group.kernels[kernels].tolist())
        if not absent or not any(name in X for name in self._views_looked_at()):
            return X, {}
        empty = {name: np.full((len(X), width), np.nan) for name, (width, _) in absent.items()}
        return X.with_tables(empty), {name: np.array(kernels) for name, (_, kernels) in absent.items()}

    def _views_looked_at(self) -> set[str | None]:
        return {view for group in self.groups for view, *_ in group.reader.looks_at()}

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, kernel m of the rows of X against the training samples).

        A row without the view is that of the mean of the samples that have it.
        """
        wanted = list(self._wanted(X, which))
        if self.complete is not None and all(present.all() for *_, present in wanted):
            yield from self.complete.cross(X, which, columns)
            return
        self.available_in(X)  # says if a sample has no view at all
        samples = np.arange(self.n_samples) if columns is None else columns
        for group, own, present in wanted:
            yield from self._scattered(group, own, X, present, samples)

    def _scattered(
        self, group: ViewGroup, own: Indices, X: Any, present: AnyArray, samples: Indices
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield the kernels ``own`` of a group where rows of X, or some of these samples, lack them."""
        inside, position = group.position_of(samples)
        rows = np.flatnonzero(present)
        blocks: dict[int, Matrix] = {}
        if rows.size:
            blocks = dict(group.fitted.cross(group.reader.take(X, rows), own, position))
        for k in own:
            full = np.zeros((present.size, samples.size))
            if rows.size < present.size:
                full[~present] = self._absent(group, k, 1, samples)
            if rows.size:
                full[np.ix_(rows, inside)] = blocks[int(k)]
            yield int(group.kernels[k]), full

    def products(
        self, X: Any, columns: Indices, coef: AnyArray, which: Indices, n_threads: int = 1
    ) -> AnyArray:
        complete = self.complete
        if complete is not None and all(present.all() for *_, present in self._wanted(X, which)):
            return complete.products(X, columns, coef, which, n_threads)
        self.available_in(X)  # says if a sample has no view at all
        place = {int(m): position for position, m in enumerate(which)}
        out = np.zeros((which.size, n_rows(X), coef.shape[-1]))
        for group, own, present in self._wanted(X, which):
            places = np.array([place[int(m)] for m in group.kernels[own]])
            V = np.broadcast_to(coef, (which.size, *coef.shape[-2:]))[places]
            inside, position = group.position_of(columns)
            rows = np.flatnonzero(present)
            if rows.size and position.size:
                out[np.ix_(places, rows)] = group.fitted.products(
                    group.reader.take(X, rows), position, np.ascontiguousarray(V[:, inside]), own, n_threads
                )
            if rows.size < present.size and not self.is_centred:
                means = self._means[np.ix_(group.kernels[own], columns)]
                out[np.ix_(places, np.flatnonzero(~present))] = means[:, None] @ V
        return out

    def weighted_products(
        self, X: Any, columns: Indices, coef: Matrix, eta: Vector, n_threads: int = 1
    ) -> Matrix:
        complete = self.complete
        if complete is not None and all(
            present.all() for *_, present in self._wanted(X, np.flatnonzero(eta))
        ):
            return complete.weighted_products(X, columns, coef, eta, n_threads)
        return super().weighted_products(X, columns, coef, eta, n_threads)

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, kernel m between the rows of X and those of Z), both sets of new samples."""
        seen_z = self.available_in(Z)
        for group, mine, seen in self._wanted(X, which):
            for k in mine:
                m = int(group.kernels[k])
                x, z = np.flatnonzero(seen), np.flatnonzero(seen_z[:, m])
                full = np.zeros((seen.size, seen_z.shape[0]))
                if not self.is_centred and x.size * z.size < full.size:
                    raise ValueError(
                        "Kernels between two sets of new samples with missing views are known only if "
                        "training samples had some too; leave Z out, or impute them."
                    )
                if x.size and z.size:
                    sides = group.reader.take(X, x), group.reader.take(Z, z)
                    full[np.ix_(x, z)] = next(group.fitted.between(*sides, np.array([k])))[1]
                yield m, full

    def _wanted(self, X: Any, which: Indices | None) -> Iterator[tuple[ViewGroup, Indices, AnyArray]]:
        """Yield groups with those of their kernels that are wanted and that the same rows of X have."""
        wanted = np.arange(len(self)) if which is None else which
        for group in self.groups:
            mine = np.flatnonzero(np.isin(group.kernels, wanted))
            if mine.size:
                seen = group.reader.available_in(X)
                for members, rows in grouped([seen[:, k] for k in mine]):
                    yield group, mine[members], rows

    def _absent(self, group: ViewGroup, k: int, n_rows: int, columns: Indices) -> Matrix:
        """Return rows of kernel k for samples without its view."""
        if self.is_centred:
            return np.zeros((n_rows, columns.size))
        return np.tile(self._means[group.kernels[k]][columns], (n_rows, 1))

    @cached_property
    def _means(self) -> Matrix:
        """The rows of the means of the training samples, where these have all views."""
        assert self.complete is not None
        try:
            sources = self.complete.sources()
        except IndexError:
            raise ValueError(
                "Precomputed kernels that were fitted on samples with all views do not know the mean of the "
                "samples, which stands for a missing one; fit SampleAdaptiveMKLClassifier, which centres "
                "them, with max_flips above 0, or impute them."
            ) from None
        grams = StreamedGrams(sources, len(self), self.n_samples)
        return np.asarray(grams.matvecs(np.ones(self.n_samples)) / self.n_samples)


def require_a_view(available: AnyArray) -> None:
    """Raise ValueError unless every sample has a kernel."""
    without = np.flatnonzero(~available.any(axis=1))
    if without.size:
        raise ValueError(
            f"Sample {without[0]} has no view at all ({without.size} such in all): every value is NaN; leave "
            "them out."
        )


def grouped(present: Sequence[AnyArray]) -> list[tuple[Indices, AnyArray]]:
    """Return the kernels in groups of equal presence, in order of their first: (numbers, presence)."""
    found: dict[bytes, list[int]] = {}
    for m, here in enumerate(present):
        found.setdefault(here.tobytes(), []).append(m)
    return [(np.array(members), present[members[0]]) for members in found.values()]


@dataclass(frozen=True)
class BlockReader:
    """Kernels that look at blocks of a table or of Views; ``used`` says which of the blocks each looks at."""

    blocks: tuple[Block | PairwiseBlock, ...]
    used: tuple[int, ...]

    def available_in(self, X: Any) -> AnyArray:
        return ~absences(self.blocks, X)[:, list(self.used)]

    def take(self, X: Any, rows: Indices) -> Any:
        return X if rows.size == X.shape[0] else _safe_indexing(X, rows)

    def looks_at(self) -> list[tuple[str | None, int, Indices]]:
        used = np.asarray(self.used)
        return [
            (view, width, np.flatnonzero(used == number))
            for number, block in enumerate(self.blocks)
            for view, width in block.tables
        ]


@dataclass(frozen=True)
class MatrixReader:
    """Kernels that are given as matrices, rows against training samples."""

    kernels: Indices
    places: Indices
    n_samples: int

    def available_in(self, X: Any) -> AnyArray:
        given = as_matrices(X)
        if len(given) <= self.kernels.max() or given[0].shape[1] <= self.places[0]:
            # The kernels say what is wrong.
            return np.ones((given[0].shape[0], self.kernels.size), dtype=bool)
        return np.column_stack([~np.isnan(given[m][:, self.places[0]].astype(float)) for m in self.kernels])

    def take(self, X: Any, rows: Indices) -> Any:
        given = as_matrices(X)
        if len(given) <= self.kernels.max():
            return X  # the kernels say what is wrong
        whole = self.places.size == self.n_samples and self.kernels.size == len(given)
        if whole and rows.size == given[0].shape[0]:
            return X
        return [given[m][np.ix_(rows, self.places)] for m in self.kernels]

    def looks_at(self) -> list[tuple[str | None, int, Indices]]:
        return []


def _fit_blocks(bank: Bank, X: Any) -> FittedBank | KernelsWithMissingViews:
    layout = Layout(X, bank.declared_views())
    items, blocks = bank.resolve(layout)
    found = ~absences(blocks, X)[:, [item.block for item in items]]
    if found.all():
        _require_two(np.arange(found.shape[0]), repr(items[0].name))
        return FittedBank(items, blocks, X, layout.left_out, needs_a_view=bank.needs_a_view)
    if bank.needs_a_view:
        require_a_view(found)
    names = tuple(item.name for item in items)
    labels = tuple(blocks[item.block].label for item in items)
    groups = []
    for members, here in grouped([found[:, m] for m in range(len(items))]):
        places = np.flatnonzero(here)
        _require_two(places, repr(names[members[0]]))
        rows = X if here.all() else _safe_indexing(X, places)
        used = sorted({items[m].block for m in members})
        own = [replace(items[m], block=used.index(items[m].block)) for m in members]
        own_blocks = [blocks[b] if rows is X else blocks[b].of_rows(rows) for b in used]
        reader = BlockReader(tuple(own_blocks), tuple(item.block for item in own))
        groups.append(ViewGroup(members, places, FittedBank(own, own_blocks, rows), reader))
    return KernelsWithMissingViews(
        names,
        labels,
        int(found.shape[0]),
        tuple(groups),
        left_out=tuple(layout.left_out),
        needs_a_view=bank.needs_a_view,
    )


def absences(blocks: Sequence[Block | PairwiseBlock], X: Any) -> AnyArray:
    """Return which rows of X lack which blocks; what says so for several blocks is read once."""
    known: dict[object, AnyArray] = {}
    for block in blocks:
        if block.presence_key not in known:
            known[block.presence_key] = block.absent(X)
    return np.column_stack([known[block.presence_key] for block in blocks])


def _fit_matrices(bank: PrecomputedBank, X: Any) -> Any:
    given = as_matrices(X)
    if all(_is_complete(K) for K in given):
        fitted = bank.fit_matrices(given)
        _require_two(np.arange(fitted.n_samples), "0")
        return fitted
    present = [_present(K) for K in given]
    for m, (K, here) in enumerate(zip(given, present, strict=True)):
        if here.size == len(K) and not np.isnan(K[~here]).all():
            i, j = np.argwhere(~here[:, None] & ~np.isnan(K))[0]
            raise ValueError(
                f"Kernel {m} contains nan at [{i}, {i}] but not at [{i}, {j}]; all entries have to be "
                "finite, or all those of a sample that lacks it NaN."
            )
    if len({here.size for here in present}) > 1 or any(K.shape[0] != K.shape[1] for K in given):
        return bank.fit(X)  # it says what is wrong
    require_a_view(np.column_stack(present))
    names, groups = tuple(f"kernel {m}" for m in range(len(given))), []
    for members, here in grouped(present):
        places = np.flatnonzero(here)
        _require_two(places, str(members[0]))
        inside = np.ix_(places, places)
        own = X if here.all() and members.size == len(given) else [given[m][inside] for m in members]
        groups.append(ViewGroup(members, places, bank.fit(own), MatrixReader(members, places, here.size)))
    return KernelsWithMissingViews(names, names, present[0].size, tuple(groups))


def _present(K: AnyArray) -> AnyArray:
    """Return which samples have a kernel: those whose rows and columns are not NaN."""
    if _is_complete(K):
        return np.ones(min(K.shape), dtype=bool)
    return np.asarray(~np.isnan(np.diagonal(K)))


def _is_complete(K: AnyArray) -> bool:
    """Return whether every sample has this kernel: one that has not would show in any other's row."""
    return K.dtype.kind != "f" or (len(K) > 0 and not np.isnan(K[0]).any())


def _require_two(places: Indices, name: str) -> None:
    if places.size < 2:
        raise ValueError(
            f"Kernel {name} has values for {places.size} sample{'' if places.size == 1 else 's'} only and "
            "needs two; give more samples, or leave its view out."
        )
