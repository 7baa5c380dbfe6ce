"""Where the entries of Gram matrices come from: kernels that are made together, a few rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence

import numpy as np

from kernelweave import _core
from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.gram.knots import Knots

# Rows are made in blocks of about this many entries: 2 MB, which a thread keeps in its cache.
ENTRIES = 1 << 18
# Samples whose mean stands in for the mean of all when kernels are centred.
REFERENCES = 16


class Source(ABC):
    """One or more symmetric kernels of the same samples, whose entries are made when asked for.

    Subclasses may be asked from several threads at once.
    """

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
    def is_smooth(self) -> bool:
        """Whether a few samples may be enough to tell the kernels everywhere: worth trying for low rank."""
        return False

    def knots(self) -> Knots | None:
        """Return its kernels between a few knots, which tell them exactly; None where that does not pay."""
        return None

    @property
    def is_whole(self) -> bool:
        """Whether asking for a few rows costs as much as asking for all."""
        return False

    @property
    def step(self) -> int:
        """How many rows to ask for at a time."""
        if self.is_whole:
            return self.n_samples
        return max(1, ENTRIES // max(self.n_samples, 1))

    def check(self) -> None:  # noqa: B027 - most make their entries themselves
        """Raise ValueError unless what comes from outside is a kernel; `Bulk.pack_all` does so too."""

    def defer(self, n_threads: int) -> None:  # noqa: B027
        """Promise to call `settle`: what no pass reads may be checked until then, beside the work."""

    @property
    def is_deferred(self) -> bool:
        """Whether `settle` has something to do."""
        return False

    def settle(self) -> list[int]:
        """Finish what was deferred as `check` would; return the kernels that had to be changed for it."""
        return []

    def pack(self, rows: slice, shifts: Matrix, packed: AnyArray) -> None:
        """Write K_m[i, j] - shifts[m, i] - shifts[m, j] of these rows to the triangles packed[m]."""
        for m, K in self.block(rows, slice(0, rows.stop)):
            _core.pack(K, rows.start, shifts[m], packed[m])

    def add_images(self, rows: slice, V: Matrix, out: AnyArray, which: Container[int] | None = None) -> None:
        """Add the share of these rows, lower triangle only, to out[m] = V K_m for its kernels (of ``which``).

        V has one row per vector.
        """
        for m, K in self.block(rows, slice(0, rows.stop), which):
            _core.add_images(K, rows.start, V, out[m])

    def add_sum(self, rows: Span, columns: Span, weights: Vector, out: Matrix) -> None:
        """Add Σ weights[m] K_m[rows, columns] over its kernels to out, which is in one piece."""
        which = {m for m in self.kernels if weights[m] != 0.0}
        for m, K in self.block(rows, columns, which):
            out += weights[m] * K

    def renumbered(self, places: dict[int, int]) -> Source:
        """Return those of its kernels that have a place, under the number of that place."""
        return Renumbered(self, places)

    def blocks(self) -> Iterator[slice]:
        """Yield all rows in blocks."""
        for start in range(0, self.n_samples, self.step):
            yield slice(start, min(start + self.step, self.n_samples))


class Bulk(Source):
    """A source that does the passes over all its kernels in one go, with threads of its own.

    It holds every kernel of the stack, so arrays with one row per kernel are its own.
    """

    @abstractmethod
    def all_diagonals(self, n_threads: int = 1) -> Matrix:
        """Return the diagonals of its kernels, one row each; read only."""

    @abstractmethod
    def centre_all(self, chosen: Indices, shifts: Matrix, n_threads: int) -> None:
        """Set the shifts of its kernels."""

    @abstractmethod
    def pack_all(self, shifts: Matrix, packed: AnyArray, n_threads: int, even: Matrix | None = None) -> None:
        """Write the shifted lower triangles of its kernels, after checking them; to ``even``, their sum."""

    @abstractmethod
    def combine_all(self, eta: Vector, shift: Vector, K: AnyArray, n_threads: int) -> None:
        """Set K to Σ eta_m K_m[i, j] - shift[i] - shift[j]: symmetric whatever the upper triangles hold."""

    @abstractmethod
    def take_all(self, rows: Indices, shifts: Matrix, packed: AnyArray, n_threads: int) -> bool:
        """Write the triangles of its kernels between these samples alone, less their shifts; rows ascend.

        Returns whether all entries are finite.
        """

    @abstractmethod
    def energies_all(self, V: Matrix, out: Vector, n_threads: int) -> None:
        """Set out[m] = ½ tr(V K_m V'), V of shape (columns, n)."""

    @abstractmethod
    def image_all(self, eta: Vector, V: Matrix, out: AnyArray, n_threads: int) -> None:
        """Set out = Σ eta_m V K_m, V of shape (columns, n)."""

    @abstractmethod
    def images_all(self, V: Matrix, out: AnyArray, n_threads: int, where: AnyArray | None = None) -> None:
        """Set out[m] = V K_m for its kernels, V of shape (columns, n), at least ``where`` that is true."""


class Renumbered(Source):
    """Some kernels of a source, under other numbers."""

    def __init__(self, source: Source, places: dict[int, int]) -> None:
        super().__init__([places[m] for m in source.kernels if m in places], source.n_samples)
        self._source, self._places = source, places
        self._own = {place: m for m, place in places.items()}

    @property
    def is_whole(self) -> bool:
        return self._source.is_whole

    def check(self) -> None:
        self._source.check()

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        own = {self._own[p] for p in self.kernels if which is None or p in which}
        for m, K in self._source.block(rows, columns, own):
            yield self._places[m], K

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m, diagonal in self._source.diagonals():
            if m in self._places:
                yield self._places[m], diagonal


def renumbered(sources: Sequence[Source], which: Sequence[int] | None = None) -> list[Source]:
    """Return the sources of these kernels (None: of all), counted from 0 in the order given."""
    order = sorted(m for source in sources for m in source.kernels) if which is None else which
    places = {int(m): place for place, m in enumerate(order)}
    return [source.renumbered(places) for source in sources if not places.keys().isdisjoint(source.kernels)]


def diagonals(sources: Sequence[Source], n_kernels: int, n_samples: int, n_threads: int = 1) -> Matrix:
    """Return the diagonal of each kernel, one row each; read only."""
    single, bulk = in_bulk(sources)
    if bulk:
        return bulk[0].all_diagonals(n_threads)
    found = np.zeros((n_kernels, n_samples))
    for source in single:
        for m, diagonal in source.diagonals():
            found[m] = diagonal
    return found


def largest_entries(sources: Sequence[Source], n_kernels: int, n_threads: int = 1) -> Vector:
    """Return the largest diagonal entry of each kernel, which bounds all its entries."""
    single, bulk = in_bulk(sources)
    if bulk:
        return np.asarray(np.abs(bulk[0].all_diagonals(n_threads)).max(axis=1))
    sizes = np.zeros(n_kernels)
    for source in single:
        found = dict(source.diagonals())
        if found:
            sizes[list(found)] = np.abs([*found.values()]).max(axis=1)
    return sizes


def reference_samples(n_samples: int) -> Indices:
    """Return a few samples, spread over all."""
    return np.unique(np.linspace(0, n_samples - 1, min(n_samples, REFERENCES)).astype(np.intp))


def centring(sources: Sequence[Source], n_kernels: int, n_samples: int, n_threads: int = 1) -> Matrix:
    r"""Return one row r_m of shifts per kernel, with which K_ij - r_i - r_j is a centred kernel.

    It is the kernel of φ(x) - μ with μ the mean of a few samples, spread over all, for which a few rows of K
    are enough. To a machine whose coefficients sum to zero it is the same kernel whatever μ.
    """
    chosen = reference_samples(n_samples)
    weights = np.full(chosen.size, 1.0 / chosen.size)
    shifts = np.empty((n_kernels, n_samples))

    def fill(share: Sequence[Source]) -> None:
        for source in share:
            for m, K in source.block(chosen, slice(0, n_samples)):
                means = weights @ K
                shifts[m] = means - 0.5 * (weights @ means[chosen])

    single, bulk = in_bulk(sources)
    for source in bulk:
        source.centre_all(chosen, shifts, n_threads)
    shared_out(fill, single, n_threads)
    return shifts


def in_bulk(sources: Sequence[Source]) -> tuple[list[Source], list[Bulk]]:
    """Return the sources to be asked block by block, and those that do whole passes themselves."""
    return (
        [source for source in sources if not isinstance(source, Bulk)],
        [source for source in sources if isinstance(source, Bulk)],
    )
