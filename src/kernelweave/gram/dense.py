"""Gram matrices as they come: float64, square, not copied."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector


@dataclass(frozen=True)
class DenseGrams:
    """M float64 matrices held by reference.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGrams
    >>> grams = DenseGrams((np.eye(2), np.ones((2, 2))))
    >>> grams.combine(np.array([1.0, 0.5]))
    array([[1.5, 0.5],
           [0.5, 1.5]])
    >>> grams.energies(np.array([1.0, -1.0]))
    array([1., 0.])
    """

    matrices: tuple[Matrix, ...]

    @property
    def n_kernels(self) -> int:
        return len(self.matrices)

    @property
    def n_samples(self) -> int:
        return int(self.matrices[0].shape[0])

    @property
    def errors(self) -> Vector:
        return np.zeros(self.n_kernels)

    def combine(self, eta: Vector) -> AnyArray:
        total = np.zeros((self.n_samples, self.n_samples))
        term = np.empty_like(total)
        for weight, K in zip(eta, self.matrices, strict=True):
            if weight != 0.0:
                np.multiply(K, weight, out=term)
                total += term
        return total

    def images(self, coef: AnyArray) -> AnyArray:
        return np.stack([K @ coef for K in self.matrices])

    def energies(self, coef: AnyArray) -> Vector:
        return np.array([0.5 * np.vdot(coef, K @ coef) for K in self.matrices])

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        return np.zeros(coef.shape[1:])
