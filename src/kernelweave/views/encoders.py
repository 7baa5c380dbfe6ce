"""Columns of a table as numbers for kernels: one encoder per type of column, learnt on training rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.preprocessing import OneHotEncoder, normalize

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.views.column_values import (
    EXACT,
    ISO_DATE,
    SAID,
    Column,
    held_as_text,
    number_matrix,
    numeric_dtypes,
    read_column,
    reads_as_number,
    require_form,
)
from kernelweave.views.tables import Table, as_floats, column_called, is_pandas, is_polars, is_sparse

# Indicators of more values than this are held sparse.
DENSE_VALUES = 100
DAY = 86400.0
YEAR = 365.2425 * DAY


class Encoder(ABC):
    """What turns some columns of a table into float64 or CSR columns; a value learnt on training rows.

    ``filled`` counts the empty cells of every column among the training rows.
    """

    filled: tuple[int, ...]

    @abstractmethod
    def transform(self, table: Table, what: str) -> Any:
        """Return the columns of a table as float64, dense or CSR."""

    def once(self, table: Table, what: str, known: dict[int, Any]) -> Any:
        """Return what ``transform`` does, which is kept in ``known`` for others who ask for these columns."""
        if id(self) not in known:
            known[id(self)] = self.transform(table, what)
        return known[id(self)]

    @property
    def factors_by_column(self) -> tuple[Indices, Vector] | None:
        """Which column each encoded one stands for, and what a unit of it becomes; None for other encodings."""
        return None

    @property
    @abstractmethod
    def words(self) -> str:
        """How the columns are encoded, in words."""

    def words_of(self, position: int) -> str:  # noqa: ARG002 - most treat all columns alike
        """Return how one of the columns is encoded."""
        return self.words


@dataclass(frozen=True)
class Standardiser:
    """Numbers with their gaps filled by medians; z-scores, and indicators of gaps, where asked for.

    Each indicator stands for columns (``gaps``) that were empty in the same training rows.
    """

    fill: Vector = field(repr=False)
    shift: Vector = field(repr=False)
    factor: Vector = field(repr=False)
    kept: Indices = field(repr=False)
    gaps: tuple[Indices, ...] = field(default=(), repr=False)

    @classmethod
    def learn(cls, V: Matrix, *, scaled: AnyArray | None = None, plain: bool = False) -> Standardiser:
        """Return what is learnt from numbers, NaN where they are empty; ``scaled`` says which become z-scores."""
        gone = np.isnan(V)
        width = V.shape[1]
        fill = np.zeros(width)
        known = ~gone.all(axis=0)
        broken = gone.any(axis=0) & known
        if (~broken & known).any():
            whole = np.flatnonzero(~broken & known)
            fill[whole] = np.median(V[:, whole] if whole.size < width else V, axis=0)
        for j in np.flatnonzero(broken):
            fill[j] = np.median(V[~gone[:, j], j])
        if plain:
            return cls(fill, np.zeros(width), np.ones(width), np.arange(width))
        V = np.where(gone, fill, V) if gone.any() else V
        mean, deviation = V.mean(axis=0), V.std(axis=0)
        constant = V.min(axis=0) == V.max(axis=0)
        kept = np.flatnonzero(~constant)
        shift, factor = (
            mean,
            np.where(constant | (deviation == 0.0), 1.0, 1.0 / np.where(deviation > 0, deviation, 1)),
        )
        if scaled is not None:
            shift, factor = np.where(scaled, shift, 0.0), np.where(scaled, factor, 1.0)
        patterns: dict[bytes, list[int]] = {}
        for j in np.flatnonzero(gone.sum(axis=0) >= 2):
            patterns.setdefault(gone[:, j].tobytes(), []).append(int(j))
        gaps = tuple(np.array(columns) for columns in patterns.values() if not gone[:, columns[0]].all())
        return cls(fill, shift[kept], factor[kept], kept, gaps)

    def apply(self, V: Matrix) -> Matrix:
        gone = np.isnan(V)
        if gone.any():
            V = np.where(gone, self.fill, V)
        whole = self.kept.size == V.shape[1]
        found = ((V if whole else V[:, self.kept]) - self.shift) * self.factor
        if not self.gaps:
            return np.ascontiguousarray(found)
        marks = [gone[:, columns].mean(axis=1) for columns in self.gaps]
        return np.column_stack([found, *marks])

    @property
    def size(self) -> int:
        """How many columns it makes."""
        return self.kept.size + len(self.gaps)


def _finite(V: Matrix, table: Table, what: str) -> Matrix:
    """Require that numbers are finite or NaN."""
    endless = np.isinf(V)
    if endless.any():
        row, position = (int(place) for place in np.argwhere(endless)[0])
        raise ValueError(
            f"{column_called(table, position, what)} contains inf in row {row}; pass numbers below 1e308, or "
            "leave the cell empty."
        )
    return V


@dataclass(frozen=True)
class NumberEncoder(Encoder):
    """Numbers and booleans: gaps filled by the median, z-scores of the numbers; or plain, only filled."""

    standardiser: Standardiser
    origins: tuple[int, ...] = field(repr=False)
    booleans: tuple[bool, ...] = field(repr=False)
    filled: tuple[int, ...] = field(repr=False)
    plain: bool = False
    of_text: tuple[bool, ...] = field(default=(), repr=False)

    @classmethod
    def learn(cls, table: Table, what: str, booleans: AnyArray, *, plain: bool = False) -> NumberEncoder:
        origins = (0,) * int(table.shape[1]) if plain else _origins(table, what)
        V = _finite(number_matrix(table, what, origins), table, what)
        filled = tuple(np.isnan(V).sum(axis=0).tolist())
        standardiser = Standardiser.learn(V, scaled=~booleans, plain=plain)
        return cls(standardiser, origins, tuple(booleans.tolist()), filled, plain, held_as_text(table, what))

    def transform(self, table: Table, what: str) -> Matrix:
        V = number_matrix(table, what, self.origins, self.of_text)
        return self.standardiser.apply(_finite(V, table, what))

    @property
    def factors_by_column(self) -> tuple[Indices, Vector] | None:
        return None if self.standardiser.gaps else (self.standardiser.kept, self.standardiser.factor)

    @property
    def words(self) -> str:
        return "as it is" if self.plain else "z-scores"

    def words_of(self, position: int) -> str:
        marked = any(position in columns for columns in self.standardiser.gaps)
        own = "0 and 1" if self.booleans[position] and not self.plain else self.words
        return f"{own}, gaps marked" if marked else own


def _origins(table: Table, what: str) -> tuple[int, ...]:
    """Return the least value of columns of whole numbers too large for float64, 0 for others."""
    width = int(table.shape[1])
    if not is_pandas(table) and not is_polars(table) and table.dtype.kind == "f":
        return (0,) * width
    if all(numeric_dtypes(table)):
        V = number_matrix(table, what)
        with np.errstate(invalid="ignore"):
            large = (np.abs(V) >= EXACT).any(axis=0)
        if not large.any():
            return (0,) * width
    found = []
    for j in range(width):
        column = read_column(table, j, what)
        values = column.values[~column.empty]
        exact = column.form == "number" and values.size and values.dtype.kind in "iuO"
        least = int(values.min()) if exact else 0
        found.append(least if exact and max(abs(least), abs(int(values.max()))) >= EXACT else 0)
    return tuple(found)


@dataclass(frozen=True)
class CountEncoder(Encoder):
    """Counts: log(1 + x) times ln((1+n)/(1+df)) + 1, rows of unit length."""

    weight: Vector = field(repr=False)
    filled: tuple[int, ...] = field(repr=False)

    @classmethod
    def learn(cls, table: Table, what: str) -> CountEncoder:
        n, width = (int(size) for size in table.shape)
        values = as_floats(table, what)
        if is_sparse(values):
            used = np.bincount(values.indices[values.data != 0], minlength=width)
        else:
            used = np.count_nonzero(values, axis=0)
        return cls(np.log((1.0 + n) / (1.0 + used)) + 1.0, (0,) * width)

    def transform(self, table: Table, what: str) -> Any:
        V = as_floats(table, what, finite=False)
        if is_sparse(V):
            V = V.copy()
            V.data = np.log1p(np.maximum(V.data, 0.0)) * self.weight[V.indices]
        else:
            V = np.log1p(np.maximum(np.nan_to_num(V), 0.0)) * self.weight
        return normalize(V, copy=False)

    @property
    def words(self) -> str:
        return "log1p x idf, unit rows"


@dataclass(frozen=True)
class CategoryEncoder(Encoder):
    """Categories as indicators: the product of two rows is the share of columns in which they agree.

    A value that no training row has agrees with none; so does an empty cell, unless training rows had them.
    """

    encoder: Any = field(repr=False)
    filled: tuple[int, ...] = field(repr=False)

    @classmethod
    def learn(cls, table: Table, what: str) -> CategoryEncoder:
        words = np.column_stack([column.words for column in _word_columns(table, what)])
        encoder = OneHotEncoder(handle_unknown="ignore").fit(words)
        encoder.set_params(sparse_output=sum(map(len, encoder.categories_)) > DENSE_VALUES)
        return cls(encoder, tuple(sum(text is None for text in column) for column in words.T))

    def transform(self, table: Table, what: str) -> Any:
        columns = _word_columns(table, what)
        for j, known in enumerate(self.encoder.categories_):
            _require_words(columns[j], known.tolist(), table, j, what)
        found = self.encoder.transform(np.column_stack([column.words for column in columns]))
        found = found / np.sqrt(len(columns))
        return found.tocsr() if is_sparse(found) else found

    @property
    def words(self) -> str:
        return "indicators"


def _word_columns(table: Table, what: str) -> list[Column]:
    found = [read_column(table, j, what, "words") for j in range(table.shape[1])]
    for j, column in enumerate(found):
        if column.form == "set":
            raise ValueError(
                f"{column_called(table, j, what)} held categories when the model was fitted and holds sets now; "
                "pass it as it was then."
            )
    return found


def _require_words(column: Column, known: Sequence[str | None], table: Table, j: int, what: str) -> None:
    """Refuse a column of numbers or dates where none of the words at fit reads as such."""
    if column.form not in ("number", "date"):
        return
    texts = [text for text in known if text is not None]
    if any(reads_as_number(text) if column.form == "number" else ISO_DATE.match(text) for text in texts):
        return
    place = int(np.flatnonzero(~column.empty)[0])
    raise ValueError(
        f"{column_called(table, j, what)} held categories ({', '.join(map(repr, texts[:3]))}) when the model was "
        f"fitted and holds {SAID[column.form]} now ({column.words[place]!r} in row {place}); pass it as it was then."
    )


@dataclass(frozen=True)
class OrderedEncoder(Encoder):
    """Ordered categories by rank, as z-scores; a value that is none of the levels counts as empty."""

    levels: tuple[tuple[str, ...], ...] = field(repr=False)
    standardiser: Standardiser
    filled: tuple[int, ...] = field(repr=False)

    @classmethod
    def learn(cls, table: Table, what: str, levels: Sequence[tuple[str, ...]]) -> OrderedEncoder:
        V = _ranks(table, what, levels)
        return cls(tuple(levels), Standardiser.learn(V), tuple(np.isnan(V).sum(axis=0).tolist()))

    def transform(self, table: Table, what: str) -> Matrix:
        return self.standardiser.apply(_ranks(table, what, self.levels))

    @property
    def words(self) -> str:
        return "ranks, z-scores"


def _ranks(table: Table, what: str, levels: Sequence[tuple[str, ...]]) -> Matrix:
    found = np.full(table.shape, np.nan)
    for j, (known, column) in enumerate(zip(levels, _word_columns(table, what), strict=True)):
        _require_words(column, known, table, j, what)
        rank = {level: float(place) for place, level in enumerate(known)}
        found[:, j] = [rank.get(text, np.nan) for text in column.words]
    return found


@dataclass(frozen=True)
class DateEncoder(Encoder):
    """Dates and times: elapsed time as z-scores, and sine and cosine of season, weekday and hour where they vary."""

    standardiser: Standardiser
    cycles: tuple[tuple[int, float], ...] = field(repr=False)
    filled: tuple[int, ...] = field(repr=False)
    of_text: tuple[bool, ...] = field(default=(), repr=False)

    @classmethod
    def learn(cls, table: Table, what: str) -> DateEncoder:
        V = _seconds(table, what)
        cycles = [
            (j, period)
            for j in range(V.shape[1])
            for period in (YEAR, 7 * DAY, DAY)
            if np.unique(_phase(V[~np.isnan(V[:, j]), j], period)).size > 1
        ]
        filled = tuple(np.isnan(V).sum(axis=0).tolist())
        return cls(Standardiser.learn(V), tuple(cycles), filled, held_as_text(table, what))

    def transform(self, table: Table, what: str) -> Matrix:
        V = _seconds(table, what, self.of_text)
        angles = [2 * np.pi * _phase(V[:, j], period) for j, period in self.cycles]
        waves = [np.nan_to_num(wave(angle)) for angle in angles for wave in (np.sin, np.cos)]
        return np.column_stack([self.standardiser.apply(V), *waves])

    @property
    def words(self) -> str:
        return "elapsed time, season, weekday"


def _seconds(table: Table, what: str, of_text: Sequence[bool] = ()) -> Matrix:
    """Return instants in seconds, NaN where they are empty, or hold other words in a column that was text at fit."""
    found = np.empty(table.shape)
    for j in range(table.shape[1]):
        column = read_column(table, j, what, "date")
        require_form(column, ("date",), "dates", bool(of_text and of_text[j]), table, j, what)
        found[:, j] = column.numbers() / 1e6
    return found


def _phase(seconds: Vector, period: float) -> Vector:
    """Return how far into its year, week or day each instant is, from 0 to 1; by whole days beyond a day."""
    if period > DAY:
        seconds = np.floor(seconds / DAY) * DAY
    return np.mod(seconds, period) / period
