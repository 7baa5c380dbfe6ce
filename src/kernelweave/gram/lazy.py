"""Gram matrices whose entries are made again for every pass, a few rows at a time."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property

import numpy as np

from kernelweave import _core
from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.adding import AddingGrams
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.scratch import lease
from kernelweave.gram.source import Bulk, Source, centring, diagonals, in_bulk, largest_entries, renumbered

# Entries are summed as they are, before centring: where they have a large part in common, and samples come
# class by class, partial sums outgrow the whole, and rounding with them; so many times per sample.
PARTIAL_SUMS = 1 / 64


class LazyGrams(AddingGrams):
    """M float64 kernels of which only a few rows exist at any time.

    Entries are those of the kernels themselves, so bounds drawn from them speak of the originals. Only the
    combined matrix is held in full; ``dtype`` is its type, and with float32 it counts as rounded.

    Parameters
    ----------
    sources : where the rows come from.
    centre : answer as if every kernel were centred, for coefficients that sum to zero.
    shifts, sizes : those of another stack of the same kernels, if it is known.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        n_kernels: int,
        n_samples: int,
        *,
        centre: bool = False,
        dtype: str = "float64",
        n_threads: int = 1,
        shifts: Matrix | None = None,
        sizes: Vector | None = None,
    ) -> None:
        self.sources, self.n_kernels, self.n_samples = tuple(sources), n_kernels, n_samples
        self.centred, self.dtype, self.n_threads = centre, np.dtype(dtype), n_threads
        self._shifts, self._sizes = shifts, sizes

    @cached_property
    def shifts(self) -> Matrix:
        if not self.centred:
            return np.zeros((self.n_kernels, self.n_samples))
        return (
            centring(self.sources, self.n_kernels, self.n_samples, self.n_threads)
            if self._shifts is None
            else self._shifts
        )

    @cached_property
    def sizes(self) -> Vector:
        if self._sizes is not None:
            return self._sizes
        return largest_entries(self.sources, self.n_kernels, self.n_threads)

    @cached_property
    def _bulk(self) -> list[Bulk]:
        """The source that does whole passes itself; it is alone, for it holds every kernel."""
        return in_bulk(self.sources)[1]

    @property
    def errors(self) -> Vector:
        return np.asarray(max(1.0, PARTIAL_SUMS * self.n_samples) * super().errors)

    @property
    def is_rounded(self) -> bool:
        return self.dtype == np.float32

    def settle(self) -> bool:
        return bool([m for source in self.sources for m in source.settle()])

    def add(self, eta: Vector, K: AnyArray) -> None:
        """Add Σ eta_m K_m to the lower triangle of K."""
        n = self.n_samples
        shift = eta @ self.shifts
        which = set(np.flatnonzero(eta).tolist())
        active = [source for source in self.sources if not which.isdisjoint(source.kernels)]
        for whole in [source for source in active if source.is_whole]:  # made once, not for every block
            for m, block in whole.block(slice(0, n), slice(0, n), which):
                K += eta[m] * block
        active = [source for source in active if not source.is_whole]
        step = min((source.step for source in active), default=n)

        def fill(share: Sequence[int]) -> None:
            total = np.empty(step * n)
            for start in share:
                rows = slice(start, min(start + step, n))
                shape = (rows.stop - start, rows.stop)
                acc = total[: shape[0] * shape[1]].reshape(shape)
                np.add(shift[rows, None], shift[: rows.stop], out=acc)
                np.negative(acc, out=acc)
                for source in active:
                    source.add_sum(rows, slice(0, rows.stop), eta, acc)
                K[rows, : rows.stop] += acc

        shared_out(fill, range(0, n, step), self.n_threads)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        bulk = self._bulk
        if not bulk:
            return super().combine(eta, out)
        K = np.empty((self.n_samples, self.n_samples), dtype=self.dtype) if out is None else out
        bulk[0].combine_all(eta, eta @ self.shifts, K, self.n_threads)
        return K

    def images(self, coef: AnyArray) -> AnyArray:
        return self._centred_images(coef, None)

    def images_at(self, coef: AnyArray, where: AnyArray) -> AnyArray:
        marked = np.ascontiguousarray(where.reshape(self.n_samples, -1).T, dtype=np.uint8)
        return self._centred_images(coef, marked)

    def _centred_images(self, coef: AnyArray, where: AnyArray | None) -> AnyArray:
        V = np.ascontiguousarray(coef.reshape(self.n_samples, -1).T)
        out = self._images(V, None, where)
        if self.centred:  # K V - 1 (shift'V) - shift (1'V), and the coefficients sum to zero
            out -= (self.shifts @ V.T)[:, :, None]
        return np.ascontiguousarray(out.transpose(0, 2, 1)).reshape(self.n_kernels, *coef.shape)

    def image(self, eta: Vector, coef: AnyArray) -> AnyArray:
        """Return K(eta) V from the kernels with weight alone; K(eta) itself is not held."""
        V = np.ascontiguousarray(coef.reshape(self.n_samples, -1).T)
        bulk = self._bulk
        if bulk:
            out = np.empty(V.shape)
            bulk[0].image_all(eta, V, out, self.n_threads)
        else:
            out = np.tensordot(eta, self._images(V, set(np.flatnonzero(eta).tolist())), axes=1)
        if self.centred:
            out -= (V @ (eta @ self.shifts))[:, None]
        return np.ascontiguousarray(out.T).reshape(coef.shape)

    def _images(self, V: Matrix, which: Container[int] | None, where: AnyArray | None = None) -> AnyArray:
        """Return V K_m for the kernels (of ``which``), zero for the others; all right at least ``where``."""
        out = np.zeros((self.n_kernels, *V.shape))

        def add(share: Sequence[tuple[Source, slice]]) -> AnyArray:
            out = np.zeros((self.n_kernels, *V.shape))
            for source, rows in share:
                source.add_images(rows, V, out, which)
            return out

        single, bulk = in_bulk(self.sources)
        for one in bulk:
            one.images_all(V, out, self.n_threads, where)
        tasks = [(source, rows) for source in single for rows in source.blocks()]
        for share in shared_out(add, tasks, self.n_threads):
            out += share
        return out

    def image_within(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        return self.image(eta, coef), np.zeros(coef.shape)

    def energy_errors(self, coef: AnyArray) -> Vector:  # noqa: ARG002 - energies are those of the entries
        return np.zeros(self.n_kernels)

    def subset(self, which: Indices) -> PackedGrams:
        """Return these kernels in memory, in this order."""
        sources = renumbered(self.sources, which.tolist())
        return PackedGrams.pack(
            sources, which.size, self.n_samples, self.dtype.name, self.centred, self.n_threads
        )

    def sample(self, rows: Indices) -> PackedGrams:
        """Return the kernels of these samples alone, in memory; rows ascend."""
        size, shifts = rows.size, self.shifts.take(rows, axis=1)
        packed = lease((self.n_kernels, size * (size + 1) // 2), self.dtype.name, self.n_threads)
        found = np.empty((self.n_kernels, size))
        bulk = self._bulk
        if bulk:
            bulk[0].take_all(rows, shifts, packed, self.n_threads)
            found = diagonals(bulk, self.n_kernels, self.n_samples, self.n_threads).take(rows, axis=1)

        def fill(share: Sequence[Source]) -> None:
            for source in share:
                for m, K in source.block(rows, rows):
                    _core.pack(np.ascontiguousarray(K), 0, shifts[m], packed[m])
                    found[m] = np.diagonal(K)

        if not bulk:
            shared_out(fill, self.sources, self.n_threads)
        roots = np.sqrt(np.maximum(found - 2.0 * shifts, 0.0))
        return PackedGrams(packed, shifts, self.sizes, roots, self.centred, self.n_threads)

    def energies(self, coef: AnyArray) -> Vector:
        bulk = self._bulk
        if bulk:
            V, h = np.ascontiguousarray(coef.reshape(self.n_samples, -1).T), np.empty(self.n_kernels)
            bulk[0].energies_all(V, h, self.n_threads)
            return np.asarray(h - (self.shifts @ V.T) @ V.sum(axis=1))
        images = self.images(coef).reshape(self.n_kernels, -1)
        return np.asarray(0.5 * images @ coef.ravel())
