"""Kernels in which every sample has a weight of its own, and which nobody writes down."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.gram.lazy import LazyGrams
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.rounding import of_arithmetic
from kernelweave.gram.source import Source


@dataclass(frozen=True)
class LocalGrams:
    r"""The stack diag(e_m) K_m diag(e_m), with one row e_m of weights per sample for every kernel.

    With weights 0 and 1 it switches kernels off sample by sample; with others it is a gating. The kernels
    themselves stay as they are packed: weights are applied while they are read.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.adaptive.local_grams import LocalGrams
    >>> from kernelweave.gram import MatrixSource, PackedGrams
    >>> K = np.full((2, 2), 4.0)
    >>> packed = PackedGrams.pack([MatrixSource([K])], 1, 2, "float64", centre=False)
    >>> LocalGrams(packed, np.array([[1.0, 0.5]])).combine(np.ones(1))
    array([[4., 2.],
           [2., 1.]])

    """

    packed: PackedGrams = field(repr=False)
    local: Matrix = field(repr=False)

    @property
    def n_kernels(self) -> int:
        return self.packed.n_kernels

    @property
    def n_samples(self) -> int:
        return self.packed.n_samples

    @property
    def n_threads(self) -> int:
        return self.packed.n_threads

    @property
    def sizes(self) -> Vector:
        return np.asarray(self.packed.sizes * _largest(self.local) ** 2)

    @property
    def errors(self) -> Vector:
        return of_arithmetic(self.sizes, self.n_samples)

    @property
    def shifts(self) -> Matrix:
        return np.zeros((self.n_kernels, self.n_samples))

    @property
    def is_rounded(self) -> bool:
        return self.packed.is_rounded

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        shape = (self.n_samples, self.n_samples)
        K = np.empty(shape, dtype=self.packed.packed.dtype) if out is None else out
        _core.combine_local(self.packed.packed, np.ascontiguousarray(eta), self.local, K, self.n_threads)
        return K

    def reach(self, coef: AnyArray) -> AnyArray:
        """Return K_m (e_m∘v) for every m: what each kernel says of a sample before its own weight."""
        columns = np.ascontiguousarray(coef.reshape(coef.shape[0], -1), dtype=np.float64)
        out = np.empty((self.n_kernels, self.n_samples, columns.shape[1]))
        _core.reach_local(self.packed.packed, columns, self.local, out, self.n_threads)
        return out.reshape(self.n_kernels, *coef.shape)

    def images(self, coef: AnyArray) -> AnyArray:
        return _weighted(self.local, self.reach(coef))

    def energies(self, coef: AnyArray) -> Vector:
        return _energies(coef, self.images(coef))

    def subset(self, which: Indices) -> LocalGrams:
        """Return these kernels alone, in this order."""
        return LocalGrams(self.packed.subset(which), np.ascontiguousarray(self.local[which]))

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:  # noqa: ARG002 - nothing was removed
        return np.zeros(coef.shape[1:])


class LazyLocalGrams(LazyGrams):
    """The same for kernels that are made again for every pass."""

    def __init__(self, grams: LazyGrams, local: Matrix) -> None:
        super().__init__(
            [LocalSource(source, local) for source in grams.sources],
            grams.n_kernels,
            grams.n_samples,
            dtype=grams.dtype.name,
            n_threads=grams.n_threads,
            sizes=np.asarray(grams.sizes * _largest(local) ** 2),
        )
        self._grams, self.local = grams, local

    def reach(self, coef: AnyArray) -> AnyArray:
        """Return K_m (e_m∘v) for every m: what each kernel says of a sample before its own weight."""
        V = coef.reshape(self.n_samples, -1)
        out = np.empty((self.n_kernels, *V.shape))
        everyone = slice(0, self.n_samples)
        for source in self._grams.sources:
            for rows in source.blocks():
                for m, K in source.block(rows, everyone):
                    out[m, rows] = K @ (self.local[m][:, None] * V)
        return out.reshape(self.n_kernels, *coef.shape)


class LocalSource(Source):
    """A source whose samples have weights; ``local`` has one row of them per kernel of the stack."""

    def __init__(self, source: Source, local: Matrix) -> None:
        super().__init__(source.kernels, source.n_samples)
        self._source, self._local = source, local

    @property
    def is_whole(self) -> bool:
        return self._source.is_whole

    def check(self) -> None:
        self._source.check()

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        for m, K in self._source.block(rows, columns, which):
            weights = self._local[m]
            yield m, K * weights[rows, None] * weights[columns]

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m, diagonal in self._source.diagonals():
            yield m, diagonal * self._local[m] ** 2


def localised(stack: GramStack, local: Matrix) -> LocalGrams | LazyLocalGrams:
    """Return the stack with weights per sample, applied on the fly; it must not have been centred."""
    local = np.ascontiguousarray(local, dtype=np.float64)
    if isinstance(stack, PackedGrams) and not stack.centred:
        return LocalGrams(stack, local)
    if isinstance(stack, LazyGrams) and not stack.centred:
        return LazyLocalGrams(stack, local)
    raise TypeError(f"Weights per sample need uncentred kernels, packed or lazy; got {stack!r}.")


def _largest(local: Matrix) -> Vector:
    return np.asarray(np.abs(local).max(axis=1))


def _weighted(local: Matrix, images: AnyArray) -> AnyArray:
    return images * local.reshape(*local.shape, *([1] * (images.ndim - 2)))


def _energies(coef: AnyArray, images: AnyArray) -> Vector:
    return np.asarray(0.5 * images.reshape(images.shape[0], -1) @ coef.ravel())
