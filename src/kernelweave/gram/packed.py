"""Gram matrices as packed lower triangles in float32 or float64, doubly centred where that is harmless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kernelweave import _core
from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.rounding import of_arithmetic, of_energies, of_image
from kernelweave.gram.scratch import lease
from kernelweave.gram.source import Source, centring, diagonals, in_bulk


@dataclass(frozen=True)
class PackedGrams:
    """Half the entries, and with float32 a quarter of the bytes, of M dense matrices.

    ``roots`` are those of the diagonals as they are stored, which bound all other entries.

    Centring changes nothing for a machine whose coefficients sum to zero, and it removes the large constant
    part of wide Gaussians that would drown v'Kv in float32 rounding. Bounds drawn from these matrices
    speak of them; `energy_errors` and `image_within` tell how far the originals may be.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import MatrixSource, PackedGrams
    >>> grams = PackedGrams.pack([MatrixSource([np.eye(3)])], n_kernels=1, n_samples=3)
    >>> grams.energies(np.array([1.0, -1.0, 0.0])).round(3)
    array([1.])

    """

    packed: AnyArray = field(repr=False)
    shifts: Matrix = field(repr=False)
    sizes: Vector = field(repr=False)
    roots: Matrix = field(repr=False)
    centred: bool
    n_threads: int = 1
    sources: tuple[Source, ...] = field(default=(), repr=False)  # whose checks are deferred
    even: list[Matrix] = field(default_factory=list, repr=False)  # the sum of all, until it is asked for

    @classmethod
    def pack(
        cls,
        sources: Sequence[Source],
        n_kernels: int,
        n_samples: int,
        dtype: str = "float32",
        centre: bool = True,
        n_threads: int = 1,
        even: bool = False,
    ) -> PackedGrams:
        """Convert the kernels block by block; besides the result only a block per thread is held.

        With ``even`` matrices are added up while they are there: the first even combination takes no pass.
        """
        packed = lease((n_kernels, n_samples * (n_samples + 1) // 2), dtype, n_threads)
        found = diagonals(sources, n_kernels, n_samples, n_threads)
        shifts = np.zeros((n_kernels, n_samples))
        if centre:
            shifts = centring(sources, n_kernels, n_samples, n_threads)

        def convert(share: Sequence[tuple[Source, slice]]) -> None:
            for source, rows in share:
                source.pack(rows, shifts, packed)

        single, bulk = in_bulk(sources)
        sums = [np.zeros((n_samples, n_samples)) for _ in bulk if even]
        for one in bulk:
            one.pack_all(shifts, packed, n_threads, *sums)
        shared_out(convert, [(source, rows) for source in single for rows in source.blocks()], n_threads)
        sizes, roots = np.abs(found).max(axis=1), np.sqrt(np.maximum(found - 2.0 * shifts, 0.0))
        deferred = tuple(one for one in bulk if one.is_deferred)
        return cls(packed, shifts, sizes, roots, centre, n_threads, deferred, sums)

    def settle(self) -> bool:
        changed = [m for source in self.sources for m in source.settle()]
        for source in self.sources:
            for m, K in source.block(slice(None), slice(None), changed):
                _core.pack(np.ascontiguousarray(K), 0, self.shifts[m], self.packed[m])
        if changed:
            self.even.clear()
        return bool(changed)

    @property
    def n_kernels(self) -> int:
        return int(self.packed.shape[0])

    @property
    def n_samples(self) -> int:
        return int(self.shifts.shape[1])

    @property
    def errors(self) -> Vector:
        return of_arithmetic(self.sizes, self.n_samples)

    @property
    def is_rounded(self) -> bool:
        return self.packed.dtype == np.float32

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        shape = (self.n_samples, self.n_samples)
        K = np.empty(shape, dtype=self.packed.dtype) if out is None else out
        if self.even and np.all(eta == eta[0]):
            np.multiply(self.even.pop(), eta[0], out=K, casting="same_kind")
            _core.mirror(K)
        else:
            _core.combine(self.packed, np.ascontiguousarray(eta), K, self.n_threads)
        return K

    def subset(self, which: Indices) -> PackedGrams:
        """Return these kernels alone, in this order."""
        parts = {part: getattr(self, part)[which] for part in ("packed", "shifts", "sizes", "roots")}
        return replace(self, **parts, sources=(), even=[])

    def sample(self, rows: Indices) -> PackedGrams:
        """Return the kernels of these samples alone; rows ascend."""
        shape = (self.n_kernels, rows.size * (rows.size + 1) // 2)
        packed = np.empty(shape, dtype=self.packed.dtype)
        _core.take(self.packed, rows.astype(np.uint64), packed, self.n_threads)
        shifts, roots = self.shifts.take(rows, axis=1), self.roots.take(rows, axis=1)
        return replace(self, packed=packed, shifts=shifts, roots=roots, sources=(), even=[])

    def images(self, coef: AnyArray) -> AnyArray:
        return self._images(coef, None)

    def images_at(self, coef: AnyArray, where: AnyArray) -> AnyArray:
        return self._images(coef, where.reshape(self.n_samples, -1).astype(np.uint8))

    def _images(self, coef: AnyArray, where: AnyArray | None) -> AnyArray:
        columns = _columns(coef)
        out = np.empty((self.n_kernels, self.n_samples, columns.shape[1]))
        _core.images(self.packed, columns, out, self.n_threads, where)
        return out.reshape(self.n_kernels, *coef.shape)

    def image_within(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        if not self.is_rounded:
            return np.tensordot(eta, self.images(coef), axes=1), np.zeros(coef.shape)
        V = np.ascontiguousarray(_columns(coef).T)
        image, sizes = np.empty(V.shape), np.empty(V.shape)
        _core.image(self.packed, np.ascontiguousarray(eta), V, image, sizes, self.n_threads)
        image, sizes = image.T.reshape(coef.shape), sizes.T.reshape(coef.shape)
        return image, of_image(sizes, eta, coef)

    def energies(self, coef: AnyArray) -> Vector:
        out = np.empty(self.n_kernels)
        _core.energies(self.packed, _columns(coef), out, self.n_threads)
        return out

    def energy_errors(self, coef: AnyArray) -> Vector:
        return of_energies(self.roots, coef) if self.is_rounded else np.zeros(self.n_kernels)

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        if not self.centred:
            return np.zeros(coef.shape[1:])
        return np.asarray((eta @ self.shifts) @ coef)


def _columns(coef: AnyArray) -> Matrix:
    return np.ascontiguousarray(coef.reshape(coef.shape[0], -1), dtype=np.float64)
