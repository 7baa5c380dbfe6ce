"""Gram matrices as they come: float64, square, not copied."""

from __future__ import annotations

from kernelweave._typing import Matrix
from kernelweave.gram.streamed import StreamedGrams


class DenseGrams(StreamedGrams):
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

    def __init__(self, matrices: tuple[Matrix, ...], centred: bool = False, n_threads: int = 1) -> None:
        super().__init__(lambda: matrices, len(matrices), int(matrices[0].shape[0]), centred, n_threads)
