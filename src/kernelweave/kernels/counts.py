"""Samples as counts of tokens: how often a string has each k-mer, or a set each element."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.kernels.base import Kernel, Rows
from kernelweave.kernels.distances import is_sparse, squared_norms
from kernelweave.kernels.groups import KernelGroup
from kernelweave.kernels.pairs import Pairs

# Columns of which at least this share is not zero are faster in a dense matrix.
DENSE = 1.0 / 16.0


@dataclass(frozen=True)
class Counts:
    """How often each sample has each token.

    Parameters
    ----------
    known : counts of the tokens in ``vocabulary``, one row per sample, in one or more matrices side by side: dense
        where the training samples mostly have the token, CSR for the others.
    vocabulary : the columns of ``known``, by token.
    unknown : counts of the tokens beyond, as CSR.
    others : the columns of ``unknown``, by token.
    """

    known: tuple[Any, ...] = field(repr=False)
    vocabulary: Vocabulary = field(repr=False)
    unknown: Any = field(repr=False)
    others: Mapping[Hashable, int] = field(repr=False)

    ndim = 1  # rows of these are not rows of numbers of one width

    @classmethod
    def of(cls, samples: Iterable[Mapping[Hashable, int]], vocabulary: Vocabulary | None = None) -> Counts:
        """Return the counts of samples; without a vocabulary theirs is made of all their tokens."""
        known, unknown = _Entries(), _Entries()
        grown: dict[Hashable, int] = {}
        others: dict[Hashable, int] = {}
        for sample in samples:
            for token, count in sample.items():
                if vocabulary is None:
                    known.add(grown.setdefault(token, len(grown)), count)
                elif (column := vocabulary.columns.get(token)) is not None:
                    known.add(column, count)
                else:
                    unknown.add(others.setdefault(token, len(others)), count)
            known.end_row()
            unknown.end_row()
        counts = known.matrix(len(grown if vocabulary is None else vocabulary.columns))
        words = Vocabulary.of(grown, counts) if vocabulary is None else vocabulary
        return cls(words.parts(counts), words, unknown.matrix(len(others)), others)

    @classmethod
    def of_table(cls, X: Any) -> Counts:
        """Return a table of numbers >= 0, whose columns are the tokens."""
        return cls((X,), COLUMNS, sparse.csr_array((X.shape[0], 0)), {})

    @property
    def shape(self) -> tuple[int]:
        return (int(self.unknown.shape[0]),)

    def __getitem__(self, rows: Any) -> Counts:
        return replace(self, known=tuple(part[rows] for part in self.known), unknown=self.unknown[rows])

    @property
    def parts(self) -> tuple[Any, ...]:
        """All counts, in matrices side by side."""
        return *self.known, self.unknown

    @property
    def sizes(self) -> Vector:
        """The number of tokens of every sample."""
        sums = [np.asarray(part.sum(axis=1), dtype=np.float64).ravel() for part in self.parts]
        return np.asarray(np.sum(sums, axis=0))

    @property
    def squares(self) -> Vector:
        """The sum of squared counts of every sample."""
        return np.asarray(np.sum([squared_norms(part) for part in self.parts], axis=0))

    def present(self) -> Counts:
        """Return 1 for every token that a sample has."""
        return replace(self, known=tuple(map(_signs, self.known)), unknown=_signs(self.unknown))

    def sharing(self, other: Counts) -> Iterator[tuple[Any, Any]]:
        """Yield matrices of these samples and of others in pairs with the same columns."""
        if self.vocabulary is not other.vocabulary:
            raise ValueError("Counts can be compared only where they have one vocabulary.")
        yield from zip(self.known, other.known, strict=True)
        both = [token for token in self.others if token in other.others]
        if both and self.unknown.nnz and other.unknown.nnz:
            yield (
                self.unknown[:, [self.others[token] for token in both]],
                other.unknown[:, [other.others[token] for token in both]],
            )


@dataclass(frozen=True)
class Vocabulary:
    """Tokens with their columns, and which of the columns are held dense."""

    columns: Mapping[Hashable, int] = field(repr=False)
    frequent: AnyArray = field(repr=False)
    rare: AnyArray = field(repr=False)

    @classmethod
    def of(cls, columns: Mapping[Hashable, int], counts: Any) -> Vocabulary:
        """Return the vocabulary of training samples with these counts."""
        often = np.bincount(counts.indices, minlength=len(columns)) >= DENSE * counts.shape[0]
        return cls(columns, np.flatnonzero(often), np.flatnonzero(~often))

    def parts(self, counts: Any) -> tuple[Any, ...]:
        """Return counts in these columns as a dense matrix and a CSR one, where they have columns."""
        dense, rest = counts[:, self.frequent].toarray(), counts[:, self.rare]
        return tuple(part for part in (dense, rest) if part.shape[1])


# The vocabulary of tables of numbers, whose columns are the tokens.
COLUMNS = Vocabulary({}, np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))


class _Entries:
    """A CSR matrix that grows by entries."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.values: list[int] = []
        self.ends: list[int] = [0]

    def add(self, column: int, value: int) -> None:
        self.columns.append(column)
        self.values.append(value)

    def end_row(self) -> None:
        self.ends.append(len(self.columns))

    def matrix(self, n_columns: int) -> Any:
        parts = np.array(self.values, dtype=np.float64), np.array(self.columns, dtype=np.int64), self.ends
        found = sparse.csr_array(parts, shape=(len(self.ends) - 1, n_columns))
        found.sort_indices()
        return found


def _signs(counts: Any) -> Any:
    return counts.sign() if is_sparse(counts) else np.sign(counts)


class CountKernel(Kernel):
    """A kernel of samples that are bags of tokens: it says what the tokens are, and compares their counts."""

    # Whether k(x, z) is the inner product of the counts, so that products need no pairs of samples.
    is_inner = False

    @abstractmethod
    def tokens(self, X: Rows) -> Iterator[Mapping[Hashable, int]]:
        """Yield the tokens of every sample with how often it has them."""

    @abstractmethod
    def from_counts(self, left: Counts, right: Counts) -> Matrix:
        """Return the kernel matrix of counts with one vocabulary."""

    @abstractmethod
    def diagonal_of_counts(self, counts: Counts) -> Vector:
        """Return k(x, x) of every sample."""

    def counts(self, X: Rows, vocabulary: Vocabulary | None = None) -> Counts:
        """Return the counts of samples in the columns of a vocabulary, or of their own tokens."""
        return Counts.of(self.tokens(X), vocabulary)

    def matrix(self, pairs: Pairs) -> Matrix:
        right = self.counts(pairs.X if pairs.Z is None else pairs.Z)
        left = right if pairs.Z is None else self.counts(pairs.X, right.vocabulary)
        K = self.from_counts(left, right)
        if pairs.Z is None:
            _core.mirror(K)  # the two sides of the diagonal may round differently
        return K

    def diagonal_of(self, X: Rows) -> Vector:
        return self.diagonal_of_counts(self.counts(X))

    def own_group(self, X: Rows) -> KernelGroup | None:
        return (InnerCountGroup if self.is_inner else CountGroup)(self, X)


class CountGroup(KernelGroup):
    """One kernel of counts; tokens are counted once, those of new samples in the training samples' columns."""

    block_entries = 1 << 22  # sparse products prepare the right-hand side for every block

    def __init__(self, kernel: CountKernel, X: Rows) -> None:
        super().__init__([kernel])
        self.kernel = kernel
        self.training = kernel.counts(X)

    def rows(self, X: Rows) -> Counts:
        return self.kernel.counts(X, self.training.vocabulary)

    def training_rows(self, X: Rows) -> Counts:  # noqa: ARG002 - counted already
        return self.training

    def values(self, left: Counts, right: Counts) -> Iterator[Matrix]:
        yield self.kernel.from_counts(left, right)

    def diagonals(self, samples: Counts) -> Matrix:
        return self.kernel.diagonal_of_counts(samples)[None]


class InnerCountGroup(CountGroup):
    """A kernel that is the inner product of counts: products cost one pass over the counts."""

    is_cheap = True

    def products(self, left: Counts, right: Counts, coef: Matrix, n_threads: int = 1) -> AnyArray:  # noqa: ARG002
        product = np.zeros((1, left.shape[0], coef.shape[1]))
        for A, B in left.sharing(right):
            product[0] += A @ (B.T @ coef)
        return product

    def energies(self, samples: Counts, coef: Matrix, n_threads: int = 1) -> Vector:  # noqa: ARG002
        # ½ ||X'V||²: never negative, unlike ½ V'(XX')V.
        return np.array([sum(0.5 * float(np.sum(np.asarray(part.T @ coef) ** 2)) for part in samples.parts)])


def inner_counts(left: Counts, right: Counts) -> Matrix:
    """Return the inner products of counts as a dense matrix."""
    return _total(left, right, lambda A, B: A @ B.T)


def shared_counts(left: Counts, right: Counts) -> Matrix:
    """Return Σ min(x, z) of counts."""
    return _total(left, right, minima)


def _total(left: Counts, right: Counts, of: Callable[[Any, Any], Any]) -> Matrix:
    """Return the sum of a function over matrices with the same columns, a few rows at a time."""
    total = np.empty((left.shape[0], right.shape[0]))
    parts = [(A, B.tocsc() if is_sparse(B) else B) for A, B in left.sharing(right)]
    step = max(1, (1 << 22) // max(right.shape[0], 1))
    for start in range(0, left.shape[0], step):
        rows = slice(start, start + step)
        total[rows] = 0.0
        for A, B in parts:
            found = of(A[rows], B)
            total[rows] += found.toarray() if is_sparse(found) else found
    return total


def minima(X: Any, Z: Any) -> Matrix:
    """Return Σ_k min(x_k, z_k) for all rows of two matrices >= 0, dense or sparse."""
    if is_sparse(X) or is_sparse(Z):
        return _sparse_minima(sparse.csr_array(X), sparse.csc_array(Z))
    if _is_binary(X) and _is_binary(Z):
        return np.asarray(X @ Z.T)
    out = np.empty((X.shape[0], Z.shape[0]))
    step = max(1, (1 << 18) // max(Z.size, 1))
    for start in range(0, X.shape[0], step):
        rows = slice(start, start + step)
        out[rows] = np.minimum(X[rows, None], Z).sum(axis=2)
    return out


def _is_binary(values: AnyArray) -> bool:
    """Tell whether all numbers are 0 or 1, so that the smaller of two is their product."""
    return bool(((values == 0.0) | (values == 1.0)).all())


def _sparse_minima(X: Any, Z: Any) -> Matrix:
    if _is_binary(X.data) and _is_binary(Z.data):
        return np.asarray((X @ Z.T).toarray())
    out, lengths = np.zeros((X.shape[0], Z.shape[0])), np.diff(Z.indptr)
    for i in range(X.shape[0]):
        entries = slice(X.indptr[i], X.indptr[i + 1])
        own, counts = X.indices[entries], lengths[X.indices[entries]]
        # The entries of Z in the columns of this row, one column after the other.
        first = np.repeat(Z.indptr[own] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        where = first + np.arange(first.size)
        least = np.minimum(np.repeat(X.data[entries], counts), Z.data[where])
        out[i] = np.bincount(Z.indices[where], least, minlength=Z.shape[0])
    return out
