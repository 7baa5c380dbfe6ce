"""How both methods hold their kernels: as matrices in float64, after asking whether there is room."""

from __future__ import annotations

import numpy as np

from kernelweave._threads import blas_threads
from kernelweave._typing import Matrix
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import GramStack, StoragePolicy, build_gram_stack
from kernelweave.gram.memory import FLOAT64_BYTES, budget, require_room


def require_matrices(n_matrices: int, n_samples: int, memory_limit: float | None) -> None:
    """Raise MemoryError, before anything is taken, where so many matrices of all samples do not fit."""
    require_room(
        n_matrices * n_samples**2 * FLOAT64_BYTES,
        memory_limit,
        f"{n_matrices} matrices of {n_samples} × {n_samples} numbers",
        "raise memory_limit, or use fewer samples",
    )


def most_samples(n_matrices: int, memory_limit: float | None) -> int:
    """Return for how many samples so many matrices fit into what may be used."""
    return int((budget(memory_limit) / (n_matrices * FLOAT64_BYTES)) ** 0.5)


def store(kernels: FittedKernels, tol: float, memory_limit: float | None, n_threads: int) -> GramStack:
    """Hold the kernels of the training samples in float64: the bounds need all digits."""
    policy = StoragePolicy(
        centre=False, tol=tol, dtype="float64", memory_limit=memory_limit, n_threads=n_threads
    )
    with blas_threads(1):
        return build_gram_stack(kernels, policy)


def matrices(kernels: FittedKernels, tol: float, memory_limit: float | None, n_threads: int) -> list[Matrix]:
    """Return each kernel of the training samples as a matrix of its own; those of the user are not copied."""
    if kernels.holds_matrices:
        return [np.ascontiguousarray(K, dtype=np.float64) for K in kernels.given_matrices(n_threads)]
    grams = store(kernels, tol, memory_limit, n_threads)
    return [grams.combine(row) for row in np.eye(len(kernels))]
