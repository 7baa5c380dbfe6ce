"""Kernels made of kernels: sums, products, powers, multiples, normalised ones, and those of some columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.kernels.base import Kernel, Reads, Rows, require_positive, require_whole
from kernelweave.kernels.composite import Composite, CompositeGroup, JoinedRows
from kernelweave.kernels.distances import is_sparse
from kernelweave.kernels.fitted_scaling import inverse_lengths
from kernelweave.kernels.groups import KernelGroup
from kernelweave.kernels.pairs import Pairs


@dataclass
class Sum(Composite):
    r"""The sum of two kernels, k(x, z) = first(x, z) + second(x, z); also written ``first + second``.

    Parameters
    ----------
    first, second : kernels of the same columns, or each of its own by ``kernel.on(columns)``.

    Notes
    -----
    A bank with both kernels learns a weight for each; their sum has one.
    Differs from the paper: nothing.

    Examples
    --------
    >>> from kernelweave.kernels import Gaussian, Linear
    >>> kernel = Linear() + Gaussian(gamma=1.0)
    >>> kernel.label, kernel([[1.0], [1.0]]).tolist()
    ('linear + gaussian(gamma=1)', [[2.0, 2.0], [2.0, 2.0]])

    """

    part_names: ClassVar[tuple[str, ...]] = ("first", "second")

    first: Kernel
    second: Kernel

    @property
    def label(self) -> str:
        return f"{self.first.label} + {self.second.label}"

    @property
    def weights(self) -> tuple[float, ...]:
        return 1.0, 1.0

    def combined(self, values: Sequence[AnyArray]) -> AnyArray:
        return np.asarray(values[0] + values[1])


@dataclass
class Product(Composite):
    r"""The product of two kernels, k(x, z) = first(x, z) second(x, z); also written ``first * second``.

    Parameters
    ----------
    first, second : kernels of the same columns, or each of its own by ``kernel.on(columns)``.

    Notes
    -----
    Its features are the products of a feature of the first with one of the second: samples are alike where both
    kernels say so.
    Differs from the paper: nothing.

    Examples
    --------
    >>> from kernelweave.kernels import Gaussian, Linear
    >>> kernel = Linear().on(0) * Gaussian(gamma=1.0).on(1)
    >>> kernel.label, kernel([[2.0, 0.0], [3.0, 0.0]]).tolist()
    ('linear[0] * gaussian(gamma=1)[1]', [[4.0, 6.0], [6.0, 9.0]])

    """

    part_names: ClassVar[tuple[str, ...]] = ("first", "second")

    first: Kernel
    second: Kernel

    @property
    def label(self) -> str:
        return f"{_factor(self.first)} * {_factor(self.second)}"

    def combined(self, values: Sequence[AnyArray]) -> AnyArray:
        return np.asarray(values[0] * values[1])


@dataclass
class Power(Composite):
    r"""A power of a kernel, k(x, z) = kernel(x, z)^degree; also written ``kernel ** degree``.

    Parameters
    ----------
    kernel : the kernel.
    degree : whole number >= 1; other powers of a kernel need not be kernels.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> (Linear() ** 2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[121.]])

    """

    kernel: Kernel
    degree: int = 2

    @property
    def label(self) -> str:
        return f"{_base(self.kernel)}^{self.degree}"

    def check(self) -> None:
        super().check()
        require_whole(self, "degree", self.degree)

    def combined(self, values: Sequence[AnyArray]) -> AnyArray:
        result = np.array(values[0])
        for _ in range(int(self.degree) - 1):
            result *= values[0]
        return result


@dataclass
class Multiple(Composite):
    r"""A multiple of a kernel, k(x, z) = factor kernel(x, z); also written ``factor * kernel``.

    Parameters
    ----------
    kernel : the kernel.
    factor : number > 0; in a sum it says how much the kernel counts.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> (2.0 * Linear()).label
    '2 * linear'

    """

    kernel: Kernel
    factor: float = 1.0

    @property
    def label(self) -> str:
        return f"{self.factor:g} * {_factor(self.kernel)}"

    def check(self) -> None:
        super().check()
        require_positive(self, "factor", self.factor)

    @property
    def weights(self) -> tuple[float, ...]:
        return (float(self.factor),)

    def combined(self, values: Sequence[AnyArray]) -> AnyArray:
        return np.asarray(self.factor * values[0])


@dataclass
class OnColumns(Composite):
    r"""A kernel of some of the columns; also written ``kernel.on(columns)``.

    Parameters
    ----------
    kernel : the kernel.
    columns : a name or position, a list of them, or a slice of positions. Names are those of the table that a
        bank is fitted on; a bank's own ``Entry(kernel, columns=...)`` does the same for a whole kernel.

    Notes
    -----
    Parts of a sum or product may so read columns of different kinds, numbers and text for example.
    Differs from the paper: nothing.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> Linear().on([0, 2])([[1.0, 9.0, 2.0]])
    array([[5.]])
    >>> Linear().on(["age", "size"]).label
    'linear[age, size]'

    """

    kernel: Kernel
    columns: Any = 0
    positions_: tuple[int, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def label(self) -> str:
        chosen = self.columns
        if isinstance(chosen, slice):
            ends = ("" if end is None else f"{end}" for end in (chosen.start, chosen.stop))
            text = ":".join(ends) + (f":{chosen.step}" if chosen.step is not None else "")
        else:
            text = ", ".join(str(column) for column in _listed(chosen))
        return f"{_base(self.kernel)}[{text}]"

    @property
    def reads(self) -> Reads:  # type: ignore[override]
        return "objects" if self.kernel.reads == "objects" else "either"  # other columns may hold anything

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        return self.kernel.accepts_sparse

    @property
    def weights(self) -> tuple[float, ...]:
        return (1.0,)

    def check(self) -> None:
        super().check()
        if self.kernel.pairwise:
            raise ValueError(
                f"{self.kernel.label} reads a whole block (rows, training samples), not columns of it."
            )
        if isinstance(self.columns, slice):
            return
        kinds = all(isinstance(c, str | Integral) and not isinstance(c, bool) for c in _listed(self.columns))
        if not kinds or not _listed(self.columns):
            raise TypeError(
                f"kernel.on needs a name, a position, a list of them or a slice of positions, received "
                f"{self.columns!r}."
            )

    def for_columns(self, names: Sequence[str | int]) -> Self:
        found = super().for_columns([names[p] for p in self._places(len(names), names)])
        found.positions_ = tuple(self._places(len(names), names))
        return found

    def _with(self, parts: Sequence[Kernel]) -> Self:
        changed = copy(self)
        changed.kernel = parts[0]
        return changed

    def _places(self, width: int, names: Sequence[str | int] | None = None) -> list[int]:
        if self.positions_ is not None:
            return list(self.positions_)
        if isinstance(self.columns, slice):
            return list(range(width))[self.columns]
        return [self._place(column, width, names) for column in _listed(self.columns)]

    def _place(self, column: Any, width: int, names: Sequence[str | int] | None) -> int:
        if isinstance(column, str):
            if names is None:
                raise ValueError(
                    f"{self.label} does not know which column is {column!r}: names are found by a bank fitted on "
                    "a table that has them; use positions."
                )
            if list(names).count(column) != 1:
                raise ValueError(
                    f"{self.label} needs one column named {column!r}; the columns are "
                    f"{', '.join(map(str, list(names)[:8]))}{', ...' if len(names) > 8 else ''}."
                )
            return list(names).index(column)
        if not -width <= column < width:
            raise ValueError(f"{self.label} asks for column {column} of {width}: they are 0 to {width - 1}.")
        return int(column) % width

    def rows_of(self, part: Kernel, X: Rows) -> Rows:
        rows = part.rows(X[:, self._places(int(X.shape[1]))])
        # What is taken by a list of columns lies in memory column by column.
        return rows if is_sparse(rows) else np.ascontiguousarray(rows)

    def combined(self, values: Sequence[AnyArray]) -> AnyArray:
        return np.asarray(values[0])


@dataclass
class Normalized(Composite):
    r"""The normalised kernel k(x, z) = kernel(x, z) / sqrt(kernel(x, x) kernel(z, z)); ``kernel.normalized()``.

    Parameters
    ----------
    kernel : the kernel.

    Notes
    -----
    Samples with kernel(x, x) = 0 have k = 0. The scaling ``UnitDiagonal()`` does the same for a whole kernel of a
    bank; this one does it within sums and products.
    Differs from the paper: nothing.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> Linear().normalized()([[3.0, 4.0]], [[0.0, 2.0]])
    array([[0.8]])

    """

    kernel: Kernel

    @property
    def label(self) -> str:
        return f"normalized({self.kernel.label})"

    def check(self) -> None:
        super().check()
        if not self.kernel.knows_diagonal:
            raise ValueError(
                f"{self.kernel.label} cannot be normalised: a new row of it does not show k(x, x); normalise the "
                "matrix beforehand."
            )

    def combined(self, values: Sequence[AnyArray]) -> AnyArray:
        return np.asarray(values[0])

    def matrix(self, pairs: Pairs) -> Matrix:
        pairs = self.pairs_of(self.kernel, pairs)
        lengths = inverse_lengths(self.kernel.diagonal_of(pairs.X))
        others = lengths if pairs.Z is None else inverse_lengths(self.kernel.diagonal_of(pairs.Z))
        return np.asarray(self.kernel.matrix(pairs) * (lengths[:, None] * others))

    def diagonal_of(self, X: Rows) -> Vector:
        return (super().diagonal_of(X) > 0.0).astype(np.float64)

    def own_group(self, X: Rows) -> KernelGroup | None:
        return super().own_group(X) if self.pairwise else NormalizedGroup(self, X)


class NormalizedGroup(CompositeGroup):
    """A normalised kernel: beside its rows every sample has 1 / sqrt(k(x, x))."""

    def _read(self, X: Rows, readers: Sequence[Any]) -> JoinedRows:
        rows = super()._read(X, readers).parts[0]
        return JoinedRows((rows, inverse_lengths(self.groups[0].diagonals(rows)[0])))

    def values(self, left: JoinedRows, right: JoinedRows) -> Iterator[Matrix]:
        for K in self.groups[0].values(left.parts[0], right.parts[0]):
            yield K * (left.parts[1][:, None] * right.parts[1])

    def diagonals(self, samples: JoinedRows) -> Matrix:
        return np.asarray(samples.parts[1] > 0.0, dtype=np.float64)[None]

    def products(self, left: JoinedRows, right: JoinedRows, coef: Matrix, n_threads: int = 1) -> AnyArray:
        (x, own), (z, others) = left.parts, right.parts
        products = self.groups[0].products(x, z, others[:, None] * coef, n_threads)
        return np.asarray(own[:, None] * products)

    def energies(self, samples: JoinedRows, coef: Matrix, n_threads: int = 1) -> Vector:
        x, lengths = samples.parts
        return self.groups[0].energies(x, lengths[:, None] * coef, n_threads)


def _factor(kernel: Kernel) -> str:
    """Return a label as it stands in a product: in brackets where it is a sum or product itself."""
    return f"({kernel.label})" if isinstance(kernel, Sum) else kernel.label


def _base(kernel: Kernel) -> str:
    """Return a label as something follows it: in brackets where it has operators."""
    compound = isinstance(kernel, Sum | Product | Multiple | Power)
    return f"({kernel.label})" if compound else kernel.label


def _listed(columns: Any) -> list[Any]:
    return list(columns) if isinstance(columns, list | tuple | np.ndarray) else [columns]
