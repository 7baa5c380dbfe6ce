"""A bank after it saw the training data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from kernelweave._typing import Indices, Matrix, Span, Vector
from kernelweave.bank.layout import Block, PairwiseBlock
from kernelweave.bank.sources import RowSource, WholeSource
from kernelweave.gram import BlockSource
from kernelweave.kernels import Kernel, Scaling
from kernelweave.kernels.base import DistanceKernel, Formula
from kernelweave.kernels.fitted_scaling import FittedScaling, Multiplied, Side
from kernelweave.kernels.pairs import Pairs
from kernelweave.views.tables import is_sparse


@dataclass(frozen=True)
class Item:
    """One kernel of the bank: its name, what it computes, and on which of the bank's blocks."""

    name: str
    kernel: Kernel
    block: int
    scaling: Scaling | None


@dataclass(frozen=True)
class Learnt:
    """What one kernel learnt on the training samples: its own numbers and those of its scaling."""

    kernel: Kernel
    scaling: FittedScaling | None


class FittedBank:
    """The kernels of a bank on the training samples; made by ``KernelBank.fit``.

    It keeps the training block of every view, because new samples are compared with it. What the scalings
    learn is learnt when a Gram matrix is computed for the first time, so that none is computed twice.
    """

    def __init__(self, items: list[Item], blocks: list[Block | PairwiseBlock], X: Any) -> None:
        self._items = tuple(items)
        self._blocks = tuple(blocks)
        self._training = tuple(block.take(X) for block in blocks)
        self._learnt: list[Learnt | None] = [None] * len(items)
        for item in items:
            item.kernel.check()
            item.kernel.rows(self._training[item.block])  # says now whether it can read this block

    @property
    def names(self) -> tuple[str, ...]:
        """One readable name per kernel, all different, the same whatever the data."""
        return tuple(item.name for item in self._items)

    @property
    def view_names(self) -> tuple[str, ...]:
        """For every kernel the view it looks at."""
        return tuple(self._blocks[item.block].label for item in self._items)

    @property
    def n_samples(self) -> int:
        """The number of training samples."""
        return int(self._training[0].shape[0])

    @property
    def blocks(self) -> tuple[Block | PairwiseBlock, ...]:
        """The blocks of columns that the kernels look at."""
        return self._blocks

    @property
    def block_of_kernel(self) -> tuple[int, ...]:
        """For every kernel the number of its block."""
        return tuple(item.block for item in self._items)

    def given_matrices(self, n_threads: int = 1) -> None:
        """Return None: kernels are computed from the samples."""

    @property
    def makes_anew(self) -> bool:
        """Whether the matrices that ``grams`` yields are new ones, the caller's to change."""
        return all(item.kernel.by_rows for item in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def grams(self) -> Iterator[Matrix]:
        """Yield the scaled training Gram matrices in order, float64 and exactly symmetric."""
        pairs, current = None, -1
        for m, item in enumerate(self._items):
            if pairs is None or item.block != current:
                pairs, current = Pairs(self._training[item.block]), item.block
            yield self._gram(m, pairs)

    def sources(self) -> list[BlockSource]:
        """Return the scaled training kernels as sources of rows; neighbours on one block share distances."""
        found: list[BlockSource] = []
        for (place, by_rows), run in groupby(enumerate(self._items), _made_together):
            kernels, pairs = [m for m, _ in run], Pairs(self._training[place])
            if by_rows:
                for m in kernels:
                    self._learn(m, pairs)
                found.append(RowSource(self, dict(zip(kernels, kernels, strict=True)), place))
            else:
                found += [WholeSource(self, m) for m in kernels]
        return found

    def block(self, m: int, pairs: Pairs, rows: Span, columns: Span) -> Matrix:
        """Return a block of the scaled training Gram of kernel m, given its pairs of samples."""
        learnt = self._learnt[m]
        assert learnt is not None
        K = self._matrix(m, learnt.kernel, pairs)
        return K if learnt.scaling is None else learnt.scaling.block(K, rows, columns)

    def formula(self, m: int) -> tuple[int, Formula, Vector] | None:
        """Return (block, formula, f) of a kernel whose scaled training Gram is f_i f_j times its formula."""
        item, n = self._items[m], self.n_samples
        training = self._training[item.block]
        if not item.kernel.by_rows:
            return None
        learnt = self._learn(m, Pairs(training))
        formula = learnt.kernel.formula()
        factors = np.ones(n) if learnt.scaling is None else learnt.scaling.factors(n)
        return None if formula is None or factors is None else (item.block, formula, factors)

    def gram(self, m: int) -> Matrix:
        """Return the scaled training Gram of kernel m as a whole."""
        return self._gram(m, Pairs(self._training[self._items[m].block]))

    def smoothness(self, m: int, order: int) -> float:
        """Return the smoothness of kernel m between any points, see `Kernel.smoothness`."""
        learnt = self._learnt[m]
        assert learnt is not None
        plain = learnt.scaling is None or isinstance(learnt.scaling, Multiplied)
        return learnt.kernel.smoothness(order) if plain else np.inf

    def diagonal(self, m: int, rows: Any = None) -> Vector:
        """Return the diagonal of the scaled training Gram of kernel m, or k(x, x) of rows scaled alike."""
        training = self._training[self._items[m].block]
        learnt = self._learn(m, Pairs(training))
        diagonal = learnt.kernel.diagonal(training if rows is None else rows)
        return diagonal if learnt.scaling is None else learnt.scaling.train_diagonal(diagonal)

    def training(self, place: int) -> Any:
        """Return the training rows of a block."""
        return self._training[place]

    def rows(self, X: Any, place: int) -> Any:
        """Return the rows of a block for new samples."""
        return self._rows(X, place)

    def for_prediction(self) -> FittedBank:
        """Return the bank itself: new samples are compared with the training samples it keeps."""
        return self

    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m of the rows of X against the training samples).

        ``which`` names the kernels wanted (None: all), ``columns`` the training samples wanted (None: all).
        Only the views of the wanted kernels have to be in ``X``.
        """
        order = range(len(self)) if which is None else [int(m) for m in which]
        rows = {b: self._rows(X, b) for b in dict.fromkeys(self._items[m].block for m in order)}
        return self._cross(rows, order, columns)

    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m between the rows of X and those of Z), both sets of new samples."""
        for m in range(len(self)) if which is None else [int(m) for m in which]:
            item = self._items[m]
            if item.kernel.pairwise:
                raise ValueError(
                    f"Kernel {item.name!r} is known against the training samples only, so it has no values "
                    "between two sets of new samples; leave Z out."
                )
            training, x, z = self._training[item.block], self._rows(X, item.block), self._rows(Z, item.block)
            learnt = self._learn(m, Pairs(training))
            K = self._matrix(m, learnt.kernel, Pairs(x, z))
            if learnt.scaling is not None:
                sides = [
                    Side(self._matrix(m, learnt.kernel, Pairs(new, training)), learnt.kernel.diagonal(new))
                    for new in (x, z)
                ]
                K = learnt.scaling.between(K, *sides)
            yield m, K

    def _rows(self, X: Any, block: int) -> Any:
        rows = self._blocks[block].take(X)
        if is_sparse(self._training[block]):
            return type(self._training[block])(rows)
        return rows.toarray() if is_sparse(rows) else rows

    def _cross(
        self, rows: dict[int, Any], order: Any, columns: Indices | None
    ) -> Iterator[tuple[int, Matrix]]:
        training, pairs, current = None, None, None
        for m in order:
            item = self._items[m]
            if training is None or current is None or item.block != current[0]:
                training = Pairs(self._training[item.block])
            learnt = self._learn(m, training)
            partial = columns is not None and not (learnt.scaling and learnt.scaling.needs_full_rows)
            if pairs is None or current != (item.block, partial):
                pairs = self._pairs(item, rows[item.block], columns if partial else None)
                current = (item.block, partial)
            K = self._matrix(m, learnt.kernel, pairs)
            K = self._scaled(K, learnt, rows[item.block], columns if partial else None)
            yield m, K if partial or columns is None else K[:, columns]

    def _pairs(self, item: Item, rows: Any, columns: Indices | None) -> Pairs:
        training = self._training[item.block]
        if columns is None:
            return Pairs(rows, training)
        return Pairs(rows[:, columns] if item.kernel.pairwise else rows, training[columns])

    @staticmethod
    def _scaled(K: Matrix, learnt: Learnt, rows: Any, columns: Indices | None) -> Matrix:
        if learnt.scaling is None:
            return K
        diagonal = learnt.kernel.diagonal(rows) if learnt.scaling.needs_diagonal else None
        scaling = learnt.scaling if columns is None else learnt.scaling.restricted(columns)
        return scaling.rows(K, diagonal)

    def _learn(self, m: int, training: Pairs) -> Learnt:
        learnt = self._learnt[m]
        if learnt is not None:
            return learnt
        item, kernel = self._items[m], self._resolved(m, training)
        scaling = None
        if item.scaling is not None and item.kernel.by_rows:
            scaling = item.scaling.fit_diagonal(kernel.diagonal(training.X))
        if item.scaling is not None and scaling is None:
            scaling = item.scaling.fit(self._matrix(m, kernel, training))
        if scaling is not None and scaling.needs_diagonal and not kernel.knows_diagonal:
            raise ValueError(
                f"Kernel {item.name!r} cannot be scaled by {item.scaling}: a new row of it does not show "
                "k(x, x); scale the matrix beforehand, or use UnitTrace, UnitMean or Centering."
            )
        learnt = self._learnt[m] = Learnt(kernel, scaling)
        return learnt

    def _gram(self, m: int, training: Pairs) -> Matrix:
        learnt = self._learn(m, training)
        K = self._matrix(m, learnt.kernel, training)
        return K if learnt.scaling is None else learnt.scaling.train(K)

    def _resolved(self, m: int, training: Pairs) -> Kernel:
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow shows in the matrix
            return self._items[m].kernel.resolve_from(training)

    def _matrix(self, m: int, kernel: Kernel, pairs: Pairs) -> Matrix:
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow is an error that names the kernel
            K = kernel.matrix(pairs)
            # A function of a distance is finite where the distance is: one look serves all of its kernels.
            if isinstance(kernel, DistanceKernel):
                fine = pairs.is_finite(kernel.metric)
            else:
                fine = bool(np.isfinite(K.sum()))
        if not fine and not np.isfinite(K).all():
            raise ValueError(
                f"Kernel {self.names[m]!r} is not finite on these samples; standardise the columns of view "
                f"{self.view_names[m]!r}, or use a kernel that does not grow so fast."
            )
        return K


def _made_together(numbered: tuple[int, Item]) -> tuple[int, bool]:
    """Return what neighbours have in common that are one source."""
    return numbered[1].block, numbered[1].kernel.by_rows
