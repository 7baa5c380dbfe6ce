"""Any fitted kernels, centred: the mean of the training samples is the origin of every feature space."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from kernelweave._typing import Indices, Matrix, Span, Vector
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import BlockGrams, BlockSource
from kernelweave.kernels.fitted_scaling import Centered, Chained, FittedScaling, Multiplied, Side
from kernelweave.kernels.scaling import inverse


class CentredKernels:
    """Fitted kernels on top of which every matrix is centred and, if asked for, divided by its trace.

    A kernel that is switched off for a sample puts it at the origin: centred, that is the mean of all.
    The means are learnt in one pass over rows, so that no matrix has to exist as a whole.
    """

    def __init__(self, fitted: FittedKernels, *, unit_trace: bool = False, n_threads: int = 1) -> None:
        self._fitted = fitted
        self._scalings = _learn(fitted, unit_trace, n_threads)

    @property
    def names(self) -> tuple[str, ...]:
        """One readable name per kernel, all different, the same whatever the data."""
        return self._fitted.names

    @property
    def view_names(self) -> tuple[str, ...]:
        """For every kernel the view it looks at."""
        return self._fitted.view_names

    @property
    def n_samples(self) -> int:
        """The number of training samples."""
        return self._fitted.n_samples

    def given_matrices(self, n_threads: int = 1) -> None:
        """Return None: centred matrices are computed when asked for."""

    def __len__(self) -> int:
        return len(self._fitted)

    def grams(self) -> Iterator[Matrix]:
        """Yield the centred training Gram matrices in order."""
        for scaling, K in zip(self._scalings, self._fitted.grams(), strict=True):
            yield scaling.train(K)

    def sources(self) -> list[BlockSource]:
        """Return the same matrices as sources that make them a few rows at a time."""
        return [CentredSource(source, self._scalings) for source in self._fitted.sources()]

    def for_prediction(self) -> CentredKernels:
        """Return what new samples need, without what only training needed."""
        light = object.__new__(CentredKernels)
        light._fitted, light._scalings = self._fitted.for_prediction(), self._scalings
        return light

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, centred kernel m of the rows of X against the training samples)."""
        for m, K in self._fitted.cross(X, which):
            rows = self._scalings[m].rows(K)
            yield m, rows if columns is None else rows[:, columns]

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, centred kernel m between the rows of X and those of Z), both sets of new samples."""
        for m, K in self._fitted.between(X, Z, which):
            sides = [Side(next(self._fitted.cross(new, np.array([m])))[1], None) for new in (X, Z)]
            yield m, self._scalings[m].between(K, *sides)


class CentredSource(BlockSource):
    """A source whose entries are centred."""

    def __init__(self, source: BlockSource, scalings: tuple[FittedScaling, ...]) -> None:
        super().__init__(source.kernels, source.n_samples)
        self._source, self._scalings = source, scalings

    @property
    def needs_all_rows(self) -> bool:
        return self._source.needs_all_rows

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        for m, K in self._source.block(rows, columns, which):
            yield m, self._scalings[m].block(K, rows, columns)

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m, diagonal in self._source.diagonals():
            yield m, self._scalings[m].train_diagonal(diagonal)


def _learn(fitted: FittedKernels, unit_trace: bool, n_threads: int) -> tuple[FittedScaling, ...]:
    n = fitted.n_samples
    sources = fitted.sources()
    means = BlockGrams(sources, len(fitted), n, n_threads=n_threads).matvecs(np.ones(n)) / n
    diagonals = dict(pair for source in sources for pair in source.diagonals())
    return tuple(_scaling(means[m], diagonals[m], unit_trace) for m in range(len(fitted)))


def _scaling(means: Vector, diagonal: Vector, unit_trace: bool) -> FittedScaling:
    plain = Centered(means, float(means.mean()))
    lengths = plain.train_diagonal(diagonal)
    centred = Centered(plain.column_means, plain.mean, vanishes=not lengths.any())
    return Chained((centred, Multiplied(inverse(lengths.sum())))) if unit_trace else centred
