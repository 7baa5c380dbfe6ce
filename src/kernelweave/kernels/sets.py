"""Kernels of sets, bags and histograms: what two samples share, as it is or as a part of what they have."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.kernels.base import Reads, Rows
from kernelweave.kernels.counts import CountKernel, Counts, Vocabulary, shared_counts
from kernelweave.kernels.objects import are_objects, only_column, require


class SharedCountKernel(CountKernel):
    """A kernel of S = sum_k min(x_k, z_k), of counts of elements or of columns of numbers >= 0.

    Subclasses are dataclasses with a field ``separator``, at which text is cut into elements.
    """

    accepts_sparse: ClassVar[bool] = True
    reads: ClassVar[Reads] = "either"

    stem: ClassVar[str]
    separator: str | None

    @property
    def label(self) -> str:
        return self.stem if self.separator is None else f"{self.stem}(separator={self.separator!r})"

    def check(self) -> None:
        if self.separator is not None and (not self.separator or not isinstance(self.separator, str)):
            raise ValueError(
                f"{type(self).__name__} cannot use separator={self.separator!r}; it has to be text such as ','."
            )

    def counts(self, X: Rows, vocabulary: Vocabulary | None = None) -> Counts:
        if are_objects(X):
            return super().counts(X, vocabulary)
        lowest = float(X.min()) if X.shape[0] * X.shape[1] else 0.0
        if lowest < 0.0:
            raise ValueError(
                f"{self.label} needs numbers >= 0, received {lowest:g}; use counts, shares or 0 and 1."
            )
        return Counts.of_table(X)

    def tokens(self, X: Rows) -> Iterator[Mapping[Hashable, int]]:
        column = only_column(X, self.label)
        kinds = (list, tuple, set, frozenset, np.ndarray, *(() if self.separator is None else (str,)))
        wanted = "lists, tuples, sets" + (
            " (give separator= for text)" if self.separator is None else ", text"
        )
        require(column, lambda cell: isinstance(cell, kinds), self.label, wanted)
        for cell in column:
            try:
                yield Counter(self._elements(cell))
            except TypeError as error:
                raise TypeError(f"{self.label} reads elements such as words and numbers: {error}.") from None

    def _elements(self, cell: Any) -> Any:
        if isinstance(cell, str):
            parts = (part.strip() for part in cell.split(self.separator))
            return [part for part in parts if part]
        return cell.tolist() if isinstance(cell, np.ndarray) else cell

    @abstractmethod
    def from_shared(self, S: Matrix, left: Vector, right: Vector) -> Matrix:
        """Return the kernel matrix of what pairs share, given how much each sample has; ``S`` may be changed."""

    def from_counts(self, left: Counts, right: Counts) -> Matrix:
        return self.from_shared(shared_counts(left, right), left.sizes, right.sizes)

    def diagonal_of_counts(self, counts: Counts) -> Vector:
        return np.ones(counts.shape[0])


def share(S: Matrix, left: Vector, right: Vector) -> Matrix:
    """Return S / (left + right - S), with 0 / 0 = 1: two samples that have nothing are alike."""
    union = left[:, None] + right - S
    return np.asarray(np.divide(S, union, out=np.ones_like(S), where=union > 0.0))


@dataclass
class Jaccard(SharedCountKernel):
    r"""The Jaccard kernel k(x, z) = |x ∩ z| / |x ∪ z| of sets; 1 for two empty ones.

    Parameters
    ----------
    separator : text at which cells of text are cut into elements, or None where cells are lists, tuples or sets.
        Columns of numbers >= 0 are sets too: a sample has the columns that are not 0. Repeats do not count.

    Notes
    -----
    [Ralaivola05], there called the Tanimoto kernel; k(x, x) = 1.
    Differs from the paper: two empty sets have k = 1, which is 0 / 0 there.

    Examples
    --------
    >>> Jaccard(separator=",")(["red, green", "green, blue", "green"]).round(2)
    array([[1.  , 0.33, 0.5 ],
           [0.33, 1.  , 0.5 ],
           [0.5 , 0.5 , 1.  ]])

    """

    stem: ClassVar[str] = "jaccard"

    separator: str | None = None

    def from_counts(self, left: Counts, right: Counts) -> Matrix:
        return super().from_counts(left.present(), right.present())

    def from_shared(self, S: Matrix, left: Vector, right: Vector) -> Matrix:
        return share(S, left, right)


@dataclass
class MinMax(SharedCountKernel):
    r"""The min-max kernel k(x, z) = sum_k min(x_k, z_k) / sum_k max(x_k, z_k) of counts; 1 for two empty samples.

    Parameters
    ----------
    separator : text at which cells of text are cut into elements, or None where cells are lists, tuples or sets.
        The x_k are how often x has element k, or columns of numbers >= 0 as they are.

    Notes
    -----
    [Ralaivola05]; k(x, x) = 1. Of sets it is the Jaccard kernel.
    Differs from the paper: two samples without anything have k = 1, which is 0 / 0 there.

    Examples
    --------
    >>> MinMax()([["a", "a", "b"], ["a", "b", "b", "b"]]).round(2)
    array([[1. , 0.4],
           [0.4, 1. ]])

    """

    stem: ClassVar[str] = "min_max"

    separator: str | None = None

    def from_shared(self, S: Matrix, left: Vector, right: Vector) -> Matrix:
        return share(S, left, right)


@dataclass
class Intersection(SharedCountKernel):
    r"""The histogram intersection kernel k(x, z) = sum_k min(x_k, z_k).

    Parameters
    ----------
    separator : text at which cells of text are cut into elements, or None where cells are lists, tuples or sets.
        The x_k are columns of numbers >= 0, or how often x has element k.

    Notes
    -----
    [Barla03]. Rows of one sum, such as shares, have the same k(x, x); else the scaling ``UnitDiagonal()`` evens
    them out.
    Differs from the paper: bins need not be whole numbers.

    Examples
    --------
    >>> Intersection()([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    array([[1. , 0.5],
           [0.5, 1. ]])

    """

    stem: ClassVar[str] = "intersection"

    separator: str | None = None

    def from_shared(self, S: Matrix, left: Vector, right: Vector) -> Matrix:  # noqa: ARG002
        return S

    def diagonal_of_counts(self, counts: Counts) -> Vector:
        return counts.sizes
