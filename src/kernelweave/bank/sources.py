"""The kernels of a fitted bank as sources of rows."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, Protocol

from kernelweave._typing import Matrix, Span, Vector
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

    def gram(self, m: int) -> Matrix: ...

    def diagonal(self, m: int) -> Vector: ...


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

    def diagonals(self) -> Iterator[tuple[int, Vector]]:
        for m in self.kernels:
            yield m, self._bank.diagonal(m)


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
