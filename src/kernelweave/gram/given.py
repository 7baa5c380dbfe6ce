"""Kernels that exist as float64 matrices: held by reference, read at memory speed."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.gram.source import Bulk


class MatrixSource(Bulk):
    """All kernels of a stack, as matrices of one size, each in one piece."""

    def __init__(self, matrices: Sequence[Matrix]) -> None:
        super().__init__(range(len(matrices)), int(matrices[0].shape[0]))
        self._matrices = list(matrices)
        self._diagonals: Matrix | None = None  # their entries lie far apart: read once

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        for m, K in zip(self.kernels, self._matrices, strict=True):
            if which is None or m in which:
                yield m, K[rows][:, columns]

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        yield from zip(self.kernels, self.all_diagonals(), strict=True)

    def all_diagonals(self, n_threads: int = 1) -> Matrix:
        if self._diagonals is None:
            self._diagonals = np.empty((len(self.kernels), self.n_samples))
            _core.diagonals(self._matrices, self._diagonals, n_threads)
            self._diagonals.setflags(write=False)
        return self._diagonals

    def centre_all(self, chosen: Indices, shifts: Matrix, n_threads: int) -> None:
        _core.reference_means(self._matrices, chosen.astype(np.uint64), shifts, n_threads)

    def pack_all(self, shifts: Matrix, packed: AnyArray, n_threads: int, even: Matrix | None = None) -> None:
        anything = np.full((len(self.kernels), self.n_samples), np.inf)
        _core.admit_all(
            self._matrices, anything, np.zeros((2, self.n_samples)), shifts, packed, n_threads, even
        )

    def combine_all(self, eta: Vector, shift: Vector, K: AnyArray, n_threads: int) -> None:
        _core.combine_all(self._matrices, np.ascontiguousarray(eta), shift, K, n_threads)

    def take_all(self, rows: Indices, shifts: Matrix, packed: AnyArray, n_threads: int) -> bool:
        return _core.take_all(self._matrices, rows.astype(np.uint64), shifts, packed, n_threads)

    def energies_all(self, V: Matrix, out: Vector, n_threads: int) -> None:
        _core.energies_all(self._matrices, V, out, n_threads)

    def image_all(self, eta: Vector, V: Matrix, out: AnyArray, n_threads: int) -> None:
        _core.image_all(self._matrices, np.ascontiguousarray(eta), V, out, n_threads)

    def images_all(self, V: Matrix, out: AnyArray, n_threads: int, where: AnyArray | None = None) -> None:
        _core.images_all(self._matrices, V, out, n_threads, where)
