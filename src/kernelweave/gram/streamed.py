"""Gram matrices that are computed again for every pass, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dsymv

from kernelweave._threads import in_turn
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.gram.rounding import of_arithmetic


@dataclass(frozen=True)
class StreamedGrams:
    """M float64 matrices of which only one exists at any time.

    ``matrices`` is called for each pass and yields them in order. ``centred`` answers as if every matrix were
    doubly centred, which is meant for coefficients that sum to zero.

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
    centred: bool = False
    n_threads: int = 1

    @cached_property
    def sizes(self) -> Vector:
        return np.array([np.abs(np.diagonal(K)).max() for K in self.matrices()])

    @property
    def errors(self) -> Vector:
        return of_arithmetic(self.sizes, self.n_samples)

    @property
    def is_rounded(self) -> bool:
        return False

    def combine(self, eta: Vector) -> AnyArray:
        total = np.zeros((self.n_samples, self.n_samples))
        term = np.empty_like(total)
        for weight, K in zip(eta, self.matrices(), strict=True):
            if weight != 0.0:
                np.multiply(K, weight, out=term)
                total += term
        if self.centred:
            means = total.mean(axis=0)
            total -= means
            total -= (means - means.mean())[:, None]
        return total

    def images(self, coef: AnyArray) -> AnyArray:
        out = np.empty((self.n_kernels, *coef.shape))

        def fill(m: int, K: Matrix) -> None:
            out[m] = _product(K, coef)

        in_turn(fill, enumerate(self.matrices()), self.n_threads)
        if self.centred:
            out -= out.mean(axis=1, keepdims=True)
        return out

    def energies(self, coef: AnyArray) -> Vector:
        images = self.images(coef).reshape(self.n_kernels, -1)
        return np.asarray(0.5 * images @ coef.ravel())

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        if not self.centred:
            return np.zeros(coef.shape[1:])
        return np.asarray(
            sum(w * (K @ coef).mean(axis=0) for w, K in zip(eta, self.matrices(), strict=True) if w != 0.0)
        )


def _product(K: Matrix, coef: AnyArray) -> AnyArray:
    """Return K V; with few columns each is a pass over one triangle of K only."""
    if not K.flags.c_contiguous or coef.size > 2 * K.shape[0]:
        return np.asarray(K @ coef)
    columns = [dsymv(1.0, K.T, column) for column in coef.reshape(K.shape[0], -1).T]
    return np.stack(columns, axis=1).reshape(coef.shape)
