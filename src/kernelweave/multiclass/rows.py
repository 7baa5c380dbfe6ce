"""Rows of kernels that are in memory: as whole matrices, or as explicit features."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.rounding import DOUBLE, of_arithmetic

# Blocks of kernels made from features; larger ones cost more than they save.
FEW_SAMPLES = 1024


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
    unit: float = field(default=DOUBLE, init=False)

    @property
    def n_kernels(self) -> int:
        return int(self.K.shape[0])

    @property
    def n_samples(self) -> int:
        return int(self.K.shape[1])

    @property
    def diagonals(self) -> Matrix:
        return np.ascontiguousarray(np.diagonal(self.K, axis1=1, axis2=2))

    @property
    def errors(self) -> Vector:
        return of_arithmetic(np.abs(self.diagonals).max(axis=1), self.n_samples)

    @property
    def block_size(self) -> int:
        return self.n_samples

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        full = np.zeros((self.n_samples, V.shape[1]))  # whole rows lie in one piece, parts of them do not
        full[columns] = V
        K = self.K if _are_all(rows, self.n_samples) else self.K[:, rows]
        return np.asarray(K @ full)

    def block(self, places: Indices) -> AnyArray:
        if _are_all(places, self.n_samples):
            return self.K
        return np.ascontiguousarray(self.K[:, places[:, None], places])


@dataclass(frozen=True)
class FeatureRows:
    """Kernels k_m(x, z) = φ_m(x)'φ_m(z) of explicit features: a product costs O(features) per sample.

    ``Phi`` has one row per sample; the features of kernel m are the columns [offsets_m, offsets_m+1).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.multiclass.rows import FeatureRows
    >>> rows = FeatureRows(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([0, 1, 2]))
    >>> rows.block(np.arange(2))[1]
    array([[4., 2.],
           [2., 1.]])

    """

    Phi: AnyArray = field(repr=False)
    offsets: Indices
    is_stored: bool = field(default=False, init=False)
    unit: float = field(default=DOUBLE, init=False)

    @property
    def n_kernels(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_samples(self) -> int:
        return int(self.Phi.shape[0])

    @property
    def diagonals(self) -> Matrix:
        return np.array([np.einsum("id,id->i", P, P) for P in self._parts(np.arange(self.n_samples))])

    @property
    def errors(self) -> Vector:
        return of_arithmetic(self.diagonals.max(axis=1), int(np.diff(self.offsets).max()))

    @property
    def block_size(self) -> int:
        return FEW_SAMPLES

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        some, others = self._parts(rows), self._parts(columns)
        return np.array([P @ (Q.T @ V) for P, Q in zip(some, others, strict=True)])

    def block(self, places: Indices) -> AnyArray:
        return np.array([P @ P.T for P in self._parts(places)])

    def _parts(self, rows: Indices) -> list[Matrix]:
        chosen = self.Phi if _are_all(rows, self.n_samples) else self.Phi[rows]
        return [
            chosen[:, start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True)
        ]


def _are_all(places: Indices, n_samples: int) -> bool:
    return places.size == n_samples and bool((places == np.arange(n_samples)).all())
