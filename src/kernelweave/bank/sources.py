"""The kernels of a fitted bank as sources of rows."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix, Span, Vector
from kernelweave.gram import BlockSource
from kernelweave.gram.lowrank.grid import ORDER, Grid, Knots
from kernelweave.kernels.pairs import Pairs
from kernelweave.views.tables import is_sparse

# Kernels of up to this many variables are smooth enough to be told by few samples.
FEW_VARIABLES = 2
# A grid pays if it has at most one knot for so many samples: products cost the square of both.
SAVES = 2


class KernelsAtPoints(Protocol):
    """What the sources ask of their bank."""

    @property
    def n_samples(self) -> int: ...

    def training(self, place: int) -> Any: ...

    def block(self, m: int, pairs: Pairs, rows: Span, columns: Span) -> Matrix: ...

    def family(self, m: int) -> tuple[str, float, float] | None: ...

    def gram(self, m: int) -> Matrix: ...

    def diagonal(self, m: int, rows: Any = None) -> Vector: ...

    def bend(self, m: int, order: int) -> float: ...


@dataclass(frozen=True)
class AtPoints:
    """The kernels of a bank at other points than its samples, if they are scaled by no more than a factor."""

    bank: KernelsAtPoints
    points: Matrix

    @property
    def n_samples(self) -> int:
        return int(self.points.shape[0])

    def training(self, place: int) -> Matrix:  # noqa: ARG002 - all kernels are of one block
        return self.points

    def block(self, m: int, pairs: Pairs, rows: Span, columns: Span) -> Matrix:
        return self.bank.block(m, pairs, rows, columns)

    def family(self, m: int) -> tuple[str, float, float] | None:
        return self.bank.family(m)

    def gram(self, m: int) -> Matrix:
        return self.bank.block(m, Pairs(self.points), slice(None), slice(None))

    def diagonal(self, m: int, rows: Any = None) -> Vector:
        return self.bank.diagonal(m, self.points if rows is None else rows)

    def bend(self, m: int, order: int) -> float:
        return self.bank.bend(m, order)


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


class RowSource(BlockSource):
    """Kernels of one block of features: their rows are made together, from the distances they share.

    ``own`` says for each of its kernels which of the bank's it is.
    """

    def __init__(self, bank: KernelsAtPoints, own: dict[int, int], place: int) -> None:
        super().__init__(tuple(own), bank.n_samples)
        self.place = place
        self._bank, self._own = bank, own

    def renumbered(self, places: dict[int, int]) -> RowSource:
        own = {places[m]: one for m, one in self._own.items() if m in places}
        return RowSource(self._bank, own, self.place)

    def knots(self) -> Knots | None:
        X, kernels = self._bank.training(self.place), self._own.values()
        if is_sparse(X) or X.shape[1] != 1:
            return None
        bends = np.array([self._bank.bend(m, ORDER) for m in kernels])
        with np.errstate(over="ignore"):
            near = bool(np.isfinite(np.square(2.0 * X)).all())  # distances that overflow are judged elsewhere
        if not near or not np.isfinite(bends).all():
            return None
        grid = Grid.over(X[:, 0], float(bends.max()))
        if SAVES * grid.n_knots > self.n_samples:
            return None
        points = AtPoints(self._bank, grid.knots[:, None])
        return Knots(grid, RowSource(points, dict(enumerate(kernels)), self.place), bends)

    @property
    def may_be_low_rank(self) -> bool:
        X = self._bank.training(self.place)
        return not is_sparse(X) and X.shape[1] <= FEW_VARIABLES

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        X = self._bank.training(self.place)
        pairs = Pairs(X[rows], X[columns])
        for m in self.kernels:
            if which is None or m in which:
                yield m, self._bank.block(self._own[m], pairs, rows, columns)

    def pack(self, rows: slice, shifts: Matrix, packed: AnyArray) -> None:
        pairs = self._pairs(rows)
        for family in self._families:
            D = self._distances(pairs, family, rows, slice(0, rows.stop))
            _core.exp_pack(D, rows.start, *family.arguments, shifts, packed)
        for m in self._others:
            K = self._bank.block(self._own[m], pairs, rows, slice(0, rows.stop))
            _core.pack(K, rows.start, shifts[m], packed[m])

    def add_matvecs(self, rows: slice, V: Matrix, out: AnyArray, which: Container[int] | None = None) -> None:
        pairs = self._pairs(rows)
        for family in (family.only(which) for family in self._families):
            if family.is_empty:
                continue
            D = self._distances(pairs, family, rows, slice(0, rows.stop))
            _core.exp_add_matvecs(D, rows.start, *family.arguments, V, out)
        for m in self._others:
            if which is not None and m not in which:
                continue
            K = self._bank.block(self._own[m], pairs, rows, slice(0, rows.stop))
            _core.add_matvecs(K, rows.start, V, out[m])

    def add_weighted_sum(self, rows: Span, columns: Span, weights: Vector, out: Matrix) -> None:
        X = self._bank.training(self.place)
        pairs = Pairs(X[rows], X[columns])
        for family in self._families:
            places, rates, factors = family.arguments
            active = weights[places] != 0.0
            if active.any():
                D = np.ascontiguousarray(self._distances(pairs, family, rows, columns))
                _core.exp_sum(D, rates[active], (weights[places] * factors)[active], out)
        for m in self._others:
            if weights[m] != 0.0:
                out += weights[m] * self._bank.block(self._own[m], pairs, rows, columns)

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m, own in self._own.items():
            yield m, self._bank.diagonal(own)

    def _pairs(self, rows: slice) -> Pairs:
        X = self._bank.training(self.place)
        return Pairs(X[rows], X[: rows.stop])

    def _distances(self, pairs: Pairs, family: Family, rows: Span, columns: Span) -> Matrix:
        """Return the distances of a family; where they overflowed, its kernels are judged one by one."""
        if not pairs.is_finite(family.metric):
            for m in family.arguments[0]:
                self._bank.block(self._own[int(m)], pairs, rows, columns)
        return pairs.matrix(family.metric)

    @cached_property
    def _families(self) -> list[Family]:
        """The kernels that are exponentials of one distance, which are made in one go."""
        found: dict[str, list[tuple[int, float, float]]] = {}
        for m, own in self._own.items():
            family = self._bank.family(own)
            if family is not None:
                found.setdefault(family[0], []).append((m, *family[1:]))
        return [Family.of(metric, members) for metric, members in found.items()]

    @cached_property
    def _others(self) -> list[int]:
        """The kernels that are made one by one."""
        return [m for m, own in self._own.items() if self._bank.family(own) is None]


class WholeSource(BlockSource):
    """A kernel whose training Gram is made as a whole, because it has to be checked."""

    def __init__(self, bank: KernelsAtPoints, kernel: int) -> None:
        super().__init__((kernel,), bank.n_samples)
        self._bank = bank

    @property
    def needs_all_rows(self) -> bool:
        return True

    def block(
        self, rows: Span, columns: Span, which: Container[int] | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        if which is None or self.kernels[0] in which:
            yield self.kernels[0], self._bank.gram(self.kernels[0])[rows][:, columns]

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        yield self.kernels[0], self._bank.diagonal(self.kernels[0])
