"""Rows of M kernels, which is all that the solvers read of them, in three ways.

`StoredRows` holds the matrices, `FeatureRows` explicit features, and `ComputedRows` computes every row when
it is asked for, so that memory grows with the number of samples and not with the number of pairs.
`build_kernel_rows` takes the first that fits into memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from kernelweave import _core
from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import KernelSource, StreamedGrams
from kernelweave.gram.memory import budget, human
from kernelweave.gram.rounding import DOUBLE, SINGLE, arithmetic_errors
from kernelweave.gram.source import NewRows


class KernelRows(Protocol):
    """M kernels of the n training samples, a few rows at a time; nothing need hold the full matrices."""

    @property
    def n_kernels(self) -> int: ...

    @property
    def n_samples(self) -> int: ...

    @property
    def is_stored(self) -> bool:
        """Whether all entries are in memory, so that a block of all samples costs nothing."""
        ...

    @property
    def diagonals(self) -> Matrix:
        """k_m(x_i, x_i), of shape (M, n)."""
        ...

    @property
    def entry_errors(self) -> Vector:
        """Typical rounding error of an entry of each kernel, independent from entry to entry."""
        ...

    @property
    def unit_roundoff(self) -> float:
        """Half a unit in the last place of the numbers multiplied: an error that entries share."""
        ...

    @property
    def max_block(self) -> int:
        """How many samples a block may have, so that its kernels fit into memory."""
        ...

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        """Return K_m[rows, columns] V for every m, of shape (M, rows, columns of V), in float64."""
        ...

    def square_block(self, places: Indices) -> AnyArray:
        """Return K_m[places, places] for every m, of shape (M, b, b); read only."""
        ...


def build_kernel_rows(
    fitted: FittedKernels, n_classes: int, memory_limit: float | None = None, n_threads: int = 1
) -> KernelRows:
    """Return the training kernels as rows: stored where they fit into memory, else computed on demand.

    Raises MemoryError where not even what a solver holds beside them would fit.
    """
    limit, n, M = budget(memory_limit), fitted.n_samples, len(fitted)
    products = 3 * M * n * n_classes * 8  # K_m A of a solver, a change of it, and a copy on the way
    if products + M * n * n * 8 <= limit:
        with blas_threads(1):
            return StoredRows(dense_kernels(fitted.sources(), M, n))
    smallest_block = 128  # smaller blocks of samples are left before anything is gained on them
    needed = products + 8 * M * smallest_block**2
    if needed > limit:
        raise MemoryError(
            f"{M} kernels of {n} samples with {n_classes} classes need {human(needed)} even when rows are "
            f"computed on demand, but {human(limit)} may be used: raise memory_limit, use fewer samples, or "
            "explicit features with partial_fit."
        )
    largest_block = 3072  # larger blocks take longer than they save
    size = int(np.sqrt((limit - products) / (8 * M)))  # twice the float32 entries of a block
    return ComputedRows(fitted, n_threads, min(size, largest_block))


def dense_kernels(sources: Sequence[KernelSource], n_kernels: int, n_samples: int) -> AnyArray:
    """Return all kernels as one float64 array (M, n, n), exactly symmetric."""
    K = np.empty((n_kernels, n_samples, n_samples))
    every = slice(0, n_samples)
    for source in sources:
        for m, values in source.block(every, every):
            K[m] = values
    for matrix in K:  # the two sides of the diagonal may round differently
        _core.mirror(matrix)
    return K


def check_diagonals(diagonals: Matrix, start: int = 0) -> None:
    """Raise ValueError where k_m(x, x) = 0 for all m; the first sample is number ``start`` of its batch."""
    empty = np.flatnonzero(~(diagonals > 0.0).any(axis=0))
    if empty.size:
        raise ValueError(
            f"Sample {start + empty[0]} has k(x, x) = 0 under every kernel ({empty.size} such in all), so "
            "nothing can tell its class; drop it, or add a kernel with an offset."
        )


@dataclass(frozen=True)
class StoredRows:
    """Kernels held as one float64 array (M, n, n).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.multiclass.rows import StoredRows
    >>> StoredRows(np.eye(3)[None]).products(np.array([0, 1]), np.array([1]), np.ones((1, 2)))
    array([[[0., 0.],
            [1., 1.]]])

    """

    K: AnyArray = field(repr=False)
    is_stored: bool = field(default=True, init=False)
    unit_roundoff: float = field(default=DOUBLE, init=False)

    @property
    def n_kernels(self) -> int:
        return int(self.K.shape[0])

    @property
    def n_samples(self) -> int:
        return int(self.K.shape[1])

    @cached_property
    def diagonals(self) -> Matrix:
        return np.ascontiguousarray(np.diagonal(self.K, axis1=1, axis2=2))

    @property
    def entry_errors(self) -> Vector:
        return arithmetic_errors(np.abs(self.diagonals).max(axis=1), self.n_samples)

    @property
    def max_block(self) -> int:
        return self.n_samples

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        # Zeros elsewhere in V: full rows of K lie in one piece, some of their columns would be copied first.
        full = np.zeros((self.n_samples, V.shape[1]))
        full[columns] = V
        K = self.K if _are_all(rows, self.n_samples) else self.K[:, rows]
        return np.asarray(K @ full)

    def square_block(self, places: Indices) -> AnyArray:
        if _are_all(places, self.n_samples):
            return self.K
        return np.ascontiguousarray(self.K[:, places[:, None], places])


@dataclass(frozen=True)
class FeatureRows:
    """Kernels k_m(x, z) = φ_m(x)'φ_m(z) of explicit features: a product costs O(features) per sample.

    Parameters
    ----------
    Phi : features (n_samples, n_features), those of kernel m in the columns [offsets_m, offsets_m+1).
    offsets : where the features of each kernel start; the last entry is their number.
    max_block : most samples of a block; larger ones cost more to form than they save.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.multiclass.rows import FeatureRows
    >>> rows = FeatureRows(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([0, 1, 2]))
    >>> rows.square_block(np.arange(2))[1]
    array([[4., 2.],
           [2., 1.]])

    """

    Phi: AnyArray = field(repr=False)
    offsets: Indices
    max_block: int = 1024
    is_stored: bool = field(default=False, init=False)
    unit_roundoff: float = field(default=DOUBLE, init=False)

    def check(self, start: int = 0) -> None:
        """Raise ValueError where features are not finite, or all zero; ``start`` as in `check_diagonals`."""
        if not np.isfinite(self.Phi).all():
            raise ValueError("The features of a sample are not finite; standardise the columns.")
        check_diagonals(self.diagonals, start)

    @property
    def n_kernels(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_samples(self) -> int:
        return int(self.Phi.shape[0])

    @cached_property
    def diagonals(self) -> Matrix:
        return np.array([np.einsum("id,id->i", P, P) for P in self._by_kernel(np.arange(self.n_samples))])

    @property
    def entry_errors(self) -> Vector:
        return arithmetic_errors(self.diagonals.max(axis=1), int(np.diff(self.offsets).max()))

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        left, right = self._by_kernel(rows), self._by_kernel(columns)
        return np.array([P @ (Q.T @ V) for P, Q in zip(left, right, strict=True)])

    def square_block(self, places: Indices) -> AnyArray:
        return np.array([P @ P.T for P in self._by_kernel(places)])

    def _by_kernel(self, rows: Indices) -> list[Matrix]:
        Phi = self.Phi if _are_all(rows, self.n_samples) else self.Phi[rows]
        return [Phi[:, start:stop] for start, stop in pairwise(self.offsets)]


def _are_all(places: Indices, n_samples: int) -> bool:
    return places.size == n_samples and bool((places == np.arange(n_samples)).all())


class ComputedRows:
    """Rows computed anew for every use: in float32 where the compiled loops know the kernel, else in float64.

    Parameters
    ----------
    fitted : the kernels and their training samples; nothing else is held.
    n_threads : threads of a pass.
    max_block : most samples of a block.
    """

    is_stored = False
    unit_roundoff = SINGLE

    def __init__(self, fitted: FittedKernels, n_threads: int = 1, max_block: int = 3072) -> None:
        self.n_kernels, self.n_samples, self.n_threads = len(fitted), fitted.n_samples, n_threads
        self.max_block = max_block
        self._grams = StreamedGrams(fitted.sources(), self.n_kernels, self.n_samples, dtype="float32")

    @property
    def diagonals(self) -> Matrix:
        return self._grams.diagonals

    @cached_property
    def entry_errors(self) -> Vector:
        diagonals = np.abs(self.diagonals)
        errors = arithmetic_errors(diagonals.max(axis=1), self.n_samples)
        for source in self._grams.given:
            before = np.abs(source.group.diagonals(source.rows)).max(axis=1, initial=0.0)
            after = diagonals[source.kernels].max(axis=1)
            scale = np.divide(after, before, out=np.zeros_like(after), where=before > 0.0)
            rounding = scale * source.group.errors_in_float32(source.rows)
            errors[source.kernels] = np.maximum(errors[source.kernels], rounding)
        return errors

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        out = np.empty((self.n_kernels, rows.size, V.shape[1]))
        with blas_threads(1):
            for source in self._grams.sources:
                some = NewRows(source.rows[rows], tuple(form.at(rows) for form in source.forms))
                out[source.kernels] = source.cross_products(some, columns, V, self.n_threads)
        return out

    def square_block(self, places: Indices) -> AnyArray:
        out = np.empty((self.n_kernels, places.size, places.size), dtype=np.float32)
        with blas_threads(1):
            for source in self._grams.sources:
                for m, K in source.block(places, places):
                    out[m] = K
        return out
