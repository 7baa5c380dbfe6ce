"""The kernels of a fitted bank as rows: stored where they fit, else made when asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import KernelRows, Source
from kernelweave.gram.memory import budget, human
from kernelweave.gram.rounding import of_arithmetic
from kernelweave.multiclass.compiled_rows import SINGLE, FeatureBlock, in_chunks
from kernelweave.multiclass.rows import StoredRows

# Blocks of kernels larger than this are not worth their memory; smaller than that they teach little.
MOST_SAMPLES, LEAST_SAMPLES = 3072, 128


class MadeRows:
    """Rows made anew for every use: compiled float32 ones where the core knows the kernel, else float64.

    Besides the features nothing is held, so memory grows with samples times features, not with pairs.
    """

    is_stored = False
    unit = SINGLE

    def __init__(self, fitted: FittedKernels, n_threads: int = 1, block_size: int = MOST_SAMPLES) -> None:
        self.n_kernels, self.n_samples, self.n_threads = len(fitted), fitted.n_samples, n_threads
        self.block_size = block_size
        known = getattr(fitted, "recipe", lambda m: None)  # noqa: ARG005
        recipes = {m: found for m in range(self.n_kernels) if (found := known(m)) is not None}
        places: dict[int, list[Any]] = {}
        for m, (place, recipe, factors) in recipes.items():
            places.setdefault(place, []).append((m, recipe, factors))
        self._blocks = [
            FeatureBlock.of(fitted.training(place), members)  # type: ignore[attr-defined]
            for place, members in places.items()
        ]
        self._sources = fitted.sources()
        self._others = set(range(self.n_kernels)) - recipes.keys()
        for source in self._sources if self._others else []:
            source.check()

    @cached_property
    def diagonals(self) -> Matrix:
        values = np.zeros((self.n_kernels, self.n_samples))
        for source in self._sources:
            for m, diagonal in source.diagonals():
                values[m] = diagonal
        return values

    @cached_property
    def errors(self) -> Vector:
        diagonals = np.abs(self.diagonals)
        found = of_arithmetic(diagonals.max(axis=1), self.n_samples)
        # The largest rows against all columns: what a typical error is, or more.
        sizes = np.sqrt(diagonals.max(axis=1) * diagonals.mean(axis=1))
        for block in self._blocks:
            for m, error in block.errors(sizes).items():
                found[m] = error
        return found

    def products(self, rows: Indices, columns: Indices, V: Matrix) -> AnyArray:
        out = np.zeros((self.n_kernels, rows.size, V.shape[1]))
        if not columns.size:
            return out
        W = np.ascontiguousarray(V, dtype=np.float32)
        taken = [(block, block.taken(columns)) for block in self._blocks]

        def work(start: int, chunk: Indices) -> None:
            part = out[:, start : start + chunk.size]
            local = np.zeros(part.shape)
            for block, Z in taken:
                block.add_products(chunk, Z, columns, W, local)
            for m, K in self._made(chunk, columns):
                local[m] = K @ V
            part[:] = local

        with blas_threads(1):
            in_chunks(rows, self.n_threads, work)
        return out

    def block(self, places: Indices) -> AnyArray:
        out = np.empty((self.n_kernels, places.size, places.size), dtype=np.float32)
        taken = [(block, block.taken(places)) for block in self._blocks]

        def work(start: int, chunk: Indices) -> None:
            part = out[:, start : start + chunk.size]
            for block, Z in taken:
                block.fill_block(chunk, Z, places, part)
            for m, K in self._made(chunk, places):
                part[m] = K

        with blas_threads(1):
            in_chunks(places, self.n_threads, work)
        return out

    def _made(self, rows: Indices, columns: Indices) -> Any:
        """Yield the blocks of the kernels that the core does not know."""
        for source in self._sources:
            if not self._others.isdisjoint(source.kernels):
                yield from source.block(rows, columns, self._others)


def rows_of(
    fitted: FittedKernels, n_classes: int, memory_limit: float | None = None, n_threads: int = 1
) -> KernelRows:
    """Return the training kernels as rows: whole matrices where they fit into memory, else made when asked.

    Raises MemoryError where not even what a solver holds beside them would fit.
    """
    limit, n, M = budget(memory_limit), fitted.n_samples, len(fitted)
    images = 3 * M * n * n_classes * 8
    if images + M * n * n * 8 <= limit:
        with blas_threads(1):
            return StoredRows(stacked(fitted.sources(), M, n))
    least = images + 8 * M * LEAST_SAMPLES**2
    if least > limit:
        raise MemoryError(
            f"{M} kernels of {n} samples with {n_classes} classes need {human(least)} even when rows are "
            f"made when asked, but {human(limit)} may be used: raise memory_limit, use fewer samples, or "
            "explicit features with partial_fit."
        )
    size = int(np.sqrt((limit - images) / (8 * M)))  # twice what a block takes
    return MadeRows(fitted, n_threads, min(size, MOST_SAMPLES))


def stacked(sources: Sequence[Source], n_kernels: int, n_samples: int) -> AnyArray:
    """Return all kernels as one float64 array (M, n, n), exactly symmetric."""
    K = np.empty((n_kernels, n_samples, n_samples))
    for source in sources:
        source.check()
        for rows in source.blocks():
            for m, part in source.block(rows, slice(0, n_samples)):
                K[m, rows] = part
    for one in K:  # blocks on the two sides of the diagonal may round differently
        _core.mirror(one)
    return K
