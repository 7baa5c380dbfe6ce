"""Gram matrices that are computed again for every pass, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector


@dataclass(frozen=True)
class StreamedGrams:
    """M float64 matrices of which only one exists at any time.

    ``matrices`` is called for each pass and yields them in order. Slow and small: made for the one exact
    pass that checks what was computed on rounded matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import StreamedGrams
    >>> grams = StreamedGrams(lambda: iter([np.eye(2), np.ones((2, 2))]), n_kernels=2, n_samples=2)
    >>> grams.energies(np.array([1.0, -1.0]))
    array([1., 0.])

    """

    matrices: Callable[[], Iterable[Matrix]] = field(repr=False)
    n_kernels: int
    n_samples: int

    @property
    def errors(self) -> Vector:
        return np.zeros(self.n_kernels)

    def combine(self, eta: Vector) -> AnyArray:
        total = np.zeros((self.n_samples, self.n_samples))
        for weight, K in zip(eta, self.matrices(), strict=True):
            if weight != 0.0:
                total += weight * K
        return total

    def images(self, coef: AnyArray) -> AnyArray:
        return np.stack([K @ coef for K in self.matrices()])

    def energies(self, coef: AnyArray) -> Vector:
        return np.array([0.5 * np.vdot(coef, K @ coef) for K in self.matrices()])

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:  # noqa: ARG002 - nothing was removed
        return np.zeros(coef.shape[1:])
