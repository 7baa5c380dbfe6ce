"""Kernels of strings: common k-mers, and common subsequences with gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.kernels.base import Kernel, Reads, Rows, require_whole
from kernelweave.kernels.counts import CountKernel, Counts, inner_counts
from kernelweave.kernels.objects import only_column, require
from kernelweave.kernels.pairs import Pairs


@dataclass
class Spectrum(CountKernel):
    r"""The spectrum kernel k(s, t) = sum_u |s|_u |t|_u over all strings u of k letters, |s|_u how often s has u.

    Parameters
    ----------
    k : whole number >= 1, the length of the substrings (k-mers), or a pair (shortest, longest) for all lengths
        from one to the other.

    Notes
    -----
    [Leslie02]. It reads one column of text. Long strings have large values; ``Spectrum(3).normalized()``, or the
    scaling ``UnitDiagonal()``, divides by sqrt(k(s, s) k(t, t)). The k-mers are counted once, and products with
    the kernel cost one pass over the counts: time and memory grow in proportion to the letters.
    Differs from the paper: k-mers are counted in a table, not in a suffix tree.

    Examples
    --------
    >>> Spectrum(2)(["GATTACA", "ATTAC"])
    array([[6., 4.],
           [4., 4.]])
    >>> Spectrum((1, 3)).label
    'spectrum(k=1..3)'

    """

    is_inner = True
    reads: ClassVar[Reads] = "objects"

    k: int | tuple[int, int] = 3

    @property
    def label(self) -> str:
        first, last = self._ends
        return f"spectrum(k={first})" if first == last else f"spectrum(k={first}..{last})"

    @property
    def _ends(self) -> tuple[Any, Any]:
        """The shortest and the longest length."""
        return (self.k[0], self.k[1]) if isinstance(self.k, tuple | list) else (self.k, self.k)

    def check(self) -> None:
        first, last = self._ends if np.ndim(self.k) == 0 or len(np.atleast_1d(self.k)) == 2 else (0, 0)
        whole = all(isinstance(end, Integral) and not isinstance(end, bool) for end in (first, last))
        if not whole or not 1 <= first <= last:
            raise ValueError(
                f"Spectrum cannot use k={self.k!r}; it has to be a whole number >= 1, or a pair such as (1, 4)."
            )

    def tokens(self, X: Rows) -> Iterator[Mapping[Hashable, int]]:
        first, last = self._ends
        for text in texts(X, self.label):
            yield Counter(text[i : i + k] for k in range(first, last + 1) for i in range(len(text) - k + 1))

    def from_counts(self, left: Counts, right: Counts) -> Matrix:
        return inner_counts(left, right)

    def diagonal_of_counts(self, counts: Counts) -> Vector:
        return counts.squares


@dataclass
class Subsequence(Kernel):
    r"""The gap-weighted subsequence kernel: k(s, t) = sum_u sum_{i: u = s[i]} sum_{j: u = t[j]} decay^(l(i) + l(j)).

    The u are all strings of ``length`` letters, i and j the places where s and t have them in order, perhaps with
    gaps, and l(i) = last place - first place + 1.

    Parameters
    ----------
    length : whole number >= 1, of letters in a subsequence.
    decay : number above 0 and at most 1; how much a letter of the stretch counts. Near 0 gaps hardly count, at 1
        they count like the subsequence itself.

    Notes
    -----
    [Lodhi02]. It reads one column of text. A pair costs length x |s| x |t| steps. Values grow with the
    strings: ``Subsequence().normalized()``, or the scaling ``UnitDiagonal()``, divides by sqrt(k(s, s) k(t, t)).
    Symbols: n -> length, lambda -> decay.
    Differs from the paper: nothing; the sums of K' and K'' run over rows of one table.

    Examples
    --------
    >>> Subsequence(length=2, decay=0.5)(["cat", "car"]) * 64
    array([[9., 4.],
           [4., 9.]])

    """

    reads: ClassVar[Reads] = "objects"

    length: int = 3
    decay: float = 0.5

    @property
    def label(self) -> str:
        return f"subsequence(length={self.length}, decay={self.decay:g})"

    def check(self) -> None:
        require_whole(self, "length", self.length)
        if not isinstance(self.decay, Real) or not 0.0 < self.decay <= 1.0:
            raise ValueError(
                f"Subsequence cannot use decay={self.decay!r}; it has to be a number above 0 and at most 1."
            )

    def matrix(self, pairs: Pairs) -> Matrix:
        left = letters(pairs.X, self.label)
        right = left if pairs.Z is None else letters(pairs.Z, self.label)
        K = np.empty((len(left[1]) - 1, len(right[1]) - 1))
        _core.subsequence_values(*left, *right, int(self.length), float(self.decay), pairs.Z is None, K)
        return K

    def diagonal_of(self, X: Rows) -> Vector:
        values, ends = letters(X, self.label)
        out = np.empty(len(ends) - 1)
        _core.subsequence_diagonal(values, ends, int(self.length), float(self.decay), out)
        return out


def texts(X: Rows, label: str) -> AnyArray:
    """Return the one column of text, checked."""
    column = only_column(X, label)
    require(column, lambda cell: isinstance(cell, str), label, "text")
    return column


def letters(X: Rows, label: str) -> tuple[AnyArray, AnyArray]:
    """Return the code points of all texts one after the other, and where each begins and the last ends."""
    column = texts(X, label)
    ends = np.cumsum([0, *(len(text) for text in column)], dtype=np.int64)
    # Lone surrogates are letters like others here.
    codes = "".join(column).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(codes, dtype=np.uint32), ends
