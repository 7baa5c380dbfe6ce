"""Gram matrices that are never stored: their values are computed again in every pass over pairs of samples."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.rounding import arithmetic_errors
from kernelweave.gram.source import KernelSource
from kernelweave.gram.storage import Storage, kernels_in_words


class StreamedGrams:
    """M kernels of n samples, of which nothing is held but the samples themselves.

    With float32 values are rounded as they are computed; sums of them are taken in float64. With float64 they are
    those of the kernels, and bounds drawn from them speak of the kernels as given.

    Parameters
    ----------
    sources : where the values come from; together they have every kernel once.
    dtype : precision of the values, float32 or float64.
    n_threads : threads of a pass; they do not change a digit.
    may_combine : whether there is memory for the combined matrix of all samples.
    shifts : those of another stack of the same kernels, to be centred as that one is; None: not centred.
    """

    def __init__(
        self,
        sources: Sequence[KernelSource],
        n_kernels: int,
        n_samples: int,
        *,
        dtype: str = "float64",
        n_threads: int = 1,
        may_combine: bool = True,
        shifts: Matrix | None = None,
    ) -> None:
        # In the precision of the samples, and in that of the values.
        self.given = list(sources) if shifts is None else [source.centred(shifts) for source in sources]
        self.sources = [source.in_dtype(dtype) for source in self.given]
        self.n_kernels, self.n_samples = n_kernels, n_samples
        self.dtype, self.n_threads, self._shifts = np.dtype(dtype), n_threads, shifts
        self.is_rounded = self.dtype == np.float32
        self.may_combine = may_combine

    # -- facts

    @cached_property
    def diagonals(self) -> Matrix:
        """The diagonals, one row each."""
        found = np.zeros((self.n_kernels, self.n_samples))
        for source in self.given:
            for m, diagonal in source.diagonals():
                found[m] = diagonal
        return found

    @cached_property
    def sizes(self) -> Vector:
        found = np.zeros(self.n_kernels)
        for source in self.given:
            found[source.kernels] = source.sizes()
        return found

    @property
    def errors(self) -> Vector:
        return arithmetic_errors(self.sizes, self.n_samples)

    @property
    def shifts(self) -> Matrix:
        return np.zeros((self.n_kernels, self.n_samples)) if self._shifts is None else self._shifts

    @property
    def storage(self) -> Storage:
        how = f"{kernels_in_words(self.n_kernels)} streamed in {self.dtype}, never stored"
        return Storage(how, self._value_error if self.is_rounded else 0.0)

    @cached_property
    def _value_error(self) -> float:
        """The most that a value may be off, of the size of its kernel."""
        errors = [source.group.errors_in_float32(source.rows) for source in self.given]
        sizes = [
            np.abs(source.group.diagonals(source.rows)).max(axis=1, initial=0.0) for source in self.given
        ]
        share = [
            np.divide(e, size, out=np.zeros_like(e), where=size > 0.0)
            for e, size in zip(errors, sizes, strict=True)
        ]
        return max(float(one.max(initial=0.0)) for one in share)

    # -- passes over all pairs

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        every = np.arange(self.n_samples)
        return self.combined_block(eta, every, every, out)

    def combined_block(
        self, eta: Vector, rows: Indices, columns: Indices, out: AnyArray | None = None
    ) -> AnyArray:
        """Return Σ eta_m K_m[rows, columns]; symmetric in every digit where both are the same object."""
        K = np.empty((rows.size, columns.size), dtype=self.dtype) if out is None else out
        K.fill(0.0)
        for source in self.sources:
            if eta[source.kernels].any():
                source.add_weighted_block(rows, columns, eta, K, self.n_threads)
        return K

    def products(self, columns: Indices, coef: AnyArray) -> AnyArray:
        """Return K_m[:, columns] V for every m, of shape (M, n) or (M, n, k)."""
        V = coef.reshape(columns.size, int(np.prod(coef.shape[1:])))
        out = np.zeros((self.n_kernels, self.n_samples, V.shape[1]))
        for source in self.sources:
            source.add_products(columns, V, out, self.n_threads)
        return out.reshape(self.n_kernels, self.n_samples, *coef.shape[1:])

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:  # noqa: ARG002
        columns, _ = _support(coef)
        return self.products(columns, coef[columns])

    def matvec(self, eta: Vector, coef: AnyArray) -> AnyArray:
        """Return K(eta) V."""
        columns, V = _support(coef)
        out = np.zeros((self.n_samples, V.shape[1]))
        for source in self.sources:
            if eta[source.kernels].any():
                source.add_products(columns, V, out, self.n_threads, eta)
        return out.reshape(coef.shape)

    def matvec_with_error(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        f = self.matvec(eta, coef)
        if not self.is_rounded:
            return f, np.zeros(coef.shape)
        return f, np.full(coef.shape, np.inf)  # what rounding does to many values at once is not bounded

    def energies(self, coef: AnyArray, which: Indices | None = None) -> Vector:
        if which is not None:
            return self.streamed_subset(which).energies(coef)
        columns, V = _support(coef)
        out = np.zeros(self.n_kernels)
        for source in self.sources:
            out[source.kernels] = source.energies(columns, V, self.n_threads)
        return out

    def energy_errors(self, coef: AnyArray) -> Vector:
        """Bound how far energies may be below those of the kernels as given: at worst, all values err alike."""
        out = np.zeros(self.n_kernels)
        if self.is_rounded:
            columns, V = _support(coef)
            for source in self.given:
                out[source.kernels] = source.energy_errors(columns, V)
        return out

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        if self._shifts is None:
            return np.zeros(coef.shape[1:])
        return np.asarray((eta @ self._shifts) @ coef)

    # -- parts of it

    def streamed_sample(self, rows: Indices) -> StreamedGrams:
        """Return all kernels between these samples alone, which are not stored either; rows ascend."""
        shifts = None if self._shifts is None else self._shifts[:, rows]
        return self._of([source.at(rows) for source in self.given], self.n_kernels, rows.size, shifts)

    def streamed_subset(self, which: Indices) -> StreamedGrams:
        """Return these kernels alone, which are not stored either."""
        shifts = None if self._shifts is None else self._shifts[which]
        return self._of(self._chosen(which), which.size, self.n_samples, shifts)

    def subset(self, which: Indices) -> PackedGrams:
        dtype, n = self.dtype.name, self.n_samples
        return PackedGrams.from_sources(
            self._chosen(which), which.size, n, dtype=dtype, centre=False, n_threads=self.n_threads
        )

    def in_float64(self) -> StreamedGrams:
        """Return the same kernels with values in double precision."""
        return self._of(self.given, self.n_kernels, self.n_samples, self._shifts, "float64")

    def _chosen(self, which: Indices) -> list[KernelSource]:
        return [part for source in self.given if (part := source.renumbered_subset(which)) is not None]

    def sample(self, rows: Indices) -> PackedGrams:
        sources = [source.at(rows) for source in self.given]
        # Few enough entries stay in cache in float64 too.
        dtype = "float64" if self.n_kernels * rows.size**2 <= 2_000_000 else self.dtype.name
        return PackedGrams.from_sources(
            sources, self.n_kernels, rows.size, dtype=dtype, centre=False, n_threads=self.n_threads
        )

    def _of(
        self,
        sources: Sequence[KernelSource],
        n_kernels: int,
        n_samples: int,
        shifts: Matrix | None,
        dtype: str | None = None,
    ) -> StreamedGrams:
        """Return another stack of such kind; its sources are centred already."""
        other = StreamedGrams(
            sources,
            n_kernels,
            n_samples,
            dtype=dtype or self.dtype.name,
            n_threads=self.n_threads,
            may_combine=self.may_combine,
        )
        other._shifts = shifts
        return other


def _support(coef: AnyArray) -> tuple[Indices, Matrix]:
    """Return the samples with a coefficient other than zero, and their coefficients, one column per vector."""
    V = coef.reshape(coef.shape[0], int(np.prod(coef.shape[1:])))
    columns = np.flatnonzero(V.any(axis=1))
    return columns, V[columns]
