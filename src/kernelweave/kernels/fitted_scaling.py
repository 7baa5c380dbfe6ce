"""Scalings after they saw the training Gram: they only apply what was learnt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Indices, Matrix, Span, Vector

# Centring subtracts numbers of similar size: what is left below this share of them is rounding.
CANCELLED = 1e-14


@dataclass(frozen=True)
class Side:
    """New samples as a scaling sees them: their rows against the training samples and, if known, k(x, x)."""

    rows: Matrix
    diagonal: Vector | None

    def through(self, scaling: FittedScaling) -> Side:
        """Return the same samples after the scaling."""
        diagonal = None if self.diagonal is None else scaling.diagonal(self.diagonal, self.rows)
        return Side(scaling.rows(self.rows, self.diagonal), diagonal)


class FittedScaling(ABC):
    """A change of the feature map, learnt on the training Gram, for that Gram and for new rows."""

    @property
    def needs_diagonal(self) -> bool:
        """True when ``rows`` uses k(x, x) of the new samples."""
        return False

    @property
    def needs_full_rows(self) -> bool:
        """True when ``rows`` must see a new sample against all training samples."""
        return False

    @abstractmethod
    def train(self, K: Matrix) -> Matrix:
        """Return the scaled training Gram, exactly symmetric; ``K`` is left as it is."""

    @abstractmethod
    def rows(self, K: Matrix, diagonal: Vector | None = None) -> Matrix:
        """Return scaled new rows ``K`` (new, training), given k(x, x) of the new samples where needed."""

    @abstractmethod
    def block(self, K: Matrix, rows: Span, columns: Span) -> Matrix:
        """Return the scaled block of the training Gram, given ``K``, its block [rows, columns]."""

    @abstractmethod
    def train_diagonal(self, diagonal: Vector) -> Vector:
        """Return the diagonal of the scaled training Gram, given that before."""

    @abstractmethod
    def diagonal(self, diagonal: Vector, K: Matrix) -> Vector:
        """Return k(x, x) of new samples after scaling, given it and their rows before."""

    @abstractmethod
    def between(self, K: Matrix, x: Side, z: Side) -> Matrix:
        """Return the scaled kernel ``K`` between two sets of new samples."""

    def factors(self, n_samples: int) -> Vector | None:  # noqa: ARG002 - few are as simple as that
        """Return r with which the scaled training Gram is r_i r_l K_il, None where it is not of that form."""
        return None

    def restricted(self, columns: Indices) -> FittedScaling:  # noqa: ARG002 - few look at columns
        """Return the scaling for rows against these training samples only."""
        return self


@dataclass(frozen=True)
class Multiplied(FittedScaling):
    """Every entry times one factor."""

    factor: float

    def train(self, K: Matrix) -> Matrix:
        return K * self.factor

    def rows(self, K: Matrix, diagonal: Vector | None = None) -> Matrix:  # noqa: ARG002
        return K * self.factor

    def block(self, K: Matrix, rows: Span, columns: Span) -> Matrix:  # noqa: ARG002
        return K * self.factor if self.factor != 1.0 else K

    def train_diagonal(self, diagonal: Vector) -> Vector:
        return diagonal * self.factor

    def diagonal(self, diagonal: Vector, K: Matrix) -> Vector:  # noqa: ARG002
        return diagonal * self.factor

    def between(self, K: Matrix, x: Side, z: Side) -> Matrix:  # noqa: ARG002
        return K * self.factor

    def factors(self, n_samples: int) -> Vector | None:
        return np.full(n_samples, np.sqrt(self.factor)) if self.factor >= 0.0 else None


@dataclass(frozen=True)
class Spherical(FittedScaling):
    """Every sample divided by its length; ``inverse_lengths`` are those of the training samples."""

    inverse_lengths: Vector

    @property
    def needs_diagonal(self) -> bool:
        return True

    def train(self, K: Matrix) -> Matrix:
        scaled = K * (self.inverse_lengths[:, None] * self.inverse_lengths)
        np.fill_diagonal(scaled, self.inverse_lengths > 0.0)
        return scaled

    def rows(self, K: Matrix, diagonal: Vector | None = None) -> Matrix:
        if diagonal is None:
            raise ValueError("UnitDiagonal needs k(x, x) of the new samples; pass it as `diagonal`.")
        return K * inverse_lengths(diagonal)[:, None] * self.inverse_lengths

    def block(self, K: Matrix, rows: Span, columns: Span) -> Matrix:
        scaled = K * (self.inverse_lengths[rows, None] * self.inverse_lengths[columns])
        return _with_diagonal(scaled, rows, columns, self.train_diagonal(self.inverse_lengths))

    def train_diagonal(self, diagonal: Vector) -> Vector:  # noqa: ARG002
        return (self.inverse_lengths > 0.0).astype(np.float64)

    def diagonal(self, diagonal: Vector, K: Matrix) -> Vector:  # noqa: ARG002
        return (diagonal > 0.0).astype(np.float64)

    def between(self, K: Matrix, x: Side, z: Side) -> Matrix:
        assert x.diagonal is not None
        assert z.diagonal is not None
        return K * inverse_lengths(x.diagonal)[:, None] * inverse_lengths(z.diagonal)

    def factors(self, n_samples: int) -> Vector | None:  # noqa: ARG002
        return self.inverse_lengths

    def restricted(self, columns: Indices) -> FittedScaling:
        return Spherical(self.inverse_lengths[columns])


@dataclass(frozen=True)
class Centered(FittedScaling):
    """The mean of the training samples moved to the origin of the feature space.

    ``column_means`` and ``mean`` are of the training Gram; ``vanishes`` says that only rounding is left.
    """

    column_means: Vector
    mean: float
    vanishes: bool = False

    @property
    def needs_full_rows(self) -> bool:
        return True

    def train(self, K: Matrix) -> Matrix:
        if self.vanishes:
            return np.zeros_like(K)
        centred = K - (self.column_means[:, None] + self.column_means)
        centred += self.mean
        np.fill_diagonal(centred, self._lengths(np.diagonal(K), self.column_means))
        return centred

    def rows(self, K: Matrix, diagonal: Vector | None = None) -> Matrix:  # noqa: ARG002
        if self.vanishes:
            return np.zeros_like(K)
        return np.asarray(K - K.mean(axis=1)[:, None] - self.column_means + self.mean)

    def block(self, K: Matrix, rows: Span, columns: Span) -> Matrix:
        if self.vanishes:
            return np.zeros_like(K)
        centred = K - (self.column_means[rows, None] + self.column_means[columns])
        centred += self.mean
        return centred

    def train_diagonal(self, diagonal: Vector) -> Vector:
        return self._lengths(diagonal, self.column_means)

    def diagonal(self, diagonal: Vector, K: Matrix) -> Vector:
        return self._lengths(diagonal, K.mean(axis=1))

    def between(self, K: Matrix, x: Side, z: Side) -> Matrix:
        if self.vanishes:
            return np.zeros_like(K)
        return np.asarray(K - x.rows.mean(axis=1)[:, None] - z.rows.mean(axis=1) + self.mean)

    def _lengths(self, diagonal: Vector, row_means: Vector) -> Vector:
        lengths = diagonal - 2.0 * row_means + self.mean
        size = np.abs(diagonal) + 2.0 * np.abs(row_means) + abs(self.mean)
        return np.where(lengths > CANCELLED * size, lengths, 0.0)


@dataclass(frozen=True)
class Chained(FittedScaling):
    """Several fitted scalings, one after the other."""

    links: tuple[FittedScaling, ...]

    @property
    def needs_diagonal(self) -> bool:
        return any(link.needs_diagonal for link in self.links)

    @property
    def needs_full_rows(self) -> bool:
        return any(link.needs_full_rows for link in self.links)

    def train(self, K: Matrix) -> Matrix:
        for link in self.links:
            K = link.train(K)
        return K

    def rows(self, K: Matrix, diagonal: Vector | None = None) -> Matrix:
        for link in self.links:
            scaled = link.rows(K, diagonal)
            diagonal = None if diagonal is None else link.diagonal(diagonal, K)
            K = scaled
        return K

    def block(self, K: Matrix, rows: Span, columns: Span) -> Matrix:
        for link in self.links:
            K = link.block(K, rows, columns)
        return K

    def train_diagonal(self, diagonal: Vector) -> Vector:
        for link in self.links:
            diagonal = link.train_diagonal(diagonal)
        return diagonal

    def diagonal(self, diagonal: Vector, K: Matrix) -> Vector:
        for link in self.links:
            scaled = link.rows(K, diagonal)
            diagonal = link.diagonal(diagonal, K)
            K = scaled
        return diagonal

    def between(self, K: Matrix, x: Side, z: Side) -> Matrix:
        for link in self.links:
            K = link.between(K, x, z)
            x, z = x.through(link), z.through(link)
        return K

    def restricted(self, columns: Indices) -> FittedScaling:
        return Chained(tuple(link.restricted(columns) for link in self.links))


def _with_diagonal(block: Matrix, rows: Span, columns: Span, diagonal: Vector) -> Matrix:
    """Return the block [rows, columns] with the exact values where it crosses the diagonal."""
    every = np.arange(diagonal.size)
    here, row, column = np.intersect1d(every[rows], every[columns], return_indices=True)
    block[row, column] = diagonal[here]
    return block


def inverse_lengths(diagonal: Vector) -> Vector:
    """Return 1 / sqrt(k(x, x)), and 0 for a sample of length 0."""
    roots = np.sqrt(np.maximum(diagonal, 0.0))
    return np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0.0)
