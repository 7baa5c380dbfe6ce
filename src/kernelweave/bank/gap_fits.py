"""Banks fitted to samples that may lack views: whole where they do not, in groups where they do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices
from kernelweave.bank.base import Bank
from kernelweave.bank.blocks import Block, PairwiseBlock
from kernelweave.bank.fitted import FittedBank
from kernelweave.bank.gaps import GappedKernels, Group, grouped, require_a_view
from kernelweave.bank.layout import Layout
from kernelweave.bank.precomputed import PrecomputedBank, as_matrices


def fit_with_gaps(bank: Any, X: Any) -> Any:
    """Fit a bank to samples some of whose views may be NaN throughout; other banks as they are."""
    if isinstance(bank, PrecomputedBank):
        return _fit_matrices(bank, X)
    return _fit_blocks(bank, X) if isinstance(bank, Bank) else bank.fit(X)


@dataclass(frozen=True)
class BlockReader:
    """Kernels that look at blocks of a table or of Views; ``used`` says which of the blocks each looks at."""

    blocks: tuple[Block | PairwiseBlock, ...]
    used: tuple[int, ...]

    def sees(self, X: Any) -> AnyArray:
        found = [presence(block, X) for block in self.blocks]
        return np.column_stack([found[block] for block in self.used])

    def take(self, X: Any, rows: Indices) -> Any:
        return X if rows.size == X.shape[0] else _safe_indexing(X, rows)


@dataclass(frozen=True)
class MatrixReader:
    """Kernels that are given as matrices, rows against training samples."""

    kernels: Indices
    places: Indices
    n_samples: int

    def sees(self, X: Any) -> AnyArray:
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


def presence(block: Block | PairwiseBlock, X: Any) -> AnyArray:
    """Return which rows of X have this block; a row that has it in part is an error."""
    missing = block.missing(X)
    absent = missing.all(axis=1)
    broken = np.flatnonzero(missing.any(axis=1) & ~absent)
    if broken.size:
        column = block.columns[int(np.argmax(missing[broken[0]]))]
        raise ValueError(
            f"Column {column!r} of view {block.label!r} contains NaN in row {broken[0]}, others do not: a "
            "view is missing as a whole or not at all; impute such values first, or set all of them to NaN."
        )
    return np.asarray(~absent)


def _fit_blocks(bank: Bank, X: Any) -> GappedKernels:
    items, blocks = bank.resolve(Layout(X, bank.declared_views()))
    present = [presence(block, X) for block in blocks]
    found = np.column_stack([present[item.block] for item in items])
    require_a_view(found)
    names = tuple(item.name for item in items)
    labels = tuple(blocks[item.block].label for item in items)
    groups = []
    for members, here in grouped([found[:, m] for m in range(len(items))]):
        places = np.flatnonzero(here)
        _require_two(places, repr(names[members[0]]))
        rows = X if here.all() else _safe_indexing(X, places)
        own_items, own_blocks = (
            bank.resolve(Layout(rows, bank.declared_views())) if rows is not X else (items, blocks)
        )
        used = sorted({own_items[m].block for m in members})
        own = [replace(own_items[m], block=used.index(own_items[m].block)) for m in members]
        reader = BlockReader(tuple(own_blocks[b] for b in used), tuple(item.block for item in own))
        groups.append(Group(members, places, FittedBank(own, [own_blocks[b] for b in used], rows), reader))
    return GappedKernels(names, labels, int(found.shape[0]), tuple(groups))


def _fit_matrices(bank: PrecomputedBank, X: Any) -> Any:
    given = as_matrices(X)
    names = tuple(f"kernel {m}" for m in range(len(given)))
    if all(_is_whole(K) for K in given):
        fitted = bank.fit_matrices(given)
        members, places = np.arange(len(given)), np.arange(fitted.n_samples)
        _require_two(places, "0")
        group = Group(members, places, fitted, MatrixReader(members, places, places.size))
        return GappedKernels(names, names, places.size, (group,))
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
    groups = []
    for members, here in grouped(present):
        places = np.flatnonzero(here)
        _require_two(places, str(members[0]))
        inside = np.ix_(places, places)
        own = X if here.all() and members.size == len(given) else [given[m][inside] for m in members]
        groups.append(Group(members, places, bank.fit(own), MatrixReader(members, places, here.size)))
    return GappedKernels(names, names, present[0].size, tuple(groups))


def _present(K: AnyArray) -> AnyArray:
    """Return which samples have a kernel: those whose rows and columns are not NaN."""
    if _is_whole(K):
        return np.ones(min(K.shape), dtype=bool)
    return np.asarray(~np.isnan(np.diagonal(K)))


def _is_whole(K: AnyArray) -> bool:
    """Return whether every sample has this kernel: one that has not would show in any other's row."""
    if K.dtype != np.float64:
        return K.dtype.kind != "f" or (len(K) > 0 and not np.isnan(K[0]).any())
    return len(K) > 0 and not isnan(np.vdot(K[0], K[0]))  # squares do not cancel; for hundreds of matrices


def _require_two(places: Indices, name: str) -> None:
    if places.size < 2:
        raise ValueError(
            f"Kernel {name} has values for {places.size} sample{'' if places.size == 1 else 's'} only and "
            "needs two; give more samples, or leave its view out."
        )
