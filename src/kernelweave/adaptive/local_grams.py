"""Kernels in which every sample has a weight of its own; the weighted matrices are never written down."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

import numpy as np
from joblib import effective_n_jobs

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.bank.gram_bank import GramBank
from kernelweave.bank.protocol import FittedKernels
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.training import hold
from kernelweave.gram.blockwise import BlockGrams
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.rounding import arithmetic_errors
from kernelweave.gram.source import Source


def hold_uncentred(model: MKLModel, fitted: FittedKernels, n_problems: int) -> GramBank:
    """Store the kernels of a model as local weights need them.

    Elsewhere storage centres kernels, because an SVM with an intercept is blind to that. Local weights
    scale a sample's distance from the origin, so the origin must be the user's.
    """
    return hold(
        fitted,
        centre=False,
        tol=model.tol,
        dtype="float64",
        memory_limit=model.memory_limit,
        n_threads=1 if n_problems > 1 else effective_n_jobs(model.n_jobs),
    )


def weighted_locally(stack: GramStack, local: Matrix) -> LocalGrams | LazyLocalGrams:
    """Return the stack diag(e_m) K_m diag(e_m), with e_m the rows of ``local``; it must be uncentred."""
    local = np.ascontiguousarray(local, dtype=np.float64)
    if isinstance(stack, PackedGrams) and not stack.centred:
        return LocalGrams(stack, local)
    if isinstance(stack, BlockGrams) and not stack.centred:
        return LazyLocalGrams(stack, local)
    raise TypeError(f"Weights per sample need uncentred kernels, packed or lazy; got {stack!r}.")


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
        return _largest_entries(self.packed.sizes, self.local)

    @property
    def errors(self) -> Vector:
        return arithmetic_errors(self.sizes, self.n_samples)

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

    def column_weighted_matvecs(self, coef: AnyArray) -> AnyArray:
        """Return K_m diag(e_m) V for every m: f_m of every sample as if its own weight were 1."""
        V = np.ascontiguousarray(coef.reshape(coef.shape[0], -1), dtype=np.float64)
        out = np.empty((self.n_kernels, *V.shape))
        _core.reach_local(self.packed.packed, V, self.local, out, self.n_threads)
        return out.reshape(self.n_kernels, *coef.shape)

    def images(self, coef: AnyArray) -> AnyArray:
        rows = self.local.reshape(*self.local.shape, *[1] * (coef.ndim - 1))
        return rows * self.column_weighted_matvecs(coef)

    def energies(self, coef: AnyArray) -> Vector:
        return np.asarray(0.5 * self.images(coef).reshape(self.n_kernels, -1) @ coef.ravel())

    def subset(self, which: Indices) -> LocalGrams:
        """Return these kernels alone, in this order."""
        return LocalGrams(self.packed.subset(which), np.ascontiguousarray(self.local[which]))

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:  # noqa: ARG002 - nothing was removed
        return np.zeros(coef.shape[1:])


class LazyLocalGrams(BlockGrams):
    """The same for kernels whose rows are computed again for every pass."""

    def __init__(self, grams: BlockGrams, local: Matrix) -> None:
        super().__init__(
            [LocalSource(source, local) for source in grams.sources],
            grams.n_kernels,
            grams.n_samples,
            dtype=grams.dtype.name,
            n_threads=grams.n_threads,
            sizes=_largest_entries(grams.sizes, local),
        )
        self._grams, self.local = grams, local

    def column_weighted_matvecs(self, coef: AnyArray) -> AnyArray:
        """Return K_m diag(e_m) V for every m: f_m of every sample as if its own weight were 1."""
        V = coef.reshape(self.n_samples, -1)
        out = np.empty((self.n_kernels, *V.shape))
        for source in self._grams.sources:
            for rows in source.blocks():
                for m, K in source.block(rows, slice(0, self.n_samples)):
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


def _largest_entries(sizes: Vector, local: Matrix) -> Vector:
    """Bound the weighted diagonals by the largest entry of each kernel and its largest weight."""
    return np.asarray(sizes * np.abs(local).max(axis=1) ** 2)
