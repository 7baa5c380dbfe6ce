"""Kernels of samples that do not have every view: each kernel lives on the samples that have its view."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Span, Vector
from kernelweave.bank.centred import CentredKernels
from kernelweave.bank.protocol import FittedKernels
from kernelweave.gram import LazyGrams, Source


class Reader(Protocol):
    """How a group of kernels reads samples: which of them it can see, and what of them it looks at."""

    def sees(self, X: Any) -> AnyArray:
        """Return which rows of X have which kernels of the group, of shape (rows, kernels)."""

    def take(self, X: Any, rows: Indices) -> Any:
        """Return these rows as the fitted kernels of the group want them."""


@dataclass(frozen=True)
class Group:
    """Kernels with the same gaps: ``kernels`` are their numbers, ``places`` the samples that have them."""

    kernels: Indices
    places: Indices
    fitted: FittedKernels = field(repr=False)
    reader: Reader = field(repr=False)


@dataclass(frozen=True)
class GappedKernels:
    """Kernels of samples some of which have no value for some of them.

    Widths, scalings and means are learnt on the samples that have the view. Centred, a sample without it sits
    at their mean: its rows and columns are zero.
    """

    names: tuple[str, ...]
    view_names: tuple[str, ...]
    n_samples: int
    groups: tuple[Group, ...]
    is_centred: bool = False

    @property
    def in_memory(self) -> bool:
        """Whether the matrices are the user's own, which needs all of them to be whole."""
        return self._whole is not None and self._whole.in_memory

    def __len__(self) -> int:
        return len(self.names)

    @property
    def _whole(self) -> FittedKernels | None:
        """The kernels themselves, where no training sample lacks any."""
        first = self.groups[0]
        return first.fitted if len(self.groups) == 1 and first.places.size == self.n_samples else None

    @property
    def has_gaps(self) -> bool:
        """Whether a training sample lacks a kernel."""
        return any(group.places.size < self.n_samples for group in self.groups)

    @property
    def available(self) -> AnyArray:
        """Which kernels every training sample has, of shape (n, M)."""
        found = np.zeros((self.n_samples, len(self)), dtype=bool)
        for group in self.groups:
            found[np.ix_(group.places, group.kernels)] = True
        return found

    def sees(self, X: Any) -> AnyArray:
        """Return which kernels every row of X has, of shape (rows, M); each must have one."""
        parts = [(group.kernels, group.reader.sees(X)) for group in self.groups]
        found = np.zeros((parts[0][1].shape[0], len(self)), dtype=bool)
        for kernels, seen in parts:
            found[:, kernels] = seen
        require_a_view(found)
        return found

    def centred(self, *, unit_trace: bool = False, n_threads: int = 1) -> GappedKernels:
        """Return the kernels centred on the samples that have them, and with a trace of one if asked for."""
        groups = tuple(
            replace(g, fitted=CentredKernels(g.fitted, unit_trace=unit_trace, n_threads=n_threads))
            for g in self.groups
        )
        return replace(self, groups=groups, is_centred=True)

    def grams(self) -> Iterator[Matrix]:
        """Yield the training Gram matrices in order, zero where a sample has no view."""
        found = {}
        for group in self.groups:
            inside = np.ix_(group.places, group.places)
            for m, K in zip(group.kernels, group.fitted.grams(), strict=True):
                found[int(m)] = np.zeros((self.n_samples, self.n_samples))
                found[int(m)][inside] = K
        yield from (found[m] for m in range(len(self)))

    def sources(self) -> list[Source]:
        """Return the same matrices as sources that make them a few rows at a time."""
        if self._whole is not None:
            return self._whole.sources()
        return [
            ScatteredSource(source, group.kernels, group.places, self.n_samples)
            for group in self.groups
            for source in group.fitted.sources()
        ]

    def for_prediction(self) -> GappedKernels:
        """Return what new samples need, without what only training needed."""
        groups = tuple(replace(g, fitted=g.fitted.for_prediction()) for g in self.groups)
        return replace(self, groups=groups)

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, kernel m of the rows of X against the training samples).

        A row without the view is that of the mean of the samples that have it.
        """
        columns = np.arange(self.n_samples) if columns is None else columns
        wanted = list(self._wanted(X, which))
        if not all(seen.all() for *_, seen in wanted):
            self.sees(X)  # says if a sample has no view at all
        for group, mine, seen in wanted:
            place = np.full(self.n_samples, -1)
            place[group.places] = np.arange(group.places.size)
            inside = np.flatnonzero(place[columns] >= 0)
            rows = np.flatnonzero(seen)
            if rows.size == 0:
                yield from ((int(group.kernels[k]), self._absent(group, k, seen.size, columns)) for k in mine)
                continue
            read = group.fitted.cross(group.reader.take(X, rows), mine, place[columns[inside]])
            for k, K in read:
                if rows.size == seen.size and inside.size == columns.size:
                    yield int(group.kernels[k]), K
                    continue
                full = np.zeros((seen.size, columns.size))
                if rows.size < seen.size:
                    full[~seen] = self._absent(group, k, 1, columns)
                full[np.ix_(rows, inside)] = K
                yield int(group.kernels[k]), full

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, kernel m between the rows of X and those of Z), both sets of new samples."""
        seen_z = self.sees(Z)
        for group, mine, seen in self._wanted(X, which):
            for k in mine:
                m = int(group.kernels[k])
                x, z = np.flatnonzero(seen), np.flatnonzero(seen_z[:, m])
                full = np.zeros((seen.size, seen_z.shape[0]))
                if not self.is_centred and x.size * z.size < full.size:
                    raise ValueError(
                        "Kernels between two sets of new samples with missing views are known only if "
                        "training samples had some too; leave Z out, or impute them."
                    )
                if x.size and z.size:
                    sides = group.reader.take(X, x), group.reader.take(Z, z)
                    full[np.ix_(x, z)] = next(group.fitted.between(*sides, np.array([k])))[1]
                yield m, full

    def _wanted(self, X: Any, which: Indices | None) -> Iterator[tuple[Group, Indices, AnyArray]]:
        """Yield groups with those of their kernels that are wanted and that the same rows of X have."""
        wanted = np.arange(len(self)) if which is None else which
        for group in self.groups:
            mine = np.flatnonzero(np.isin(group.kernels, wanted))
            if mine.size:
                seen = group.reader.sees(X)
                for members, rows in grouped([seen[:, k] for k in mine]):
                    yield group, mine[members], rows

    def _absent(self, group: Group, k: int, n_rows: int, columns: Indices) -> Matrix:
        """Return rows of kernel k for samples without its view."""
        if self.is_centred:
            return np.zeros((n_rows, columns.size))
        return np.tile(self._means[group.kernels[k]][columns], (n_rows, 1))

    @cached_property
    def _means(self) -> Matrix:
        """The rows of the means of the training samples, where these have all views."""
        assert self._whole is not None
        try:
            sources = self._whole.sources()
        except IndexError:
            raise ValueError(
                "Precomputed kernels that were fitted on samples with all views do not know the mean of the "
                "samples, which stands for a missing one; fit SampleAdaptiveMKLClassifier, which centres "
                "them, with max_flips above 0, or impute them."
            ) from None
        return np.asarray(
            LazyGrams(sources, len(self), self.n_samples).images(np.ones(self.n_samples)) / self.n_samples
        )


class ScatteredSource(Source):
    """A source of some samples, seen as one of all: entries of the others are zero."""

    def __init__(self, source: Source, kernels: Indices, places: Indices, n_samples: int) -> None:
        super().__init__([int(kernels[m]) for m in source.kernels], n_samples)
        source.check()
        self._source, self._numbers = source, kernels
        self._place = np.full(n_samples, -1)
        self._place[places] = np.arange(places.size)
        self._places = places

    @property
    def is_whole(self) -> bool:
        return self._source.is_whole

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        left, right = self._place[rows], self._place[columns]
        inside = np.flatnonzero(left >= 0), np.flatnonzero(right >= 0)
        own = {m for m in self._source.kernels if which is None or int(self._numbers[m]) in which}
        if inside[0].size == 0 or inside[1].size == 0:
            yield from ((int(self._numbers[m]), np.zeros((left.size, right.size))) for m in own)
            return
        for m, K in self._source.block(left[inside[0]], right[inside[1]], own):
            full = np.zeros((left.size, right.size))
            full[np.ix_(*inside)] = K
            yield int(self._numbers[m]), full

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m, diagonal in self._source.diagonals():
            full = np.zeros(self.n_samples)
            full[self._places] = diagonal
            yield int(self._numbers[m]), full


def require_a_view(available: AnyArray) -> None:
    """Raise ValueError unless every sample has a kernel."""
    without = np.flatnonzero(~available.any(axis=1))
    if without.size:
        raise ValueError(
            f"Sample {without[0]} has no view at all ({without.size} such in all): every value is NaN; leave "
            "them out."
        )


def grouped(present: Sequence[AnyArray]) -> list[tuple[Indices, AnyArray]]:
    """Return the kernels in groups of equal presence, in order of their first: (numbers, presence)."""
    found: dict[bytes, list[int]] = {}
    for m, here in enumerate(present):
        found.setdefault(here.tobytes(), []).append(m)
    return [(np.array(members), present[members[0]]) for members in found.values()]
