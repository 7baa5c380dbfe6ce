"""Gram matrices as they come: float64, square, not copied."""

from __future__ import annotations

from collections.abc import Sequence

from kernelweave._typing import Matrix
from kernelweave.gram.lazy import LazyGrams
from kernelweave.gram.source import ArraySource


class DenseGrams(LazyGrams):
    """M float64 matrices held by reference.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGrams
    >>> grams = DenseGrams((np.eye(2), np.ones((2, 2))))
    >>> grams.combine(np.array([1.0, 0.5]))
    array([[1.5, 0.5],
           [0.5, 1.5]])
    """

    def __init__(self, matrices: Sequence[Matrix], centre: bool = False, n_threads: int = 1) -> None:
        sources = [ArraySource(m, K) for m, K in enumerate(matrices)]
        super().__init__(sources, len(sources), sources[0].n_samples, centre=centre, n_threads=n_threads)
