"""The kernels of a fitted bank as sources of rows."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix, Span, Vector
from kernelweave.bank.tables import is_sparse
from kernelweave.gram import Source
from kernelweave.kernels.pairs import Pairs

# Kernels of up to this many variables are smooth enough to be told by few samples.
FEW_VARIABLES = 2


class TrainingKernels(Protocol):
    """What the sources ask of their bank."""

    @property
    def n_samples(self) -> int: ...

    def training(self, place: int) -> Any: ...

    def block(self, m: int, pairs: Pairs, rows: Span, columns: Span) -> Matrix: ...

    def family(self, m: int) -> tuple[str, float, float] | None: ...

    def gram(self, m: int) -> Matrix: ...

    def diagonal(self, m: int) -> Vector: ...


@dataclass(frozen=True)
class Family:
    """Kernels factor exp(-rate d) of one distance, as the compiled loops take them."""

    metric: str
    arguments: tuple[AnyArray, Vector, Vector]

    @classmethod
    def of(cls, metric: str, members: list[tuple[int, float, float]]) -> Family:
        places, rates, factors = zip(*members, strict=True)
        return cls(metric, (np.array(places, dtype=np.uint64), np.array(rates), np.array(factors)))

    @property
    def is_empty(self) -> bool:
        return self.arguments[0].size == 0

    def only(self, which: Container[int] | None) -> Family:
        """Return those of its kernels that are among some."""
        if which is None:
            return self
        places, rates, factors = self.arguments
        kept = np.array([int(m) in which for m in places])
        return Family(self.metric, (places[kept], rates[kept], factors[kept]))


class RowSource(Source):
    """Kernels of one block of features: their rows are made together, from the distances they share."""

    def __init__(self, bank: TrainingKernels, kernel: int, place: int) -> None:
        super().__init__((kernel,), bank.n_samples)
        self.place = place
        self._bank = bank

    @property
    def is_smooth(self) -> bool:
        X = self._bank.training(self.place)
        return not is_sparse(X) and X.shape[1] <= FEW_VARIABLES

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        X = self._bank.training(self.place)
        pairs = Pairs(X[rows], X[columns])
        for m in self.kernels:
            if which is None or m in which:
                yield m, self._bank.block(m, pairs, rows, columns)

    def pack(self, rows: slice, shifts: Matrix, packed: AnyArray) -> None:
        pairs = self._pairs(rows)
        for family in self._families:
            D = self._distances(pairs, family, rows)
            _core.exp_pack(D, rows.start, *family.arguments, shifts, packed)
        for m in self._others:
            K = self._bank.block(m, pairs, rows, slice(0, rows.stop))
            _core.pack(K, rows.start, shifts[m], packed[m])

    def add_images(self, rows: slice, V: Matrix, out: AnyArray, which: Container[int] | None = None) -> None:
        pairs = self._pairs(rows)
        for family in (family.only(which) for family in self._families):
            if family.is_empty:
                continue
            D = self._distances(pairs, family, rows)
            _core.exp_images(D, rows.start, *family.arguments, V, out)
        for m in self._others:
            if which is not None and m not in which:
                continue
            K = self._bank.block(m, pairs, rows, slice(0, rows.stop))
            _core.add_images(K, rows.start, V, out[m])

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m in self.kernels:
            yield m, self._bank.diagonal(m)

    def _pairs(self, rows: slice) -> Pairs:
        X = self._bank.training(self.place)
        return Pairs(X[rows], X[: rows.stop])

    def _distances(self, pairs: Pairs, family: Family, rows: slice) -> Matrix:
        """Return the distances of a family; where they overflowed, its kernels are judged one by one."""
        if not pairs.is_finite(family.metric):
            for m in family.arguments[0]:
                self._bank.block(int(m), pairs, rows, slice(0, rows.stop))
        return pairs.matrix(family.metric)

    @cached_property
    def _families(self) -> list[Family]:
        """The kernels that are exponentials of one distance, which are made in one go."""
        found: dict[str, list[tuple[int, float, float]]] = {}
        for m in self.kernels:
            family = self._bank.family(m)
            if family is not None:
                found.setdefault(family[0], []).append((m, *family[1:]))
        return [Family.of(metric, members) for metric, members in found.items()]

    @cached_property
    def _others(self) -> list[int]:
        """The kernels that are made one by one."""
        return [m for m in self.kernels if self._bank.family(m) is None]


class WholeSource(Source):
    """A kernel whose training Gram is made as a whole, because it has to be checked."""

    def __init__(self, bank: TrainingKernels, kernel: int) -> None:
        super().__init__((kernel,), bank.n_samples)
        self._bank = bank

    @property
    def is_whole(self) -> bool:
        return True

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        if which is None or self.kernels[0] in which:
            yield self.kernels[0], self._bank.gram(self.kernels[0])[rows][:, columns]

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        yield self.kernels[0], self._bank.diagonal(self.kernels[0])
