"""Kernels of boolean columns: how many conjunctions, or disjunctions, of columns two samples both satisfy."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import comb, log
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.kernels.base import Kernel, Rows, require_whole
from kernelweave.kernels.distances import is_sparse, squared_norms
from kernelweave.kernels.pairs import Pairs


class BooleanKernel(Kernel):
    """A kernel of rows of 0 and 1; subclasses are dataclasses with fields ``arity`` and ``raw``."""

    accepts_sparse: ClassVar[bool] = True

    stem: ClassVar[str]
    arity: int
    raw: bool

    @property
    def label(self) -> str:
        return f"{self.stem}({self.arity}{', raw' if self.raw else ''})"

    def check(self) -> None:
        require_whole(self, "arity", self.arity)

    def matrix(self, pairs: Pairs) -> Matrix:
        x = ones(pairs.X, self.label)
        z = x if pairs.Z is None else ones(pairs.Z, self.label)
        common = np.rint(pairs.matrix("inner")).astype(np.intp)
        return self.from_ones(common, x[:, None], z, int(pairs.X.shape[1]))

    def diagonal_of(self, X: Rows) -> Vector:
        x = ones(X, self.label)
        return self.from_ones(x, x, x, int(X.shape[1]))

    @abstractmethod
    def from_ones(self, common: AnyArray, x: AnyArray, z: AnyArray, n_columns: int) -> Matrix:
        """Return the kernel of pairs with ``common`` ones in the same columns, of x and of z ones in all."""


@dataclass
class MonotoneConjunctive(BooleanKernel):
    r"""The monotone conjunctive kernel k(x, z) = C(<x, z>, arity): conjunctions of columns true in x and in z.

    Parameters
    ----------
    arity : whole number >= 1, of columns in a conjunction ("and"); 1 is the linear kernel.
    raw : whether k is the number itself; else it is divided by sqrt(k(x, x) k(z, z)), which keeps it in range for
        every arity. Samples with fewer ones than ``arity`` satisfy none and have k = 0.

    Notes
    -----
    [Polato18]. Columns hold 0 and 1. Large binomials are divided in logarithms.
    Differs from the paper: divided by sqrt(k(x, x) k(z, z)) unless ``raw``.

    Examples
    --------
    >>> X = [[1, 1, 1, 0], [0, 1, 1, 1]]
    >>> MonotoneConjunctive(arity=2, raw=True)(X)
    array([[3., 1.],
           [1., 3.]])

    """

    stem: ClassVar[str] = "conjunctive"

    arity: int = 2
    raw: bool = False

    def from_ones(self, common: AnyArray, x: AnyArray, z: AnyArray, n_columns: int) -> Matrix:  # noqa: ARG002
        largest = int(max(x.max(initial=0), z.max(initial=0)))
        counts = [comb(s, self.arity) for s in range(largest + 1)]
        if self.raw:
            return np.array([as_float(count) for count in counts])[common]
        logs = np.array([log(count) if count else -np.inf for count in counts])
        halves = np.where(np.isfinite(logs), 0.5 * logs, 0.0)  # of none: k is 0 whatever it is divided by
        K = np.exp(logs[common] - halves[x] - halves[z])
        return np.asarray(np.minimum(K, 1.0))


@dataclass
class MonotoneDisjunctive(BooleanKernel):
    r"""The monotone disjunctive kernel: disjunctions of columns that are true in x and in z.

    k(x, z) = C(d, a) - C(d - |x|, a) - C(d - |z|, a) + C(d - |x| - |z| + <x, z>, a), a = arity, d columns.

    Parameters
    ----------
    arity : whole number >= 1, of columns in a disjunction ("or"); 1 is the linear kernel.
    raw : whether k is the number itself; else it is divided by sqrt(k(x, x) k(z, z)), which keeps it in range for
        every arity. Samples of zeros satisfy none and have k = 0.

    Notes
    -----
    [Polato18]. Columns hold 0 and 1. With P(m) the share of disjunctions that have one of m columns,
    k / C(d, a) = P(|x|) + P(|z|) - P(|x or z|): the shares are quotients of whole numbers, exact to the last digit.
    Differs from the paper: divided by sqrt(k(x, x) k(z, z)) unless ``raw``.

    Examples
    --------
    >>> X = [[1, 1, 0, 0], [0, 1, 1, 0]]
    >>> MonotoneDisjunctive(arity=2, raw=True)(X)
    array([[5., 4.],
           [4., 5.]])

    """

    stem: ClassVar[str] = "disjunctive"

    arity: int = 2
    raw: bool = False

    def from_ones(self, common: AnyArray, x: AnyArray, z: AnyArray, n_columns: int) -> Matrix:
        union = x + z - common
        every = comb(n_columns, self.arity)
        largest = int(union.max(initial=0))
        if not every:  # no disjunction has as many columns
            return np.zeros(union.shape)
        share = np.array(
            [(every - comb(n_columns - m, self.arity)) / every for m in range(largest + 1)] or [0.0]
        )
        K = share[x] + share[z] - share[union]
        if self.raw:
            return np.asarray(K * as_float(every))
        lengths = np.sqrt(share)
        scale = lengths[x] * lengths[z]
        return np.asarray(np.minimum(np.divide(K, scale, out=np.zeros(K.shape), where=scale > 0.0), 1.0))


def as_float(count: int) -> float:
    """Return a count, infinity where it is out of range: who asked for it is told that it is not finite."""
    try:
        return float(count)
    except OverflowError:
        return float("inf")


def ones(X: Rows, label: str) -> AnyArray:
    """Return how many ones every row of 0 and 1 has."""
    values = X.data if is_sparse(X) else X
    strange = values[(values != 0.0) & (values != 1.0)]
    if strange.size:
        raise ValueError(
            f"{label} reads columns of 0 and 1, received {strange.flat[0]:g}; compare the columns with a limit first."
        )
    return np.rint(squared_norms(X)).astype(np.intp)
