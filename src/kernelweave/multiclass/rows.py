"""Rows of M kernels, which is all that the solvers read of them, in three ways.

`StoredRows` holds the matrices, `FeatureRows` explicit features, and `ComputedRows` computes every row when
it is asked for, so that memory grows with the number of samples and not with the number of pairs.
`build_kernel_rows` stores what the user gave as matrices, and what takes longer to compute than to read.
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
from kernelweave.gram import KernelSource
from kernelweave.gram.memory import FLOAT64_BYTES, budget, human
from kernelweave.gram.rounding import DOUBLE, SINGLE, arithmetic_errors
from kernelweave.gram.source import NewRows
from kernelweave.kernels.groups import CompiledGroup


class KernelRows(Protocol):
    """M kernels of the n training samples, a few rows at a time; nothing need hold the full matrices."""

    @property
    def n_kernels(self) -> int: ...

    @property
    def n_samples(self) -> int: ...

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
        """How many samples a block may have, so that its combined matrix fits into memory."""
        ...

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        """Return K_m[rows, columns] V for every m, of shape (M, rows, columns of V), in float64."""
        ...

    def square_block(self, places: Indices) -> AnyArray:
        """Return K_m[places, places] for every m, of shape (M, b, b); read only."""
        ...

    def combined_block(self, eta: Vector, places: Indices) -> AnyArray:
        """Return Σ eta_m K_m[places, places], float32 or float64."""
        ...

    def squared_norms(self, columns: Indices, V: Matrix) -> Vector:
        """Return tr(V'K_m[columns, columns]V) for every m."""
        ...

    def weighted_products(self, eta: Vector, columns: Indices, V: Matrix) -> Matrix:
        """Return Σ eta_m K_m[:, columns] V."""
        ...

    @property
    def is_rounded(self) -> bool:
        """Whether values are computed in float32."""
        ...

    def in_float64(self) -> KernelRows:
        """Return the same kernels with nothing rounded to float32."""
        ...


def build_kernel_rows(
    fitted: FittedKernels, n_classes: int, memory_limit: float | None = None, n_threads: int = 1
) -> KernelRows:
    """Return the training kernels as rows: stored where that pays and fits into memory, else computed.

    Matrices of the user stay where they are. Raises MemoryError where not even what a solver holds beside the
    kernels would fit.
    """
    limit, n, M = budget(memory_limit), fitted.n_samples, len(fitted)
    # A solver holds K_m A, a change of it and a copy on the way.
    products = 3 * M * n * n_classes * FLOAT64_BYTES
    smallest_block = 128  # smaller blocks of samples are left before anything is gained on them
    needed = products + FLOAT64_BYTES * smallest_block**2
    if needed > limit:
        raise MemoryError(
            f"{M} kernels of {n} samples with {n_classes} classes need {human(needed)} even when rows are "
            f"computed on demand, but {human(limit)} may be used: raise memory_limit, use fewer samples, or "
            "explicit features with partial_fit."
        )
    block = int(np.sqrt((limit - products) / FLOAT64_BYTES))
    if fitted.holds_matrices:
        return StoredRows(fitted.given_matrices(n_threads), block, n_threads)
    sources = fitted.sources()
    costly = not all(source.group.is_cheap for source in sources)
    stored = FLOAT64_BYTES * M * n * n
    if costly and products + stored <= limit:
        with blas_threads(1):
            K = dense_kernels(sources, M, n)
        return StoredRows(K, int(np.sqrt((limit - products - stored) / FLOAT64_BYTES)) or n, n_threads)
    return ComputedRows(fitted, n_threads, block)


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
    """Kernels held as float64 matrices: an array (M, n, n), or a list of matrices read where they are.

    Parameters
    ----------
    K : the matrices.
    largest_block : most samples of a block; None is all.
    n_threads : threads of a pass.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.multiclass.rows import StoredRows
    >>> StoredRows(np.eye(3)[None]).products(np.array([0, 1]), np.array([1]), np.ones((1, 2)))
    array([[[0., 0.],
            [1., 1.]]])

    """

    K: Sequence[Matrix] | AnyArray = field(repr=False)
    largest_block: int | None = None
    n_threads: int = 1
    unit_roundoff: float = field(default=DOUBLE, init=False)
    is_rounded: bool = field(default=False, init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.K)

    @property
    def n_samples(self) -> int:
        return int(self.K[0].shape[0])

    @cached_property
    def diagonals(self) -> Matrix:
        return np.array([np.diagonal(K) for K in self.K])

    @property
    def entry_errors(self) -> Vector:
        return arithmetic_errors(np.abs(self.diagonals).max(axis=1), self.n_samples)

    @property
    def max_block(self) -> int:
        return min(self.n_samples, self.largest_block or self.n_samples)

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        out = np.empty((self.n_kernels, rows.size, V.shape[1]))
        if _are_all(columns, self.n_samples):
            for m, K in enumerate(self.K):
                out[m] = (K if _are_all(rows, self.n_samples) else K[rows]) @ V
        elif _are_all(rows, self.n_samples):
            for m, K in enumerate(self.K):  # rows of K lie in one piece, its columns do not
                out[m] = (V.T @ K[columns]).T
        else:
            for m, K in enumerate(self.K):
                out[m] = K[rows[:, None], columns] @ V
        return out

    def square_block(self, places: Indices) -> AnyArray:
        return np.array([self._among(K, places) for K in self.K])

    def combined_block(self, eta: Vector, places: Indices) -> AnyArray:
        total = np.zeros((places.size, places.size))
        for weight, K in zip(eta, self.K, strict=True):
            if weight:
                total += weight * self._among(K, places)
        return total

    def squared_norms(self, columns: Indices, V: Matrix) -> Vector:
        return np.asarray(np.tensordot(self.products(columns, columns, V), V, 2))

    def weighted_products(self, eta: Vector, columns: Indices, V: Matrix) -> Matrix:
        every = np.arange(self.n_samples)
        return np.asarray(np.tensordot(eta, self.products(every, columns, V), 1))

    def in_float64(self) -> StoredRows:
        return self

    def _among(self, K: Matrix, places: Indices) -> Matrix:
        return K if _are_all(places, self.n_samples) else K[places[:, None], places]


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
    max_block: int = 4096
    unit_roundoff: float = field(default=DOUBLE, init=False)
    is_rounded: bool = field(default=False, init=False)

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

    def combined_block(self, eta: Vector, places: Indices) -> AnyArray:
        weights = np.repeat(eta, np.diff(self.offsets))
        used = np.flatnonzero(weights)
        P = self.Phi[np.ix_(places, used)]
        return (P * weights[used]) @ P.T

    def squared_norms(self, columns: Indices, V: Matrix) -> Vector:
        return np.asarray(np.tensordot(self.products(columns, columns, V), V, 2))

    def weighted_products(self, eta: Vector, columns: Indices, V: Matrix) -> Matrix:
        every = np.arange(self.n_samples)
        return np.asarray(np.tensordot(eta, self.products(every, columns, V), 1))

    def in_float64(self) -> FeatureRows:
        return self

    def _by_kernel(self, rows: Indices) -> list[Matrix]:
        Phi = self.Phi if _are_all(rows, self.n_samples) else self.Phi[rows]
        return [Phi[:, start:stop] for start, stop in pairwise(self.offsets)]


def _are_all(places: Indices, n_samples: int) -> bool:
    return places.size == n_samples and bool((places == np.arange(n_samples)).all())


class ComputedRows:
    """Rows computed anew for every use, by the compiled loops where they know the kernel.

    Values are computed in float32 where that leaves enough of them: centring, for one, may leave little of the
    numbers that were rounded. Such kernels are computed in float64.

    Parameters
    ----------
    fitted : the kernels and their training samples; nothing else is held.
    n_threads : threads of a pass; they do not change a digit.
    max_block : most samples of a block; None is all.
    dtype : precision of the values: "float32" where it serves, or "float64" for all.
    largest_error : most that a value in float32 may be off, of the largest entry of its scaled kernel.
    """

    def __init__(
        self,
        fitted: FittedKernels,
        n_threads: int = 1,
        max_block: int | None = None,
        dtype: str = "float32",
        largest_error: float = 1e-5,
    ) -> None:
        self.n_kernels, self.n_samples, self.n_threads = len(fitted), fitted.n_samples, n_threads
        self.max_block = min(max_block or self.n_samples, self.n_samples)
        self._fitted, self.dtype = fitted, np.dtype(dtype)
        self._given = fitted.sources()
        self.entry_errors, self._sources = np.zeros(self.n_kernels), []
        for source in self._given:
            errors = self._errors_in_float32(source)
            sizes = np.abs(self.diagonals[source.kernels]).max(axis=1)
            rounds = self.dtype == np.float32 and source.fits_float32()
            rounds = rounds and bool((errors <= largest_error * sizes).all())
            self._sources.append(source.in_dtype("float32") if rounds else source)
            exact = self._errors_in_float64(source, sizes)
            self.entry_errors[source.kernels] = np.maximum(errors, exact) if rounds else exact

    @property
    def is_rounded(self) -> bool:
        return bool(self.dtype == np.float32)

    @property
    def unit_roundoff(self) -> float:
        return SINGLE if self.is_rounded else DOUBLE

    @cached_property
    def diagonals(self) -> Matrix:
        found = np.zeros((self.n_kernels, self.n_samples))
        for source in self._given:
            for m, diagonal in source.diagonals():
                found[m] = diagonal
        return found

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        out = np.zeros((self.n_kernels, rows.size, V.shape[1]))
        with blas_threads(1):
            for source in self._sources:
                if source.samples is None and not _are_all(rows, self.n_samples):
                    some = NewRows(source.rows[rows], tuple(form.at(rows) for form in source.forms))
                    out[source.kernels] = source.cross_products(some, columns, V, self.n_threads)
                elif source.samples is None:
                    source.add_products(columns, V, out, self.n_threads)
                else:
                    every = np.zeros((self.n_kernels, self.n_samples, V.shape[1]))
                    source.add_products(columns, V, every, self.n_threads)
                    out[source.kernels] = every[source.kernels][:, rows]
        return out

    def square_block(self, places: Indices) -> AnyArray:
        out = np.empty((self.n_kernels, places.size, places.size), dtype=self.dtype)
        with blas_threads(1):
            for source in self._sources:
                for m, K in source.block(places, places):
                    out[m] = K
        return out

    def combined_block(self, eta: Vector, places: Indices) -> AnyArray:
        total = np.zeros((places.size, places.size), dtype=self.dtype)
        with blas_threads(1):
            for source in self._sources:
                if not eta[source.kernels].any():
                    continue
                # The compiled loops add to a matrix of the type of their rows.
                alike = source.rows.dtype == self.dtype or not isinstance(source.group, CompiledGroup)
                part = total if alike else np.zeros(total.shape)
                source.add_weighted_block(places, places, eta, part, self.n_threads)
                if part is not total:
                    total += part
        return total

    def squared_norms(self, columns: Indices, V: Matrix) -> Vector:
        out = np.zeros(self.n_kernels)
        with blas_threads(1):
            for source in self._sources:
                out[source.kernels] = 2.0 * source.energies(columns, V, self.n_threads)
        return np.maximum(out, 0.0)

    def weighted_products(self, eta: Vector, columns: Indices, V: Matrix) -> Matrix:
        out = np.zeros((self.n_samples, V.shape[1]))
        with blas_threads(1):
            for source in self._sources:
                if eta[source.kernels].any():
                    source.add_products(columns, V, out, self.n_threads, eta)
        return out

    def in_float64(self) -> ComputedRows:
        return ComputedRows(self._fitted, self.n_threads, self.max_block, "float64")

    def _errors_in_float32(self, source: KernelSource) -> Vector:
        """Bound what rounding does to scaled values: it is scaled as they are, and centring takes none of it."""
        errors = source.group.errors_in_float32(source.rows)
        return np.array(
            [e * float(np.abs(f.factors).max()) ** 2 for e, f in zip(errors, source.forms, strict=True)]
        )

    def _errors_in_float64(self, source: KernelSource, sizes: Vector) -> Vector:
        """Return the same for double precision, where values are off by as much as those before centring are."""
        before = np.abs(source.group.diagonals(source.rows)).max(axis=1, initial=0.0)
        scaled = [b * float(np.abs(f.factors).max()) ** 2 for b, f in zip(before, source.forms, strict=True)]
        return arithmetic_errors(np.maximum(scaled, sizes), self.n_samples)
