"""Gram matrices whose entries are computed again for every pass, a few rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from functools import cached_property

import numpy as np

from kernelweave import _core
from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.rounding import SINGLE, arithmetic_errors
from kernelweave.gram.source import BlockSource, block_centring_shifts, block_diagonals, renumbered
from kernelweave.gram.storage import Storage, counted


class AddingGrams(ABC):
    """A stack that adds its kernels to the lower triangle of a matrix, which then is mirrored."""

    n_samples: int
    n_threads: int
    dtype: np.dtype[np.generic]
    sizes: Vector
    shifts: Matrix

    @abstractmethod
    def add(self, eta: Vector, K: AnyArray) -> None:
        """Add Σ eta_m K_m to the lower triangle of K."""

    @property
    def errors(self) -> Vector:
        return arithmetic_errors(self.sizes, self.n_samples)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        K = np.empty((self.n_samples, self.n_samples), dtype=self.dtype) if out is None else out
        K.fill(0.0)
        self.add(eta, K)
        _core.mirror(K, self.n_threads)
        return K

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        return np.asarray((eta @ self.shifts) @ coef)


class BlockGrams(AddingGrams):
    """M float64 kernels of which only a few rows exist at any time.

    Entries are those of the kernels themselves, so bounds drawn from them speak of the originals. Only the
    combined matrix is held in full; ``dtype`` is its type, and with float32 it counts as rounded.

    Parameters
    ----------
    sources : where the rows come from.
    centre : act as if every kernel were centred, for coefficients that sum to zero.
    shifts : those of another stack of the same kernels, if they are known.
    """

    def __init__(
        self,
        sources: Sequence[BlockSource],
        n_kernels: int,
        n_samples: int,
        *,
        centre: bool = False,
        dtype: str = "float64",
        n_threads: int = 1,
        shifts: Matrix | None = None,
    ) -> None:
        self.sources, self.n_kernels, self.n_samples = tuple(sources), n_kernels, n_samples
        self.centre, self.dtype, self.n_threads = centre, np.dtype(dtype), n_threads
        self._given_shifts = shifts

    @cached_property
    def shifts(self) -> Matrix:  # type: ignore[override]
        if self._given_shifts is not None:
            return self._given_shifts
        if not self.centre:
            return np.zeros((self.n_kernels, self.n_samples))
        return block_centring_shifts(self.sources, self.n_kernels, self.n_samples, self.n_threads)

    @cached_property
    def sizes(self) -> Vector:  # type: ignore[override]
        diagonals = block_diagonals(self.sources, self.n_kernels, self.n_samples)
        return np.asarray(np.abs(diagonals).max(axis=1))

    @property
    def errors(self) -> Vector:
        # Entries are summed as they are, before centring: where they have a large part in common, and samples
        # come class by class, partial sums outgrow the whole, and rounding with them.
        return np.asarray(max(1.0, self.n_samples / 64) * super().errors)

    @property
    def is_rounded(self) -> bool:
        return self.dtype == np.float32

    @property
    def storage(self) -> Storage:
        how = f"{counted(self.n_kernels)} read or made anew for every pass"
        return Storage(how, SINGLE if self.is_rounded else 0.0)

    def add(self, eta: Vector, K: AnyArray) -> None:
        n = self.n_samples
        shift = eta @ self.shifts
        which = set(np.flatnonzero(eta).tolist())
        active = [source for source in self.sources if not which.isdisjoint(source.kernels)]
        for source in [source for source in active if source.needs_all_rows]:  # once, not for every block
            for m, block in source.block(slice(0, n), slice(0, n), which):
                K += eta[m] * block
        active = [source for source in active if not source.needs_all_rows]
        step = min((source.block_size for source in active), default=n)

        def fill(share: Sequence[int]) -> None:
            total = np.empty(step * n)
            for start in share:
                rows = slice(start, min(start + step, n))
                shape = (rows.stop - start, rows.stop)
                block = total[: shape[0] * shape[1]].reshape(shape)
                np.add(shift[rows, None], shift[: rows.stop], out=block)
                np.negative(block, out=block)
                for source in active:
                    source.add_weighted_sum(rows, slice(0, rows.stop), eta, block)
                K[rows, : rows.stop] += block

        shared_out(fill, range(0, n, step), self.n_threads)

    def energies(self, coef: AnyArray) -> Vector:
        products = self.matvecs(coef).reshape(self.n_kernels, -1)
        return np.asarray(0.5 * products @ coef.ravel())

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:  # noqa: ARG002
        V = np.ascontiguousarray(coef.reshape(self.n_samples, -1).T)
        out = self._products(V, None)
        if self.centre:  # K V - 1 (shift'V) - shift (1'V), and the coefficients sum to zero
            out -= (self.shifts @ V.T)[:, :, None]
        return np.ascontiguousarray(out.transpose(0, 2, 1)).reshape(self.n_kernels, *coef.shape)

    def matvec_with_error(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        V = np.ascontiguousarray(coef.reshape(self.n_samples, -1).T)
        out = np.tensordot(eta, self._products(V, set(np.flatnonzero(eta).tolist())), axes=1)
        if self.centre:
            out -= (V @ (eta @ self.shifts))[:, None]
        return np.ascontiguousarray(out.T).reshape(coef.shape), np.zeros(coef.shape)

    def _products(self, V: Matrix, which: Container[int] | None) -> AnyArray:
        """Return V K_m for the kernels (of ``which``), zero for the others, before centring."""

        def add(share: Sequence[tuple[BlockSource, slice]]) -> AnyArray:
            out = np.zeros((self.n_kernels, *V.shape))
            for source, rows in share:
                source.add_matvecs(rows, V, out, which)
            return out

        tasks = [(source, rows) for source in self.sources for rows in source.row_blocks()]
        return np.asarray(sum(shared_out(add, tasks, self.n_threads)))

    def energy_errors(self, coef: AnyArray) -> Vector:  # noqa: ARG002 - entries are those of the originals
        return np.zeros(self.n_kernels)

    def subset(self, which: Indices) -> PackedGrams:
        sources = renumbered(self.sources, which.tolist())
        return PackedGrams.from_blocks(
            sources,
            which.size,
            self.n_samples,
            dtype=self.dtype.name,
            centre=self.centre,
            n_threads=self.n_threads,
        )

    def sample(self, rows: Indices) -> PackedGrams:
        size, shifts = rows.size, np.ascontiguousarray(self.shifts[:, rows])
        packed = np.empty((self.n_kernels, size * (size + 1) // 2), dtype=self.dtype)
        diagonals = np.empty((self.n_kernels, size))

        def fill(share: Sequence[BlockSource]) -> None:
            for source in share:
                for m, K in source.block(rows, rows):
                    _core.pack(np.ascontiguousarray(K), 0, shifts[m], packed[m])
                    diagonals[m] = np.diagonal(K)

        shared_out(fill, self.sources, self.n_threads)
        return PackedGrams.of(packed, diagonals, shifts, self.centre, self.n_threads)
