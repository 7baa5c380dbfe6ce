"""Rows of M kernels, which is all that the solvers read of them, in three ways.

`StoredRows` holds the matrices, `FeatureRows` explicit features, and `ComputedRows` computes every row when
it is asked for, so that memory grows with the number of samples and not with the number of pairs.
`build_kernel_rows` takes the first that fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from kernelweave import _core
from kernelweave._threads import blas_threads, shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import BlockSource
from kernelweave.gram.memory import budget, human
from kernelweave.gram.rounding import DOUBLE, SINGLE, arithmetic_errors
from kernelweave.kernels.base import Formula
from kernelweave.views.tables import is_sparse

# Functions of a kernel's argument, in the order of their numbers in `_core.kernel_block`.
FUNCTIONS = ("identity", "power", "exp")


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


def dense_kernels(sources: Sequence[BlockSource], n_kernels: int, n_samples: int) -> AnyArray:
    """Return all kernels as one float64 array (M, n, n), exactly symmetric."""
    K = np.empty((n_kernels, n_samples, n_samples))
    for source in sources:
        for rows in source.row_blocks():
            for m, values in source.block(rows, slice(0, n_samples)):
                K[m, rows] = values
    for matrix in K:  # blocks on the two sides of the diagonal may round differently
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
    n_threads : threads that compute tiles.
    max_block : most samples of a block.
    tile : rows and columns computed at a time. Their inner products, 1 MB by default, stay in cache until all
        kernels of the tile are computed.
    """

    is_stored = False
    unit_roundoff = SINGLE

    def __init__(
        self,
        fitted: FittedKernels,
        n_threads: int = 1,
        max_block: int = 3072,
        tile: tuple[int, int] = (256, 1024),
    ) -> None:
        self.n_kernels, self.n_samples, self.n_threads = len(fitted), fitted.n_samples, n_threads
        self.max_block, self.tile = max_block, tile
        formula = getattr(fitted, "formula", lambda m: None)  # noqa: ARG005 - given matrices have none
        members: dict[int, list[tuple[int, Formula, Vector]]] = {}
        for m in range(self.n_kernels):
            found = formula(m)
            if found is None or is_sparse(fitted.training(found[0])):  # type: ignore[attr-defined]
                continue
            if found[1].argument in ("inner", "sqeuclidean"):  # both come from one matrix product
                members.setdefault(found[0], []).append((m, *found[1:]))
        self._blocks = [
            Float32Block.of(fitted.training(place), kernels)  # type: ignore[attr-defined]
            for place, kernels in members.items()
        ]
        self._sources = fitted.sources()
        self._others = set(range(self.n_kernels)) - {m for block in self._blocks for m in block.kernels}

    @cached_property
    def diagonals(self) -> Matrix:
        values = np.zeros((self.n_kernels, self.n_samples))
        for source in self._sources:
            for m, diagonal in source.diagonals():
                values[m] = diagonal
        return values

    @cached_property
    def entry_errors(self) -> Vector:
        diagonals = np.abs(self.diagonals)
        errors = arithmetic_errors(diagonals.max(axis=1), self.n_samples)
        # Entries of the largest row against an average column: a typical error, or more.
        sizes = np.sqrt(diagonals.max(axis=1) * diagonals.mean(axis=1))
        for block in self._blocks:
            errors[block.kernels] = block.relative_errors() * sizes[block.kernels]
        return errors

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        out = np.zeros((self.n_kernels, rows.size, V.shape[1]))
        single = np.ascontiguousarray(V, dtype=np.float32)

        def add(out: AnyArray, columns: slice, K: Matrix) -> None:
            out += K @ (single if K.dtype == np.float32 else V)[columns]

        self._for_each_tile(rows, columns, out, add)
        return out

    def square_block(self, places: Indices) -> AnyArray:
        def store(out: AnyArray, columns: slice, K: Matrix) -> None:
            out[:, columns] = K

        out = np.empty((self.n_kernels, places.size, places.size), dtype=np.float32)
        self._for_each_tile(places, places, out, store)
        return out

    def _for_each_tile(
        self,
        rows: Indices,
        columns: Indices,
        out: AnyArray,
        use: Callable[[AnyArray, slice, Matrix], None],
    ) -> None:
        """Call use(out[m, some rows], some columns, K_m between them), every row on one thread only."""
        height, width = self.tile
        tiles = [slice(start, min(start + width, columns.size)) for start in range(0, columns.size, width)]
        at_columns = [block.at(columns) for block in self._blocks]

        def work(starts: Sequence[int]) -> None:
            for start in starts:
                some = rows[start : start + height]
                mine = out[:, start : start + height]
                for block, Z in zip(self._blocks, at_columns, strict=True):
                    X = block.at(some)
                    for tile in tiles:
                        for m, K in X.kernels_with(Z, tile):
                            use(mine[m], tile, K)
                for source in self._sources:
                    if tiles and not self._others.isdisjoint(source.kernels):
                        for m, K in source.block(some, columns, self._others):
                            use(mine[m], slice(0, columns.size), K)

        with blas_threads(1):
            shared_out(work, range(0, rows.size, height), self.n_threads)


@dataclass(frozen=True)
class Float32Block:
    """Samples of one block of features, centred and in float32, and the kernels of them.

    With c the mean of the samples, x'z = (x − c)'(z − c) + shift_x + shift_z: inner products and distances
    come from the same matrix product, and neither loses digits to an offset of the columns.
    """

    X: AnyArray = field(repr=False)
    shifts: AnyArray = field(repr=False)
    norms: AnyArray = field(repr=False)
    kernels: list[int]
    # Function, degree and (gamma, offset, factor) per kernel, as `_core.kernel_block` takes them.
    formulas: tuple[AnyArray, AnyArray, Matrix]
    # f with K_ij = f_i f_j k(x_i, x_j) for kernels whose scaling differs from sample to sample.
    sample_factors: list[AnyArray | None] = field(repr=False)

    @classmethod
    def of(cls, X: Matrix, members: Sequence[tuple[int, Formula, Vector]]) -> Float32Block:
        """Return the block of these samples and kernels, each with its place, formula and sample factors."""
        centre = X.mean(axis=0)
        rows = (X - centre).astype(np.float32)
        kernels, formulas, factors = zip(*members, strict=True)
        even = [bool((f == f[0]).all()) for f in factors]
        common = [f[0] ** 2 if same else 1.0 for f, same in zip(factors, even, strict=True)]
        numbers = np.array([[f.gamma for f in formulas], [f.offset for f in formulas], common])
        return cls(
            rows,
            (X @ centre - 0.5 * centre @ centre).astype(np.float32),
            np.einsum("id,id->i", rows, rows),
            list(kernels),
            (
                np.array([FUNCTIONS.index(f.function) for f in formulas], dtype=np.int64),
                np.array([f.degree for f in formulas], dtype=np.int64),
                numbers,
            ),
            [None if same else f.astype(np.float32) for f, same in zip(factors, even, strict=True)],
        )

    def at(self, places: Indices) -> Float32Block:
        """Return the block at these samples only."""
        factors = [None if f is None else f[places] for f in self.sample_factors]
        return replace(
            self,
            X=self.X[places],
            shifts=self.shifts[places],
            norms=self.norms[places],
            sample_factors=factors,
        )

    def kernels_with(self, Z: Float32Block, columns: slice) -> Iterator[tuple[int, AnyArray]]:
        """Yield (m, K_m between the samples of this block and those columns of Z)."""
        inner = self.X @ Z.X[columns].T
        K = np.empty((len(self.kernels), *inner.shape), dtype=np.float32)
        _core.kernel_block(
            inner, self.shifts, Z.shifts[columns], self.norms, Z.norms[columns], *self.formulas, K
        )
        for m, values, f, g in zip(self.kernels, K, self.sample_factors, Z.sample_factors, strict=True):
            if f is not None and g is not None:
                values *= f[:, None] * g[columns]
            yield m, values

    def relative_errors(self) -> Vector:
        """Return per kernel the typical error of an entry, as a share of the entry's size.

        It is the rounding of an inner product, times the slope of the kernel as a function of it.
        """
        function, degree, (gamma, _, _) = self.formulas
        length = float(np.sqrt(self.norms.max(initial=0.0) * self.norms.mean()))
        return np.asarray(
            2.0 * SINGLE * (1.0 + np.where(function == FUNCTIONS.index("exp"), 2.0 * gamma * length, degree))
        )
