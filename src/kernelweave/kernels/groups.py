"""Kernels of the same features, evaluated together on pairs of samples.

Whoever learns or predicts without storing kernel matrices asks a group for products and sums of values; only a
few rows of values exist at any time. Distances and inner products are computed once for all kernels of a group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from kernelweave import _core
from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.kernels.base import Kernel, Rows
from kernelweave.kernels.distances import is_sparse
from kernelweave.kernels.inner import Linear
from kernelweave.kernels.pairs import Pairs

# Functions of a distance or an inner product, in the order of their numbers in the compiled loops.
SHAPES = ("exp", "exp_root", "inverse", "inverse_root", "power")
ARGUMENTS = ("sqeuclidean", "inner")


class KernelGroup(ABC):
    """Kernels k_1, ..., k_A of the same features.

    ``left`` and ``right`` are samples as `rows` returns them, and ``coef`` has one row per sample of ``right`` and
    one column per vector.
    """

    # Values are computed in blocks of about this many: 2 MB, which a thread keeps in its cache.
    block_entries = 1 << 18
    # Whether computing a value again takes no longer than reading it from memory.
    is_cheap = False

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = tuple(kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def only(self, which: Sequence[int]) -> KernelGroup:
        """Return the group of some of its kernels."""
        chosen = copy(self)
        chosen.kernels = tuple(self.kernels[a] for a in which)
        return chosen

    def rows(self, X: Rows) -> Any:
        """Return checked samples as the group reads them."""
        return X

    def training_rows(self, X: Rows) -> Any:
        """Return the training samples as the group reads them."""
        return self.rows(X)

    def rows_in_dtype(self, rows: Any, dtype: str) -> Any:  # noqa: ARG002 - few groups can do with less
        """Return samples with which values are computed in this precision, where the group can."""
        return rows

    @abstractmethod
    def values(self, left: Any, right: Any) -> Iterator[Matrix]:
        """Yield k_a(left, right) for every kernel."""

    def diagonals(self, samples: Any) -> Matrix:
        """Return k_a(x, x) of every sample, one row per kernel."""
        return np.array([kernel.diagonal_of(samples) for kernel in self.kernels])

    def products(self, left: Any, right: Any, coef: Matrix, n_threads: int = 1) -> AnyArray:
        """Return k_a(left, right) coef for every kernel, of shape (kernels, rows of left, columns)."""
        out = np.empty((len(self), left.shape[0], coef.shape[1]))

        def fill(share: Sequence[slice]) -> None:
            for rows in share:
                for a, K in enumerate(self.values(left[rows], right)):
                    out[a, rows] = K @ coef

        shared_out(fill, self._row_blocks(left, right), n_threads)
        return out

    def weighted_products(
        self, left: Any, right: Any, coef: Matrix, weights: Vector, n_threads: int = 1
    ) -> Matrix:
        """Return Σ_a weights_a k_a(left, right) coef."""
        which = np.flatnonzero(weights).tolist()
        if not which:
            return np.zeros((left.shape[0], coef.shape[1]))
        products = self.only(which).products(left, right, coef, n_threads)
        return np.asarray(np.tensordot(weights[which], products, 1))

    def add_weighted_values(
        self, left: Any, right: Any, weights: Vector, out: AnyArray, n_threads: int = 1
    ) -> None:
        """Add Σ_a weights_a k_a(left, right) to ``out``."""
        which = np.flatnonzero(weights).tolist()
        used = self.only(which)

        def fill(share: Sequence[slice]) -> None:
            for rows in share:
                for a, K in zip(which, used.values(left[rows], right), strict=True):
                    out[rows] += weights[a] * K

        if which:
            shared_out(fill, self._row_blocks(left, right), n_threads)

    def energies(self, samples: Any, coef: Matrix, n_threads: int = 1) -> Vector:
        """Return ½ tr(coef' k_a(samples, samples) coef) for every kernel."""
        products = self.products(samples, samples, coef, n_threads)
        return np.asarray(0.5 * np.tensordot(products, coef, 2))

    def largest(self, samples: Any) -> float:
        """Return a bound on the size of all numbers on the way to values between these samples."""
        with np.errstate(over="ignore"):
            return float(np.abs(self.diagonals(samples)).max(initial=0.0))

    def fits_float32(self, samples: Any) -> bool:  # noqa: ARG002 - most values are computed in float64
        """Return whether no number on the way to a value leaves the range of single precision."""
        return True

    def errors_in_float32(self, samples: Any) -> Vector:  # noqa: ARG002
        """Bound for every kernel how far a value between these samples is off in single precision."""
        return np.zeros(len(self))

    def _row_blocks(self, left: Any, right: Any) -> list[slice]:
        step = max(1, self.block_entries // max(right.shape[0], 1))
        n = left.shape[0]
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]


class AnyGroup(KernelGroup):
    """Kernels that only know how to compute their matrix: a few rows of it at a time, in float64."""

    def training_rows(self, X: Rows) -> Rows:
        for kernel in self.kernels:
            if kernel.needs_check:
                some = np.unique(np.linspace(0, X.shape[0] - 1, min(X.shape[0], 1000)).astype(np.intp))
                kernel.matrix(Pairs(X[some]))  # says what is wrong with it
        return X

    def values(self, left: Any, right: Any) -> Iterator[Matrix]:
        pairs = Pairs(left, right)
        for kernel in self.kernels:
            yield kernel.matrix(pairs)


class LinearGroup(KernelGroup):
    """Linear kernels: products cost one pass over the columns, not over the pairs of samples."""

    is_cheap = True

    def values(self, left: Any, right: Any) -> Iterator[Matrix]:
        product = left @ right.T
        K = np.asarray(product.toarray() if is_sparse(product) else product)
        yield from [K] * len(self)

    def products(self, left: Any, right: Any, coef: Matrix, n_threads: int = 1) -> AnyArray:  # noqa: ARG002
        product = np.asarray(left @ (right.T @ coef), dtype=np.float64)
        return np.repeat(product[None], len(self), axis=0)

    def energies(self, samples: Any, coef: Matrix, n_threads: int = 1) -> Vector:  # noqa: ARG002
        # ½ ||X'V||²: never negative, unlike ½ V'(XX')V.
        energy = 0.5 * float(np.sum(np.asarray(samples.T @ coef, dtype=np.float64) ** 2))
        return np.full(len(self), energy)


class CompiledGroup(KernelGroup):
    """Kernels that the compiled loops know: functions of the distance, or of the inner product, of dense rows."""

    is_cheap = True

    def __init__(self, kernels: Sequence[Kernel], centre: Vector) -> None:
        super().__init__(kernels)
        self.formulas = [formula for kernel in kernels if (formula := kernel.formula()) is not None]
        # Distances do not feel a shift of the columns, but the digits of float32 do.
        self._centre = centre if self.formulas[0].argument == "sqeuclidean" else np.zeros_like(centre)

    def only(self, which: Sequence[int]) -> CompiledGroup:
        chosen = copy(self)
        chosen.kernels = tuple(self.kernels[a] for a in which)
        chosen.formulas = [self.formulas[a] for a in which]
        return chosen

    def rows(self, X: Rows) -> AnyArray:
        return np.ascontiguousarray(X - self._centre)

    def rows_in_dtype(self, rows: AnyArray, dtype: str) -> AnyArray:
        return rows.astype(dtype, copy=False)

    def values(self, left: AnyArray, right: AnyArray) -> Iterator[Matrix]:
        # As many kernels at a time as stay in cache together.
        step = max(1, 4 * self.block_entries // max(left.shape[0] * right.shape[0], 1))
        for start in range(0, len(self), step):
            some = range(start, min(start + step, len(self)))
            out = np.empty((len(some), left.shape[0], right.shape[0]), dtype=left.dtype)
            _core.kernel_values(left, right, *self._functions(some), out)
            yield from out

    def diagonals(self, samples: AnyArray) -> Matrix:
        return super().diagonals(samples.astype(np.float64, copy=False))

    def products(self, left: AnyArray, right: AnyArray, coef: Matrix, n_threads: int = 1) -> AnyArray:
        out = np.zeros((len(self), coef.shape[1], left.shape[0]))
        columns = np.ascontiguousarray(coef.T, dtype=np.float64)
        _core.add_products(left, right, columns, *self._functions(range(len(self))), out, n_threads)
        return out.transpose(0, 2, 1)

    def weighted_products(
        self, left: AnyArray, right: AnyArray, coef: Matrix, weights: Vector, n_threads: int = 1
    ) -> Matrix:
        which = np.flatnonzero(weights)
        out = np.zeros((coef.shape[1], left.shape[0]))
        columns = np.ascontiguousarray(coef.T, dtype=np.float64)
        _core.add_weighted_products(
            left, right, columns, *self._functions(which), weights[which], out, n_threads
        )
        return out.T

    def add_weighted_values(
        self, left: AnyArray, right: AnyArray, weights: Vector, out: AnyArray, n_threads: int = 1
    ) -> None:
        which = np.flatnonzero(weights)
        arguments = (*self._functions(which), weights[which], out, n_threads)
        if left is right:
            _core.add_weighted_gram(left, *arguments)
            _core.mirror(out, n_threads)
        else:
            _core.add_weighted_values(left, right, *arguments)

    def energies(self, samples: AnyArray, coef: Matrix, n_threads: int = 1) -> Vector:
        out = np.empty(len(self))
        columns = np.ascontiguousarray(coef.T, dtype=np.float64)
        _core.pair_energies(samples, columns, *self._functions(range(len(self))), out, n_threads)
        return out

    def largest(self, samples: AnyArray) -> float:
        rates = [formula.gamma for formula in self.formulas]
        with np.errstate(over="ignore", invalid="ignore"):
            return max(4.0 * self._longest(samples) ** 2 * max(1.0, *rates), super().largest(samples))

    def fits_float32(self, samples: AnyArray) -> bool:
        rates = [formula.gamma for formula in self.formulas]
        return self.largest(samples) < 1e30 and max(rates) < 1e30 and min(rates) > 1e-30

    def errors_in_float32(self, samples: AnyArray) -> Vector:
        """Bound the errors of values.

        Rounding moves a sample by u times its length, and a distance by twice that; the functions of a distance r
        change by no more than √γ per unit of it. Sums over d columns add d u / 2 of r, and r times the slope is below
        0.8; the function itself adds a few u. Powers lose as many digits as they have factors.
        """
        length, u, d = self._longest(samples), 2.0**-24, samples.shape[1]
        sizes = np.abs(self.diagonals(samples)).max(axis=1, initial=0.0)
        return np.array(
            [
                size * u * f.degree * (d + 8.0)
                if f.function == "power"
                else u * (2.0 * np.sqrt(f.gamma) * length + 0.4 * d + 16.0)
                for f, size in zip(self.formulas, sizes, strict=True)
            ]
        )

    def _longest(self, samples: AnyArray) -> float:
        """Return the length of the longest row."""
        squares = np.einsum("ij,ij->i", samples, samples, dtype=np.float64)
        return float(np.sqrt(squares.max(initial=0.0)))

    def _functions(self, which: Sequence[int] | AnyArray) -> tuple[int, AnyArray, AnyArray, Vector, Vector]:
        """Return the kernels asked for as the compiled loops take them."""
        some = [self.formulas[a] for a in which]
        return (
            ARGUMENTS.index(self.formulas[0].argument),
            np.array([SHAPES.index(f.function) for f in some], dtype=np.int64),
            np.array([f.degree for f in some], dtype=np.int64),
            np.array([f.gamma for f in some], dtype=np.float64),
            np.array([f.offset for f in some], dtype=np.float64),
        )


class GivenGroup(KernelGroup):
    """One kernel that is known as a matrix between the training samples.

    Training samples are their numbers; new ones are rows of values against all training samples.
    """

    def __init__(self, kernel: Kernel, matrix: Matrix) -> None:
        super().__init__([kernel])
        self.matrix = matrix

    def rows(self, X: Rows) -> Matrix:
        return self.kernels[0].matrix(Pairs(X, self.matrix))

    def training_rows(self, X: Rows) -> Any:
        return np.arange(X.shape[0])

    def values(self, left: Any, right: Any) -> Iterator[Matrix]:
        rows = self.matrix[left] if left.ndim == 1 else left
        yield rows if np.array_equal(right, np.arange(rows.shape[1])) else rows[:, right]

    def diagonals(self, samples: Any) -> Matrix:
        if samples.ndim == 2:
            raise ValueError("A new row of a precomputed kernel does not show its k(x, x).")
        return np.asarray(np.diagonal(self.matrix)[samples][None])


def grouped(kernels: Sequence[Kernel], X: Rows) -> list[tuple[list[int], KernelGroup]]:
    """Return resolved kernels of the same training rows in groups, each with the positions of its kernels."""
    members: dict[str, list[int]] = {}
    alone: list[tuple[list[int], KernelGroup]] = []
    for position, kernel in enumerate(kernels):
        own = kernel.own_group(X)
        formula = None if is_sparse(X) else kernel.formula()
        if own is not None:
            alone.append(([position], own))
        elif kernel.pairwise:
            members[f"given {position}"] = [position]
        elif isinstance(kernel, Linear):
            members.setdefault("linear", []).append(position)
        else:
            members.setdefault("any" if formula is None else formula.argument, []).append(position)
    together = [(places, _group(name, [kernels[p] for p in places], X)) for name, places in members.items()]
    return together + alone


def _group(name: str, kernels: list[Kernel], X: Rows) -> KernelGroup:
    if name.startswith("given"):
        return GivenGroup(kernels[0], kernels[0].matrix(Pairs(X)))
    if name == "linear":
        return LinearGroup(kernels)
    return AnyGroup(kernels) if name == "any" else CompiledGroup(kernels, X.mean(axis=0))
