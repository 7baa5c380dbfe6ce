"""The training kernels of one fit: how they are held, and how to hold them more precisely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import GramStack, StreamedGrams, store


@dataclass(frozen=True)
class Kernels:
    """Fitted kernels and their stored Gram matrices.

    ``exact`` passes over the kernels as they are; ``refine`` stores them again in float64, if that may be.
    """

    fitted: FittedKernels
    stack: GramStack
    exact: GramStack
    refine: Callable[[], GramStack] | None


def hold(
    fitted: FittedKernels,
    *,
    centre: bool,
    tol: float,
    dtype: str,
    memory_limit: float | None,
    n_threads: int,
) -> Kernels:
    """Store the training Gram matrices of a fitted bank."""

    def stored(precision: str) -> GramStack:
        return store(
            fitted.grams,
            fitted.n_samples,
            len(fitted),
            in_memory=fitted.in_memory,
            centre=centre,
            tol=tol,
            dtype=precision,
            memory_limit=memory_limit,
            n_threads=n_threads,
        )

    exact = StreamedGrams(fitted.grams, len(fitted), fitted.n_samples)
    return Kernels(fitted, stored(dtype), exact, (lambda: stored("float64")) if dtype == "auto" else None)
