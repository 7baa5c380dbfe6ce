"""Gram matrices that exist: float64, square, held by reference and read at memory speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.packed import PackedGrams, as_columns, as_rows, reference_samples, stored_roots
from kernelweave.gram.rounding import SINGLE, arithmetic_errors
from kernelweave.gram.storage import Storage, kernels_in_words


class DenseGrams:
    """M float64 matrices held by reference; only their lower triangles are read, and nothing is copied.

    Parameters
    ----------
    matrices : symmetric matrices of one size, each in one piece.
    centre : act as if every kernel were centred, for coefficients that sum to zero.
    dtype : type of the combined matrix; with float32 the stack counts as rounded.
    shifts : those of another stack of the same kernels, if they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGrams
    >>> grams = DenseGrams((np.eye(2), np.ones((2, 2))))
    >>> grams.combine(np.array([1.0, 0.5]))
    array([[1.5, 0.5],
           [0.5, 1.5]])
    """

    def __init__(
        self,
        matrices: Sequence[Matrix],
        *,
        centre: bool = False,
        dtype: str = "float64",
        n_threads: int = 1,
        shifts: Matrix | None = None,
    ) -> None:
        self.matrices = [np.ascontiguousarray(K) for K in matrices]
        self.centre, self.dtype, self.n_threads = centre, np.dtype(dtype), n_threads
        self.is_rounded = self.dtype == np.float32
        self.n_kernels, self.n_samples = shape = len(self.matrices), int(self.matrices[0].shape[0])
        self.diagonals = np.empty(shape)  # one row each
        _core.diagonals(self.matrices, self.diagonals, n_threads)
        self.sizes = np.abs(self.diagonals).max(axis=1)
        # Entries are summed as they are, before centring: where they have a large part in common, and samples
        # come class by class, partial sums grow to n/2 times an entry before they cancel. Rounding grows with
        # them: n/64 times the usual √n is beyond that from the allowance of six standard deviations on.
        self.errors = max(1.0, self.n_samples / 64) * arithmetic_errors(self.sizes, self.n_samples)
        if shifts is None:
            shifts = centring_shifts(self.matrices, n_threads) if centre else np.zeros(shape)
        self.shifts = shifts

    @property
    def storage(self) -> Storage:
        return Storage(f"{kernels_in_words(self.n_kernels)} as given", SINGLE if self.is_rounded else 0.0)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        K = np.empty((self.n_samples, self.n_samples), dtype=self.dtype) if out is None else out
        eta = np.ascontiguousarray(eta)
        _core.combine_matrices(self.matrices, eta, eta @ self.shifts, K, self.n_threads)
        return K

    def energies(self, coef: AnyArray, which: Indices | None = None) -> Vector:
        if which is not None:
            return self.subset(which).energies(coef)
        V, h = as_rows(coef), np.empty(self.n_kernels)
        _core.energies_of_matrices(self.matrices, V, h, self.n_threads)
        return np.asarray(h - (self.shifts @ V.T) @ V.sum(axis=1))

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:
        V = as_rows(coef)
        marked = None if needed is None else as_rows(needed, np.uint8)
        out = np.empty((self.n_kernels, *V.shape))
        _core.matvecs_of_matrices(self.matrices, V, out, self.n_threads, marked)
        if self.centre:  # K V - 1 (shift'V) - shift (1'V), and the coefficients sum to zero
            out -= (self.shifts @ V.T)[:, :, None]
        return as_columns(out, coef)

    def matvec(self, eta: Vector, coef: AnyArray) -> AnyArray:
        """Return K(eta) V; K(eta) itself is not held."""
        V = as_rows(coef)
        out, eta = np.empty(V.shape), np.ascontiguousarray(eta)
        _core.matvec_of_matrices(self.matrices, eta, V, out, self.n_threads)
        if self.centre:
            out -= (V @ (eta @ self.shifts))[:, None]
        return np.ascontiguousarray(out.T).reshape(coef.shape)

    def matvec_with_error(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        return self.matvec(eta, coef), np.zeros(coef.shape)

    def energy_errors(self, coef: AnyArray) -> Vector:  # noqa: ARG002 - the matrices are the originals
        return np.zeros(self.n_kernels)

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        return np.asarray((eta @ self.shifts) @ coef)

    def sample(self, rows: Indices) -> PackedGrams:
        size, shifts = rows.size, np.ascontiguousarray(self.shifts[:, rows])
        packed = np.empty((self.n_kernels, size * (size + 1) // 2), dtype=self.dtype)
        _core.gather_matrices(self.matrices, rows.astype(np.uint64), shifts, packed, self.n_threads)
        return self._as_packed(packed, self.diagonals[:, rows], shifts)

    def subset(self, which: Indices) -> DenseGrams:
        some, dtype, shifts = [self.matrices[m] for m in which], self.dtype.name, self.shifts[which]
        return DenseGrams(some, centre=self.centre, dtype=dtype, n_threads=self.n_threads, shifts=shifts)

    def packed(self, dtype: str) -> PackedGrams:
        """Return the kernels as packed triangles, which take a quarter of the bytes in float32."""
        n = self.n_samples
        packed = np.empty((self.n_kernels, n * (n + 1) // 2), dtype=dtype)
        _core.pack_matrices(self.matrices, self.shifts, packed, self.n_threads)
        return self._as_packed(packed, self.diagonals, self.shifts)

    def _as_packed(self, packed: AnyArray, diagonals: Matrix, shifts: Matrix) -> PackedGrams:
        """Return the stack of packed triangles whose matrices had these diagonals before centring."""
        sizes, roots = np.abs(diagonals).max(axis=1), stored_roots(diagonals, shifts)
        return PackedGrams(packed, shifts, sizes, roots, centre=self.centre, n_threads=self.n_threads)


def centring_shifts(matrices: Sequence[Matrix], n_threads: int = 1) -> Matrix:
    """Return one row of shifts per matrix, see `reference_shift`."""
    n = matrices[0].shape[0]
    shifts = np.empty((len(matrices), n))
    _core.reference_means(list(matrices), reference_samples(n).astype(np.uint64), shifts, n_threads)
    return shifts
