"""What stacks share that do not hold their kernels as matrices: they add them up, row by row."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.gram.rounding import of_arithmetic


class AddingGrams(ABC):
    """A stack that adds its kernels to the lower triangle of a matrix; the upper one is its mirror."""

    n_samples: int
    n_threads: int
    dtype: np.dtype[np.generic]

    @property
    @abstractmethod
    def sizes(self) -> Vector:
        """Largest diagonal entry of each matrix."""

    @property
    @abstractmethod
    def shifts(self) -> Matrix:
        """What centring took from the entries of each matrix."""

    @abstractmethod
    def add(self, eta: Vector, K: AnyArray) -> None:
        """Add Σ eta_m K_m to the lower triangle of K."""

    @property
    def errors(self) -> Vector:
        return of_arithmetic(self.sizes, self.n_samples)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        K = np.empty((self.n_samples, self.n_samples), dtype=self.dtype) if out is None else out
        K.fill(0.0)
        self.add(eta, K)
        _core.mirror(K, self.n_threads)
        return K

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        return np.asarray((eta @ self.shifts) @ coef)
