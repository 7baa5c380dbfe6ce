"""Gram matrices as packed lower triangles in float32 or float64, doubly centred where that is harmless."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kernelweave import _core
from kernelweave._threads import in_turn
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.gram.rounding import of_arithmetic


@dataclass(frozen=True)
class PackedGrams:
    """Half the entries, and with float32 a quarter of the bytes, of M dense matrices.

    Centring PKP changes nothing for a machine whose coefficients sum to zero, and it removes the large
    constant part of wide Gaussians that would drown v'Kv in float32 rounding. ``rounding`` records the
    largest change of an entry. Bounds drawn from these matrices speak of them, not of the originals.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import PackedGrams
    >>> grams = PackedGrams.pack([np.eye(3)], n_kernels=1, n_samples=3, dtype="float32", centre=False)
    >>> grams.energies(np.array([1.0, 1.0, 0.0]))
    array([1.])

    """

    packed: AnyArray = field(repr=False)
    means: Matrix = field(repr=False)
    rounding: Vector = field(repr=False)
    centred: bool
    n_threads: int = 1

    @classmethod
    def pack(
        cls,
        matrices: Iterable[Matrix],
        n_kernels: int,
        n_samples: int,
        dtype: str = "float32",
        centre: bool = True,
        n_threads: int = 1,
    ) -> PackedGrams:
        """Convert the matrices as they come; besides the result only one or two per thread are held."""
        packed = np.empty((n_kernels, n_samples * (n_samples + 1) // 2), dtype=dtype)
        means = np.empty((n_kernels, n_samples))
        rounding = np.empty(n_kernels)

        def convert(m: int, K: Matrix) -> None:
            rounding[m] = _core.pack(np.ascontiguousarray(K), centre, packed[m], means[m])

        in_turn(convert, enumerate(matrices), n_threads)
        return cls(packed, means, rounding, centre, n_threads)

    @property
    def n_kernels(self) -> int:
        return int(self.packed.shape[0])

    @property
    def n_samples(self) -> int:
        return int(self.means.shape[1])

    @cached_property
    def sizes(self) -> Vector:
        i = np.arange(self.n_samples)
        diagonal = np.abs(self.packed[:, i * (i + 3) // 2]).max(axis=1).astype(np.float64)
        # Before centring the entries were larger by the means, and so was their rounding.
        return np.asarray(diagonal + 2.0 * np.abs(self.means).max(axis=1) if self.centred else diagonal)

    @property
    def errors(self) -> Vector:
        return of_arithmetic(self.sizes, self.n_samples)

    @property
    def is_rounded(self) -> bool:
        return self.packed.dtype == np.float32

    def combine(self, eta: Vector) -> AnyArray:
        K = np.empty((self.n_samples, self.n_samples), dtype=self.packed.dtype)
        _core.combine(self.packed, np.ascontiguousarray(eta), K, self.n_threads)
        return K

    def images(self, coef: AnyArray) -> AnyArray:
        columns = _columns(coef)
        out = np.empty((self.n_kernels, self.n_samples, columns.shape[1]))
        _core.images(self.packed, columns, out, self.n_threads)
        return out.reshape(self.n_kernels, *coef.shape)

    def energies(self, coef: AnyArray) -> Vector:
        out = np.empty(self.n_kernels)
        _core.energies(self.packed, _columns(coef), out, self.n_threads)
        return out

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        if not self.centred:
            return np.zeros(coef.shape[1:])
        return np.asarray((eta @ self.means) @ coef)


def _columns(coef: AnyArray) -> Matrix:
    return np.ascontiguousarray(coef.reshape(coef.shape[0], -1), dtype=np.float64)
