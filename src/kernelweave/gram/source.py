"""Kernels that are computed when they are needed, a block of rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence

import numpy as np

from kernelweave import _core
from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.gram.lowrank.grid import Knots
from kernelweave.kernels.fitted_scaling import FittedScaling

# Samples whose mean stands in for the mean of all when kernels are centred.
N_REFERENCES = 16


class BlockSource(ABC):
    """One or more symmetric kernels of the same samples, whose entries are computed on demand.

    ``kernels`` are their numbers in the stack. Sources may be asked from several threads at once.
    """

    # Rows are computed in blocks of about this many entries: 2 MB, which a thread keeps in its cache.
    block_entries = 1 << 18

    def __init__(self, kernels: Sequence[int], n_samples: int) -> None:
        self.kernels = tuple(kernels)
        self.n_samples = n_samples

    @abstractmethod
    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, K_m[rows, columns]) for each of its kernels (those of ``which``); float64, read only."""

    @abstractmethod
    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        """Yield (m, diagonal of K_m) for each of its kernels."""

    @property
    def may_be_low_rank(self) -> bool:
        """Whether the kernels may be smooth enough to be determined by a few samples."""
        return False

    def knots(self) -> Knots | None:
        """Return its kernels between knots that determine them exactly; None where that does not pay."""
        return None

    @property
    def needs_all_rows(self) -> bool:
        """Whether computing a few rows costs as much as computing all."""
        return False

    @property
    def block_size(self) -> int:
        """How many rows to compute at a time."""
        if self.needs_all_rows:
            return self.n_samples
        return max(1, self.block_entries // max(self.n_samples, 1))

    def pack(self, rows: slice, shifts: Matrix, packed: AnyArray) -> None:
        """Write K_m[i, j] - shifts[m, i] - shifts[m, j] of these rows to the triangles packed[m]."""
        for m, K in self.block(rows, slice(0, rows.stop)):
            _core.pack(np.ascontiguousarray(K), rows.start, shifts[m], packed[m])

    def add_matvecs(self, rows: slice, V: Matrix, out: AnyArray, which: Container[int] | None = None) -> None:
        """Add the share of these rows, lower triangle only, to out[m] = V K_m for its kernels (of ``which``).

        V has one row per vector.
        """
        for m, K in self.block(rows, slice(0, rows.stop), which):
            _core.add_matvecs(np.ascontiguousarray(K), rows.start, V, out[m])

    def add_weighted_sum(self, rows: Span, columns: Span, weights: Vector, out: Matrix) -> None:
        """Add Σ weights[m] K_m[rows, columns] over its kernels to out, which is in one piece."""
        which = {m for m in self.kernels if weights[m] != 0.0}
        for m, K in self.block(rows, columns, which):
            out += weights[m] * K

    def renumbered(self, places: dict[int, int]) -> BlockSource:
        """Return those of its kernels that have a place, under the number of that place."""
        return RenumberedSource(self, places)

    def row_blocks(self) -> Iterator[slice]:
        """Yield all rows in blocks."""
        for start in range(0, self.n_samples, self.block_size):
            yield slice(start, min(start + self.block_size, self.n_samples))


class MatrixSource(BlockSource):
    """Matrices that exist, each perhaps to be scaled block by block."""

    def __init__(self, matrices: Sequence[Matrix], scalings: Sequence[FittedScaling | None] = ()) -> None:
        super().__init__(range(len(matrices)), int(matrices[0].shape[0]))
        self._matrices = list(matrices)
        self._scalings = list(scalings) or [None] * len(matrices)

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        for m, scaling in enumerate(self._scalings):
            if which is None or m in which:
                K = self._matrices[m][rows][:, columns]
                yield m, K if scaling is None else scaling.block(np.ascontiguousarray(K), rows, columns)

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m, scaling in enumerate(self._scalings):
            diagonal = np.diagonal(self._matrices[m])
            yield m, diagonal if scaling is None else scaling.train_diagonal(diagonal)


class RenumberedSource(BlockSource):
    """Some kernels of a source, under other numbers."""

    def __init__(self, source: BlockSource, places: dict[int, int]) -> None:
        super().__init__([places[m] for m in source.kernels if m in places], source.n_samples)
        self._source, self._places = source, places
        self._number = {place: m for m, place in places.items()}

    @property
    def needs_all_rows(self) -> bool:
        return self._source.needs_all_rows

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        own = {self._number[p] for p in self.kernels if which is None or p in which}
        for m, K in self._source.block(rows, columns, own):
            yield self._places[m], K

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m, diagonal in self._source.diagonals():
            if m in self._places:
                yield self._places[m], diagonal


def renumbered(sources: Sequence[BlockSource], which: Sequence[int] | None = None) -> list[BlockSource]:
    """Return the sources of these kernels (None: of all), counted from 0 in the order given."""
    order = sorted(m for source in sources for m in source.kernels) if which is None else which
    places = {int(m): place for place, m in enumerate(order)}
    return [source.renumbered(places) for source in sources if not places.keys().isdisjoint(source.kernels)]


def block_diagonals(sources: Sequence[BlockSource], n_kernels: int, n_samples: int) -> Matrix:
    """Return the diagonal of each kernel, one row each."""
    found = np.zeros((n_kernels, n_samples))
    for source in sources:
        for m, diagonal in source.diagonals():
            found[m] = diagonal
    return found


def reference_samples(n_samples: int) -> Indices:
    """Return a few samples, spread over all."""
    return np.unique(np.linspace(0, n_samples - 1, min(n_samples, N_REFERENCES)).astype(np.intp))


def block_centring_shifts(
    sources: Sequence[BlockSource], n_kernels: int, n_samples: int, n_threads: int = 1
) -> Matrix:
    r"""Return one row r_m of shifts per kernel, with which K_ij − r_i − r_j is a centred kernel.

    It is the kernel of φ(x) − μ with μ the mean of a few samples, spread over all, for which a few rows of K
    are enough. Where coefficients sum to zero it is the same kernel whatever μ.
    """
    chosen = reference_samples(n_samples)
    weights = np.full(chosen.size, 1.0 / chosen.size)
    shifts = np.empty((n_kernels, n_samples))

    def fill(share: Sequence[BlockSource]) -> None:
        for source in share:
            for m, K in source.block(chosen, slice(0, n_samples)):
                means = weights @ K
                shifts[m] = means - 0.5 * (weights @ means[chosen])

    shared_out(fill, sources, n_threads)
    return shifts
