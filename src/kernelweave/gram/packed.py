"""Gram matrices as packed lower triangles in float32 or float64, centred where that changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelweave import _core
from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.rounding import SINGLE, arithmetic_errors, float32_energy_error, float32_matvec_error
from kernelweave.gram.source import KernelSource
from kernelweave.gram.storage import Storage, kernels_in_words


class PackedGrams:
    """Half the entries, and with float32 a quarter of the bytes, of M dense matrices.

    Centring changes nothing for a learner whose coefficients sum to zero, and it removes the large constant
    part of wide Gaussians that would drown v'Kv in float32 rounding. Bounds drawn from these matrices
    speak of them; `energy_errors` and `matvec_with_error` bound how far the originals may be, by ``roots``,
    the square roots of the diagonals as they are stored, which bound all other entries.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGrams
    >>> grams = DenseGrams([np.eye(3)], centre=True).packed("float32")
    >>> grams.energies(np.array([1.0, -1.0, 0.0])).round(3)
    array([1.])

    """

    def __init__(
        self,
        packed: AnyArray,
        shifts: Matrix,
        sizes: Vector,
        roots: Matrix,
        *,
        centre: bool,
        n_threads: int = 1,
    ) -> None:
        self.packed, self.shifts, self.sizes, self.roots = packed, shifts, sizes, roots
        self.centre, self.n_threads = centre, n_threads
        self.n_kernels, self.n_samples = int(shifts.shape[0]), int(shifts.shape[1])
        self.is_rounded = packed.dtype == np.float32
        self.errors = arithmetic_errors(sizes, self.n_samples)

    @classmethod
    def from_sources(
        cls,
        sources: Sequence[KernelSource],
        n_kernels: int,
        n_samples: int,
        *,
        dtype: str = "float32",
        centre: bool = True,
        n_threads: int = 1,
    ) -> PackedGrams:
        """Compute the kernels a few rows at a time; besides the result only some rows per thread are held."""
        packed = np.empty((n_kernels, n_samples * (n_samples + 1) // 2), dtype=dtype)
        diagonals, shifts = np.zeros((n_kernels, n_samples)), np.zeros((n_kernels, n_samples))
        chosen, every = reference_samples(n_samples), slice(0, n_samples)
        for source in sources:
            for m, diagonal in source.diagonals():
                diagonals[m] = diagonal
            for m, K in source.block(chosen, every) if centre else ():
                shifts[m] = reference_shift(K, chosen)

        def convert(share: Sequence[tuple[KernelSource, slice]]) -> None:
            for source, rows in share:
                for m, K in source.block(rows, slice(0, rows.stop)):
                    _core.pack(np.ascontiguousarray(K, dtype=np.float64), rows.start, shifts[m], packed[m])

        step = max(1, (1 << 18) // max(n_samples, 1))  # rows whose values stay in cache
        blocks = [slice(start, min(start + step, n_samples)) for start in range(0, n_samples, step)]
        shared_out(convert, [(source, rows) for source in sources for rows in blocks], n_threads)
        sizes = np.zeros(n_kernels)
        for source in sources:
            sizes[source.kernels] = source.sizes()
        roots = stored_roots(diagonals, shifts)
        return cls(packed, shifts, sizes, roots, centre=centre, n_threads=n_threads)

    @property
    def storage(self) -> Storage:
        how = f"{kernels_in_words(self.n_kernels)} packed in {self.packed.dtype}"
        return Storage(how, SINGLE if self.is_rounded else 0.0)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        shape = (self.n_samples, self.n_samples)
        K = np.empty(shape, dtype=self.packed.dtype) if out is None else out
        _core.combine(self.packed, np.ascontiguousarray(eta), K, self.n_threads)
        return K

    def energies(self, coef: AnyArray, which: Indices | None = None) -> Vector:
        if which is not None:
            return self.subset(which).energies(coef)
        out = np.empty(self.n_kernels)
        _core.energies(self.packed, as_rows(coef), out, self.n_threads)
        return out

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:
        V = as_rows(coef)
        marked = None if needed is None else as_rows(needed, np.uint8)
        out = np.empty((self.n_kernels, *V.shape))
        _core.matvecs(self.packed, V, out, self.n_threads, marked)
        return as_columns(out, coef)

    def matvec_with_error(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        if not self.is_rounded:
            return np.tensordot(eta, self.matvecs(coef), axes=1), np.zeros(coef.shape)
        V = as_rows(coef)
        product, abs_product = np.empty(V.shape), np.empty(V.shape)
        _core.matvec_and_size(self.packed, np.ascontiguousarray(eta), V, product, abs_product, self.n_threads)
        product, abs_product = product.T.reshape(coef.shape), abs_product.T.reshape(coef.shape)
        return product, float32_matvec_error(abs_product, eta, coef)

    def energy_errors(self, coef: AnyArray) -> Vector:
        return float32_energy_error(self.roots, coef) if self.is_rounded else np.zeros(self.n_kernels)

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        return np.asarray((eta @ self.shifts) @ coef)

    def subset(self, which: Indices) -> PackedGrams:
        parts = (part[which] for part in (self.packed, self.shifts, self.sizes, self.roots))
        return PackedGrams(*parts, centre=self.centre, n_threads=self.n_threads)

    def sample(self, rows: Indices) -> PackedGrams:
        packed = np.empty((self.n_kernels, rows.size * (rows.size + 1) // 2), dtype=self.packed.dtype)
        _core.gather(self.packed, rows.astype(np.uint64), packed, self.n_threads)
        parts = packed, self.shifts[:, rows], self.sizes, self.roots[:, rows]
        return PackedGrams(*parts, centre=self.centre, n_threads=self.n_threads)


def as_rows(coef: AnyArray, dtype: type = np.float64) -> AnyArray:
    """Return one row per column of coefficients, as the compiled loops take them."""
    return np.ascontiguousarray(coef.reshape(coef.shape[0], -1).T, dtype=dtype)


def as_columns(products: AnyArray, coef: AnyArray) -> AnyArray:
    """Return products as the compiled loops leave them, one row per column, with the shape of the coefficients."""
    return np.ascontiguousarray(products.transpose(0, 2, 1)).reshape(len(products), *coef.shape)


def stored_roots(diagonals: Matrix, shifts: Matrix) -> Matrix:
    """Return the square roots of the diagonals as they are after centring."""
    return np.asarray(np.sqrt(np.maximum(diagonals - 2.0 * shifts, 0.0)))


def reference_samples(n_samples: int) -> Indices:
    """Return a few samples, spread over all, whose mean stands in for that of all when kernels are centred."""
    return np.unique(np.linspace(0, n_samples - 1, min(n_samples, 16)).astype(np.intp))


def reference_shift(K: Matrix, chosen: Indices) -> Vector:
    r"""Return r with which K_ij − r_i − r_j is a centred kernel, given the rows of the reference samples.

    It is the kernel of φ(x) − μ with μ the mean of the reference samples. Where coefficients sum to zero it is
    the same kernel whatever μ.
    """
    means = K.mean(axis=0)
    return np.asarray(means - 0.5 * means[chosen].mean())
