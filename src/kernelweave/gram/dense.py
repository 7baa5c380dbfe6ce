"""Gram matrices as they come: float64, square, not copied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.gram.given import MatrixSource
from kernelweave.gram.lazy import LazyGrams


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
        source = MatrixSource([np.ascontiguousarray(K) for K in matrices])
        super().__init__([source], len(matrices), source.n_samples, centre=centre, n_threads=n_threads)
