"""One column of a table, whatever holds it, as plain values: numbers, words, instants or members of sets."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.views.tables import (
    Table,
    as_floats,
    column_called,
    is_pandas,
    is_polars,
    is_sparse,
    take_columns,
)

ISO_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?(Z|[+-]\d{2}:?\d{2})?", re.ASCII
)
COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
COMPLEX = "is not numeric: it holds complex numbers. Complex data not supported; pass real numbers."
# Whole numbers from here on are not all float64 numbers.
EXACT = 2**53


@dataclass(frozen=True)
class Column:
    """The values of a column: an array of numbers, booleans or instants, or of objects; and which are empty.

    ``form`` is "number", "boolean", "date", "words", "set" or "empty". ``levels`` are the declared values of a
    categorical column, and ``ordered`` says whether their order means something. ``unread`` is the first cell that
    did not read as the form asked for, which counts as empty: its row and what it holds.
    """

    values: AnyArray = field(repr=False)
    empty: AnyArray = field(repr=False)
    form: str
    levels: tuple[str, ...] | None = None
    ordered: bool = False
    unread: tuple[int, Any] | None = None

    @cached_property
    def words(self) -> AnyArray:
        """The values as text, None where they are empty."""
        found = np.full(self.values.size, None, dtype=object)
        for place in np.flatnonzero(~self.empty):
            found[place] = word(self.values[place])
        return found

    def numbers(self, origin: int = 0) -> Vector:
        """Return the values as float64 from an origin on, NaN where they are empty."""
        values = self.values
        if self.form == "date":
            values = values.astype("datetime64[us]").astype(np.int64)
        if origin:  # whole numbers beyond float64 are compared exactly
            whole = np.where(self.empty, origin, values).astype(object)
            found: Vector = (whole - origin).astype(np.float64)
        else:
            found = np.where(self.empty, 0, values).astype(np.float64)
        found[self.empty] = np.nan
        return found

    def members(self) -> list[list[str]]:
        """Return the members of every set as text, each once."""
        return [
            [] if gone else list(dict.fromkeys(word(member) for member in value if not is_empty(member)))
            for value, gone in zip(self.values, self.empty, strict=True)
        ]


def read_column(table: Table, position: int, what: str, form: str = "") -> Column:
    """Return a column of a dense table as plain values.

    ``form`` says how to read text, "number", "date" or "words", so that a cell reads alike whatever the other rows
    hold; without it, text that reads as numbers or dates throughout is taken for these.
    """
    try:
        if is_pandas(table):
            found = _of_pandas(table.iloc[:, position], form)
        elif is_polars(table):
            found = _of_polars(table.to_series(position), form)
        else:
            found = _of_array(np.asarray(table)[:, position], form)
        if found.empty.all():
            return Column(np.zeros(found.empty.size), found.empty, "empty", unread=found.unread)
        return found
    except UnreadableError as error:
        raise error.kind(f"{column_called(table, position, what)} {error}") from None


class UnreadableError(Exception):
    """Says of a column why it cannot be read."""

    def __init__(self, text: str, kind: type[Exception] = ValueError) -> None:
        super().__init__(text)
        self.kind = kind


def number_matrix(
    table: Table, what: str, origins: Sequence[int] | None = None, of_text: Sequence[bool] = ()
) -> Matrix:
    """Return columns that hold numbers or booleans as float64, NaN where they are empty.

    ``origins`` are whole numbers taken off the columns beforehand, exactly. ``of_text`` says which columns were text at
    fit: there words that are no numbers count as empty.
    """
    plain = origins is None or not any(origins)
    if plain and (is_sparse(table) or all(numeric_dtypes(table))):
        values: Matrix = as_floats(table, what, finite=False)
        return values
    found = np.empty(table.shape)
    for j in range(table.shape[1]):
        column = read_column(table, j, what, "number")
        require_form(column, ("number", "boolean"), "numbers", bool(of_text and of_text[j]), table, j, what)
        found[:, j] = column.numbers(0 if origins is None else origins[j])
    return found


def require_form(
    column: Column, forms: tuple[str, ...], held: str, of_text: bool, table: Table, j: int, what: str
) -> None:
    """Raise ValueError where a column holds something else than at fit; words in one that was text are warned of.

    These count as empty: a fold may hold the only word among text that reads as numbers.
    """
    if column.form not in (*forms, "empty"):
        place = int(np.flatnonzero(~column.empty)[0])
        now, value = SAID[column.form], column.values[place]
    elif column.unread is not None:
        now, (place, value) = SAID["words"], column.unread
    else:
        return
    then = f"{column_called(table, j, what)} held {held} when the model was fitted"
    advice = f"pass {held} as then{DATES_AS if held == 'dates' else ''}."
    if of_text and now == SAID["words"]:
        said = f"{then}; cells that hold none now count as empty, such as {value!r} in row {place}: {advice}"
        warnings.warn(said, UserWarning, stacklevel=2)
        return
    raise ValueError(f"{then} and holds {now} now ({value!r} in row {place}); {advice}")


def held_as_text(table: Table, what: str) -> tuple[bool, ...]:
    """Return of every column whether its cells are text."""
    return tuple(
        not numeric and read_column(table, j, what, "words").form == "words"
        for j, numeric in enumerate(numeric_dtypes(table))
    )


DATES_AS = ", or text such as '2024-05-31'"
SAID = {"number": "numbers", "boolean": "true and false", "date": "dates", "words": "words", "set": "sets"}


def numeric_dtypes(table: Table) -> list[bool]:
    """Return of every column whether its type alone says that it holds numbers or booleans."""
    if is_pandas(table):
        types = sys.modules["pandas"].api.types
        by_type = {t: types.is_numeric_dtype(t) and not types.is_complex_dtype(t) for t in set(table.dtypes)}
        return [by_type[t] for t in table.dtypes]
    if is_polars(table):
        boolean = sys.modules["polars"].Boolean
        return [bool(t.is_numeric() or t == boolean) for t in table.dtypes]
    return [table.dtype.kind in "biuf"] * int(table.shape[1])


def empty_cells(table: Table, positions: Indices | Sequence[int], what: str) -> AnyArray:
    """Return which cells of some columns are empty, of shape (rows, columns)."""
    part = take_columns(table, np.asarray(positions, dtype=np.intp))
    if is_sparse(part):
        return np.zeros(part.shape, dtype=bool)
    numeric = numeric_dtypes(part)
    if all(numeric):
        if not is_pandas(part) and not is_polars(part) and part.dtype.kind != "f":
            return np.zeros(part.shape, dtype=bool)
        return np.asarray(np.isnan(as_floats(part, what, finite=False)))
    return np.column_stack([read_column(part, j, what, "words").empty for j in range(part.shape[1])])


def word(value: Any) -> str:
    """Return a value as text, the same in every frame library: 1, 1.0 and "1" are one value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_empty(value: Any) -> bool:
    """Tell whether a cell holds nothing: None, NaN, NaT, NA or blank text."""
    if isinstance(value, str):
        return not value or value.isspace()
    if value is None:
        return True
    if isinstance(value, COLLECTIONS):
        return False
    return type(value).__name__ in ("NAType", "NaTType") or bool(
        isinstance(value, float | np.floating | Decimal | np.datetime64 | np.timedelta64) and value != value
    )


def _of_array(values: AnyArray, form: str = "") -> Column:
    kind = values.dtype.kind
    if kind == "c":
        raise UnreadableError(COMPLEX)
    if kind in "biu":
        return Column(values, np.zeros(values.size, dtype=bool), "boolean" if kind == "b" else "number")
    if kind == "f":
        return Column(values, np.isnan(values), "number")
    if kind == "M":
        return Column(values.astype("datetime64[us]"), np.isnat(values), "date")
    if kind == "m":
        gone = np.isnat(values)
        return Column(values.astype("timedelta64[us]").astype(np.int64) / 1e6, gone, "number")
    return of_objects(values.astype(object), form)


def _of_pandas(series: Any, form: str) -> Column:
    types = sys.modules["pandas"].api.types
    dtype, gone = series.dtype, np.asarray(series.isna(), dtype=bool)
    if hasattr(dtype, "categories"):  # its own declaration, whatever its values
        found = of_objects(series.to_numpy(dtype=object), form or "words")
        if form in ("number", "date"):
            return found
        return Column(
            found.values, found.empty, "words", tuple(map(word, dtype.categories)), bool(dtype.ordered)
        )
    if types.is_bool_dtype(dtype):
        return Column(series.fillna(False).to_numpy(dtype=bool), gone, "boolean")
    if types.is_complex_dtype(dtype):
        return _of_array(series.to_numpy())
    if types.is_integer_dtype(dtype):
        unsigned = types.is_unsigned_integer_dtype(dtype)
        return Column(series.fillna(0).to_numpy(dtype=np.uint64 if unsigned else np.int64), gone, "number")
    if types.is_numeric_dtype(dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return Column(values, np.isnan(values), "number")
    if types.is_datetime64_any_dtype(dtype):
        if getattr(series.dt, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return Column(np.asarray(series.to_numpy(dtype="datetime64[us]")), gone, "date")
    if types.is_timedelta64_dtype(dtype):
        return _of_array(series.to_numpy(dtype="timedelta64[us]"))
    if type(dtype).__name__ == "PeriodDtype":
        return _of_array(series.dt.to_timestamp().to_numpy())
    return of_objects(series.to_numpy(dtype=object), form)


def _of_polars(series: Any, form: str) -> Column:
    pl = sys.modules["polars"]
    dtype, gone = series.dtype, series.is_null().to_numpy()
    if dtype == pl.Boolean:
        return Column(series.fill_null(False).to_numpy(), gone, "boolean")
    if dtype.is_integer() and dtype.base_type() in (pl.Int64, pl.UInt64):
        return Column(series.fill_null(0).to_numpy(), gone, "number")
    if dtype.is_numeric():
        values = series.cast(pl.Float64).to_numpy()
        return Column(values, np.isnan(values), "number")
    if dtype == pl.Date or dtype == pl.Datetime:
        micro = series.cast(pl.Datetime("us")) if dtype == pl.Date else series.dt.cast_time_unit("us")
        return Column(micro.to_physical().fill_null(0).to_numpy().astype("datetime64[us]"), gone, "date")
    if dtype == pl.Duration:
        return Column(series.dt.total_microseconds().fill_null(0).to_numpy() / 1e6, gone, "number")
    if dtype == pl.Time:
        return Column(series.to_physical().fill_null(0).to_numpy() / 1e9, gone, "number")
    declared = dtype in (pl.Enum, pl.Categorical)
    found = of_objects(_objects(series.to_list()), form or ("words" if declared else ""))
    if declared and form not in ("number", "date"):
        levels = tuple(dtype.categories) if dtype == pl.Enum else ()
        return Column(found.values, found.empty, "words", levels, dtype == pl.Enum)
    return found


def _objects(values: Sequence[Any]) -> AnyArray:
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def of_objects(values: AnyArray, form: str = "") -> Column:
    """Return a column of any objects by what its cells are, and by the form asked for."""
    empty = np.fromiter((is_empty(value) for value in values), dtype=bool, count=values.size)
    kinds = {type(value) for value in values[~empty]}
    if not kinds:
        return Column(np.zeros(values.size), empty, "empty")
    if any(issubclass(kind, dict) for kind in kinds):
        raise UnreadableError(
            "holds dicts; a cell argument must be a string, a real number, a date or a set of values: "
            "make columns of their keys.",
            TypeError,
        )
    in_sets = [issubclass(kind, COLLECTIONS) for kind in kinds]
    if all(in_sets):
        return Column(values, empty, "set")
    if any(in_sets):
        raise UnreadableError(
            "holds sets in some rows and single values in others; make sets of all of them.", TypeError
        )
    if any(issubclass(kind, complex | np.complexfloating) for kind in kinds):
        raise UnreadableError(COMPLEX)
    held = _form_of_cells(kinds)
    if form == "words":
        return Column(values, empty, held)
    if held == "boolean":
        return Column(np.where(empty, False, values).astype(bool), empty, "boolean")
    if held == "number":
        return _of_numbers(values, empty)
    if held == "date":
        return Column(_instants(values, empty), empty, "date")
    if form:
        return _parsed(values, empty, form)
    if all(issubclass(kind, str) for kind in kinds):
        return _of_text(values, empty)
    return Column(values, empty, "words")


def _form_of_cells(kinds: set[type]) -> str:
    if kinds <= {bool, np.bool_}:
        return "boolean"
    if all(issubclass(kind, Real | Decimal | np.number) for kind in kinds):
        return "number"
    return "date" if all(issubclass(kind, date | np.datetime64) for kind in kinds) else "words"


def _of_numbers(values: AnyArray, empty: AnyArray) -> Column:
    whole = all(isinstance(value, int | np.integer) for value in values[~empty])
    filled = np.where(empty, 0, values)
    return Column(filled if whole else filled.astype(np.float64), empty, "number")


def _of_text(values: AnyArray, empty: AnyArray) -> Column:
    """Return text as numbers or dates where all of it reads so."""
    present = values[~empty]
    if ISO_DATE.fullmatch(present[0].strip()):
        try:
            return Column(_instants(values, empty), empty, "date")
        except ValueError:
            return Column(values, empty, "words")
    try:
        numbers = np.zeros(values.size)
        numbers[~empty] = [float(text) for text in present]
    except ValueError:
        return Column(values, empty, "words")
    if not np.isfinite(numbers).all():  # "inf" and "nan" are words here
        return Column(values, empty, "words")
    return Column(numbers, empty, "number")


def _parsed(values: AnyArray, empty: AnyArray, form: str) -> Column:
    """Return cells as numbers or dates, each by itself; those which are none count as empty."""
    read, gone, unread = (_instant if form == "date" else _number), empty.copy(), None
    found = np.zeros(values.size, dtype="datetime64[us]" if form == "date" else object)
    for place in np.flatnonzero(~empty):
        try:
            found[place] = read(values[place])
        except (ValueError, TypeError):
            gone[place] = True
            unread = unread or (int(place), values[place])
    return Column(found, gone, form, unread=unread)


def _number(value: Any) -> float | int:
    """Return a finite number, or raise ValueError: "inf" and "nan" are words."""
    if isinstance(value, int | np.integer):
        return value  # type: ignore[return-value]
    if isinstance(value, float | np.floating):
        return float(value)
    if not np.isfinite(number := float(value)):
        raise ValueError(f"{value!r} is no number")
    return number


def reads_as_number(text: str) -> bool:
    """Tell whether text is a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def reads_as_date(text: str) -> bool:
    """Tell whether text is a date."""
    try:
        _instant(text)
    except ValueError:
        return False
    return True


def _instants(values: AnyArray, empty: AnyArray) -> AnyArray:
    found = np.zeros(values.size, dtype="datetime64[us]")
    for place in np.flatnonzero(~empty):
        found[place] = _instant(values[place])
    return found


def _instant(value: Any) -> np.datetime64:
    if isinstance(value, str):
        value = value.strip()
        if not ISO_DATE.fullmatch(value):
            raise ValueError(f"{value!r} is no date")
        value = datetime.fromisoformat(value)
    if not isinstance(value, date | np.datetime64):
        raise ValueError(f"{value!r} is no date")
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")
