"""Fitted kernels whose matrices are centred or scaled once more."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave._typing import Indices, Matrix, Span, Vector
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import BlockGrams, BlockSource
from kernelweave.kernels import Scaling
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


# Rows scaled at a time: besides the matrix given and the one returned almost nothing is held.
ROWS = 64


@dataclass(frozen=True)
class RescaledKernels:
    """Fitted kernels with one more scaling, learnt on their training matrices when those are first made."""

    fitted: FittedKernels
    scalings: tuple[Scaling, ...]
    learnt: list[FittedScaling] = field(default_factory=list, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.fitted.names

    @property
    def view_names(self) -> tuple[str, ...]:
        return getattr(self.fitted, "view_names", self.fitted.names)

    @property
    def n_samples(self) -> int:
        return self.fitted.n_samples

    def __len__(self) -> int:
        return len(self.fitted)

    def grams(self) -> Iterator[Matrix]:
        """Yield the scaled training matrices in order; each is the caller's own."""
        anew = getattr(self.fitted, "makes_anew", False)
        for m, K in enumerate(self.fitted.grams()):
            if m == len(self.learnt):
                self.learnt.append(self._fit(K))
            yield _scaled(self.learnt[m], K, K if anew else np.empty_like(K))

    def _fit(self, K: Matrix) -> FittedScaling:
        """Learn the first scaling from the matrix and the others from the diagonal it leaves."""
        first = self.scalings[0].fit(K)
        links, diagonal = [first], first.train_diagonal(np.diagonal(K))
        for scaling in self.scalings[1:]:
            link = scaling.fit_diagonal(diagonal)
            assert link is not None, f"{scaling} needs more than the diagonal"
            links.append(link)
            diagonal = link.train_diagonal(diagonal)
        return Chained(tuple(links))

    def for_prediction(self) -> RescaledKernels:
        return replace(self, fitted=self.fitted.for_prediction())

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m of the rows of X against the training samples)."""
        for m, K in self.fitted.cross(X, which=which):
            rows = self.learnt[m].rows(K)
            yield m, rows if columns is None else rows[:, columns]

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m between two sets of new samples)."""
        every = np.arange(len(self)) if which is None else which
        for m in every:
            one = np.array([m])
            (_, K), (_, left), (_, right) = (
                next(iter(answer))
                for answer in (
                    self.fitted.between(X, Z, which=one),
                    self.fitted.cross(X, which=one),
                    self.fitted.cross(Z, which=one),
                )
            )
            yield int(m), self.learnt[m].between(K, Side(left, None), Side(right, None))


def _scaled(scaling: FittedScaling, K: Matrix, out: Matrix) -> Matrix:
    """Return the scaled kernel in ``out``, which may be K itself."""
    diagonal = scaling.train_diagonal(np.diagonal(K).copy())
    for start in range(0, len(K), ROWS):
        rows = slice(start, min(start + ROWS, len(K)))
        out[rows] = scaling.block(K[rows], rows, slice(0, len(K)))
    np.fill_diagonal(out, diagonal)
    return out
