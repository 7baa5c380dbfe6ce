"""What every fitted bank offers to the layers above it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank.column_table import ColumnTable
from kernelweave.gram import KernelSource

# Rows are taken in slices, so that one kernel's block of new rows stays near 64 MB.
ENTRIES_PER_SLICE = 8_000_000


class FittedKernels(ABC):
    """M scaled kernels of the training samples, and of new samples against them.

    The matrices it yields may be shared with the user or between kernels: read them, do not write to them.
    """

    names: tuple[str, ...]  # one readable name per kernel, all different, the same whatever the data
    view_names: tuple[str, ...]  # for every kernel the view it looks at
    n_samples: int  # how many training samples there are

    def __len__(self) -> int:
        """Return the number of kernels."""
        return len(self.names)

    @property
    def columns(self) -> ColumnTable:
        """What was done with every column; empty for kernels that were given."""
        return ColumnTable()

    # -- training samples

    @property
    def complete(self) -> FittedKernels | None:
        """The kernels themselves, where no training sample lacks any; else None."""
        return self

    @abstractmethod
    def sources(self) -> list[KernelSource]:
        """Return where the values of the training kernels come from."""

    @property
    def holds_matrices(self) -> bool:
        """Whether the training kernels are matrices of the user, which can be read where they are."""
        return False

    def given_matrices(self, n_threads: int = 1) -> list[Matrix]:
        """Return the user's own matrices after checking them, where it holds them."""
        raise NotImplementedError

    @property
    def can_be_restricted(self) -> bool:
        """Whether `restricted` is there: the kernels of some samples follow from these samples alone."""
        return False

    def restricted(self, samples: Indices) -> FittedKernels:
        """Return the kernels of some of the training samples only; what was learnt on all of them stays."""
        raise NotImplementedError

    def grams(self) -> Iterator[Matrix]:
        """Yield the scaled training Gram matrices in order, float64 and exactly symmetric."""
        position = {int(m): source for source in self.sources() for m in source.kernels}
        every = slice(0, self.n_samples)
        for m in range(len(self)):
            [(_, K)] = position[m].block(every, every, [m])
            _core.mirror(K)  # the two sides of the diagonal may round differently
            yield K

    def numbered_grams(self) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, training Gram m) in an order in which kernels share what they have in common."""
        every = slice(0, self.n_samples)
        for source in self.sources():
            for m, K in source.block(every, every):
                _core.mirror(K)  # the two sides of the diagonal may round differently
                yield m, K

    def for_prediction(self) -> FittedKernels:
        """Return what new samples need, without what only training needed."""
        return self

    # -- new samples

    def check_rows(self, X: Any) -> None:  # noqa: B027 - most say what is wrong with a slice as well
        """Raise ValueError where a sample cannot be read, before the samples are cut into slices."""

    @abstractmethod
    def cross(
        self, X: Any, which: Indices | None = None, columns: Indices | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m of the rows of X against the training samples).

        ``which`` names the kernels wanted (None: all), ``columns`` the training samples wanted (None: all).
        """

    def diagonals(self, X: Any) -> Matrix:  # noqa: ARG002 - given matrices do not know
        """Return k_m(x, x) of the rows of X for every scaled kernel, of shape (rows, M)."""
        raise ValueError(
            "Rows of given kernels do not show k(x, x) of new samples, which the spread of predictions needs."
        )

    @abstractmethod
    def between(self, X: Any, Z: Any, which: Indices | None = None) -> Iterator[tuple[int, Matrix]]:
        """Yield (m, scaled kernel m between the rows of X and those of Z), both sets of new samples."""

    def products(
        self,
        X: Any,
        columns: Indices,
        coef: AnyArray,
        which: Indices,
        n_threads: int = 1,  # noqa: ARG002 - for those who stream
    ) -> AnyArray:
        """Return K_m(X, columns) coef for the kernels ``which``, of shape (kernels, rows, columns of coef).

        ``coef`` serves all kernels, or has a matrix for each of ``which``.
        """
        V = np.broadcast_to(coef, (which.size, *coef.shape[-2:]))
        parts = []
        for rows in slices(self, X):
            found = dict(self.cross(rows, which=which, columns=columns))
            parts.append(np.array([found[int(m)] @ V[place] for place, m in enumerate(which)]))
        return np.concatenate(parts, axis=1)

    def weighted_products(
        self, X: Any, columns: Indices, coef: Matrix, eta: Vector, n_threads: int = 1
    ) -> Matrix:
        """Return Σ_m eta_m K_m(X, columns) coef."""
        which = np.flatnonzero(eta)
        return np.asarray(np.tensordot(eta[which], self.products(X, columns, coef, which, n_threads), 1))


def slices(fitted: FittedKernels, X: Any) -> Iterator[Any]:
    """Yield the samples a few at a time."""
    size, n = max(1, ENTRIES_PER_SLICE // max(fitted.n_samples, 1)), n_rows(X)
    if isinstance(X, list | tuple) or n <= size:  # a list of kernel matrices is in memory already
        yield X
        return
    for start in range(0, n, size):
        yield _safe_indexing(X, slice(start, min(n, start + size)))


def n_rows(X: Any) -> int:
    """Return the number of samples, also of a list of kernel matrices."""
    return int(np.shape(X[0])[0]) if isinstance(X, list | tuple) else int(X.shape[0])


def wanted(n_kernels: int, which: Sequence[int] | Indices | None) -> list[int]:
    """Return the numbers of the kernels asked for; None: all."""
    return list(range(n_kernels)) if which is None else [int(m) for m in which]
