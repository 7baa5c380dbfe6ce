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
from kernelweave.kernels.base import Formula
from kernelweave.kernels.pairs import Pairs
from kernelweave.views.tables import is_sparse


class KernelsAtPoints(Protocol):
    """What the sources ask of their bank."""

    @property
    def n_samples(self) -> int: ...

    def training(self, place: int) -> Any: ...

    def block(self, m: int, pairs: Pairs, rows: Span, columns: Span) -> Matrix: ...

    def formula(self, m: int) -> tuple[int, Formula, Vector] | None: ...

    def gram(self, m: int) -> Matrix: ...

    def diagonal(self, m: int, rows: Any = None) -> Vector: ...

    def smoothness(self, m: int, order: int) -> float: ...


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

    def formula(self, m: int) -> tuple[int, Formula, Vector] | None:
        return self.bank.formula(m)

    def gram(self, m: int) -> Matrix:
        return self.bank.block(m, Pairs(self.points), slice(None), slice(None))

    def diagonal(self, m: int, rows: Any = None) -> Vector:
        return self.bank.diagonal(m, self.points if rows is None else rows)

    def smoothness(self, m: int, order: int) -> float:
        return self.bank.smoothness(m, order)


@dataclass(frozen=True)
class ExponentialGroup:
    """Kernels factor exp(-rate d) of one distance, as the compiled loops take them."""

    metric: str
    arguments: tuple[AnyArray, Vector, Vector]

    @classmethod
    def of(cls, metric: str, members: list[tuple[int, float, float]]) -> ExponentialGroup:
        places, rates, factors = zip(*members, strict=True)
        return cls(metric, (np.array(places, dtype=np.uint64), np.array(rates), np.array(factors)))

    @property
    def is_empty(self) -> bool:
        return self.arguments[0].size == 0

    def only(self, which: Container[int] | None) -> ExponentialGroup:
        """Return those of its kernels that are among some."""
        if which is None:
            return self
        places, rates, factors = self.arguments
        kept = np.array([int(m) in which for m in places])
        return ExponentialGroup(self.metric, (places[kept], rates[kept], factors[kept]))


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
        smoothness = np.array([self._bank.smoothness(m, ORDER) for m in kernels])
        with np.errstate(over="ignore"):
            near = bool(np.isfinite(np.square(2.0 * X)).all())  # overflow is reported elsewhere
        if not near or not np.isfinite(smoothness).all():
            return None
        grid = Grid.over(X[:, 0], float(smoothness.max()))
        if 2 * grid.n_knots > self.n_samples:  # products cost the square of both
            return None
        points = AtPoints(self._bank, grid.knots[:, None])
        return Knots(grid, RowSource(points, dict(enumerate(kernels)), self.place), smoothness)

    @property
    def may_be_low_rank(self) -> bool:
        X = self._bank.training(self.place)
        return not is_sparse(X) and X.shape[1] <= 2

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
        for group in self._exponentials:
            D = self._distances(pairs, group, rows, slice(0, rows.stop))
            _core.exp_pack(D, rows.start, *group.arguments, shifts, packed)
        for m in self._others:
            K = self._bank.block(self._own[m], pairs, rows, slice(0, rows.stop))
            _core.pack(K, rows.start, shifts[m], packed[m])

    def add_matvecs(self, rows: slice, V: Matrix, out: AnyArray, which: Container[int] | None = None) -> None:
        pairs = self._pairs(rows)
        for group in (group.only(which) for group in self._exponentials):
            if group.is_empty:
                continue
            D = self._distances(pairs, group, rows, slice(0, rows.stop))
            _core.exp_add_matvecs(D, rows.start, *group.arguments, V, out)
        for m in self._others:
            if which is not None and m not in which:
                continue
            K = self._bank.block(self._own[m], pairs, rows, slice(0, rows.stop))
            _core.add_matvecs(K, rows.start, V, out[m])

    def add_weighted_sum(self, rows: Span, columns: Span, weights: Vector, out: Matrix) -> None:
        X = self._bank.training(self.place)
        pairs = Pairs(X[rows], X[columns])
        for group in self._exponentials:
            places, rates, factors = group.arguments
            active = weights[places] != 0.0
            if active.any():
                D = np.ascontiguousarray(self._distances(pairs, group, rows, columns))
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

    def _distances(self, pairs: Pairs, group: ExponentialGroup, rows: Span, columns: Span) -> Matrix:
        """Return the distances of a group; where they overflowed, its kernels are checked one by one."""
        if not pairs.is_finite(group.metric):
            for m in group.arguments[0]:
                self._bank.block(self._own[int(m)], pairs, rows, columns)
        return pairs.matrix(group.metric)

    @cached_property
    def _exponentials(self) -> list[ExponentialGroup]:
        """The kernels that are exponentials of one distance: they are computed together."""
        found: dict[str, list[tuple[int, float, float]]] = {}
        for m, own in self._own.items():
            known = self._bank.formula(own)
            if known is None or known[1].function != "exp" or (known[2] != known[2][0]).any():
                continue
            _, formula, factors = known
            found.setdefault(formula.argument, []).append((m, formula.gamma, float(factors[0]) ** 2))
        return [ExponentialGroup.of(metric, members) for metric, members in found.items()]

    @cached_property
    def _others(self) -> list[int]:
        """The kernels that are computed one by one."""
        together = {int(m) for group in self._exponentials for m in group.arguments[0]}
        return [m for m in self._own if m not in together]


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
