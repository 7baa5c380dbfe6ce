"""Kernels in which every sample has a weight of its own; the weighted matrices are never written down."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.dense import DenseGrams
from kernelweave.gram.packed import PackedGrams, as_columns, as_rows
from kernelweave.gram.plain import PlainGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.storage import Storage
from kernelweave.gram.streamed import StreamedGrams


def as_weightable(grams: GramStack) -> GramStack:
    """Return the kernels in a form to which weights per sample can be applied while they are read."""
    return grams.packed("float64") if isinstance(grams, DenseGrams) else grams


def weighted_locally(grams: GramStack, local: Matrix) -> LocalGrams | StreamedLocalGrams:
    """Return the stack diag(e_m) K_m diag(e_m), with e_m the rows of ``local``; it must be uncentred."""
    local = np.ascontiguousarray(local, dtype=np.float64)
    if isinstance(grams, PackedGrams) and not grams.centre:
        return LocalGrams(grams, local)
    if isinstance(grams, StreamedGrams):
        return StreamedLocalGrams(grams, local)
    raise TypeError(f"Weights per sample need uncentred kernels, packed or streamed; got {grams!r}.")


@dataclass(frozen=True)
class LocalGrams(PlainGrams):
    r"""The stack diag(e_m) K_m diag(e_m), with one row e_m of weights per sample for every kernel.

    With weights 0 and 1 it switches kernels off sample by sample; with others it is a gating. The kernels
    themselves stay as they are packed: weights are applied while they are read.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.adaptive.local_grams import LocalGrams
    >>> from kernelweave.gram import DenseGrams
    >>> packed = DenseGrams([np.full((2, 2), 4.0)]).packed("float64")
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
        return _largest_entries(self.packed.sizes, self.local)

    @property
    def is_rounded(self) -> bool:
        return self.packed.is_rounded

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        shape = (self.n_samples, self.n_samples)
        K = np.empty(shape, dtype=self.packed.packed.dtype) if out is None else out
        _core.combine_local(self.packed.packed, np.ascontiguousarray(eta), self.local, K, self.n_threads)
        return K

    def column_weighted_matvecs(self, coef: AnyArray) -> AnyArray:
        """Return K_m diag(e_m) V for every m: f_m of every sample as if its own weight were 1."""
        V = as_rows(coef)
        out = np.empty((self.n_kernels, *V.shape))
        _core.column_weighted_matvecs(self.packed.packed, V, self.local, out, self.n_threads)
        return as_columns(out, coef)

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:  # noqa: ARG002
        rows = self.local.reshape(*self.local.shape, *[1] * (coef.ndim - 1))
        return rows * self.column_weighted_matvecs(coef)

    @property
    def storage(self) -> Storage:
        return self.packed.storage

    def sample(self, rows: Indices) -> LocalGrams:
        return LocalGrams(self.packed.sample(rows), np.ascontiguousarray(self.local[:, rows]))

    def subset(self, which: Indices) -> LocalGrams:
        return LocalGrams(self.packed.subset(which), np.ascontiguousarray(self.local[which]))


class StreamedLocalGrams(StreamedGrams):
    """The same for kernels whose values are computed again in every pass."""

    def __init__(self, grams: StreamedGrams, local: Matrix) -> None:
        weighted = [source.weighted(local) for source in grams.given]
        dtype, n_threads = grams.dtype.name, grams.n_threads
        super().__init__(weighted, grams.n_kernels, grams.n_samples, dtype=dtype, n_threads=n_threads)
        self._unweighted, self.local = grams, local

    def column_weighted_matvecs(self, coef: AnyArray) -> AnyArray:
        """Return K_m diag(e_m) V for every m: f_m of every sample as if its own weight were 1."""
        V = coef.reshape(self.n_samples, -1)
        out = np.zeros((self.n_kernels, *V.shape))
        every = np.arange(self.n_samples)
        for source in self._unweighted.sources:
            source.add_products(every, self.local[:, :, None] * V, out, self.n_threads)
        return out.reshape(self.n_kernels, *coef.shape)


def _largest_entries(sizes: Vector, local: Matrix) -> Vector:
    """Bound the weighted diagonals by the largest entry of each kernel and its largest weight."""
    return np.asarray(sizes * np.abs(local).max(axis=1) ** 2)
