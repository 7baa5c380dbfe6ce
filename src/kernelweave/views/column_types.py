"""What the columns of a table hold: numbers, categories, dates, text, sets; and those that hold nothing of use."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.views.column_values import EXACT, Column, number_matrix, numeric_dtypes, read_column
from kernelweave.views.tables import Table, column_names, is_sparse, take_columns

# Names of columns that number the rows.
IDENTIFIER = re.compile(
    r"(?i:(^|[_\-. ])(id|ids|uuid|guid|identifier|mrn|barcode|row|index|key)$|^unnamed: ?\d+$)|[a-z](ID|Id)$"
)
LONGEST_IDENTIFIER = 40
# Text has this many words on average, or else more than this many different values; most of them differ.
WORDS_OF_TEXT = 4
VALUES_OF_TEXT = 20
# A dense table of counts: so many columns at least, and this share of zeros at least.
COLUMNS_OF_COUNTS = 100
ZEROS_OF_COUNTS = 0.8


@dataclass(frozen=True)
class ColumnType:
    """What a column holds.

    ``name`` is "number", "boolean", "category", "ordered", "date", "text" or "set"; ``note`` says "constant" or
    "identifier" of a column that can teach nothing. ``levels`` are the values of an ordered column, low to high.
    """

    name: str
    note: str = ""
    levels: tuple[str, ...] | None = None


def column_types(table: Table, what: str = "X") -> tuple[ColumnType, ...]:
    """Return what every column holds.

    >>> import numpy as np
    >>> table = np.array([["a", 1.5], ["b", 2.0], ["a", None]], dtype=object)
    >>> [column.name for column in column_types(table)]
    ['category', 'number']
    """
    names = column_names(table) or ("",) * int(table.shape[1])
    if is_sparse(table):
        return (ColumnType("number"),) * int(table.shape[1])
    found: list[ColumnType | None] = [None] * len(names)
    plain = np.flatnonzero(numeric_dtypes(table))
    if plain.size:
        for position, kind in zip(plain, _numeric_types(table, plain, names, what), strict=True):
            found[position] = kind
    return tuple(
        column_type(read_column(table, j, what), names[j]) if kind is None else kind
        for j, kind in enumerate(found)
    )


def column_type(column: Column, name: str = "") -> ColumnType:
    """Return what one column holds."""
    present = ~column.empty
    if column.form == "empty":
        return ColumnType("number", "constant")
    if column.form in ("number", "boolean", "date"):
        values = column.values[present]
        note = "constant" if values.size == 0 or bool((values == values[0]).all()) else ""
        if not note and column.form == "number" and IDENTIFIER.search(name):
            note = _numbering(values)
        return ColumnType(column.form, note)
    if column.form == "set":
        return ColumnType("set", _constant(tuple(sorted(members)) for members in column.members() if members))
    words = column.words[present].tolist()
    note = _constant(words)
    if column.ordered:
        return ColumnType("ordered", note, column.levels)
    distinct = len(set(words))
    if column.levels is None and not note:
        if distinct == len(words) > 2 and _is_identifier(words, name):
            return ColumnType("category", "identifier")
        if _is_text(words, distinct):
            return ColumnType("text")
    return ColumnType("category", note)


def are_counts(table: Table) -> bool:
    """Tell whether a table holds counts: it is sparse, or has many columns of whole numbers, most of them 0."""
    if is_sparse(table):
        return not (table.data < 0).any()
    if table.shape[1] < COLUMNS_OF_COUNTS or not all(numeric_dtypes(table)):
        return False
    values = number_matrix(table, "X")
    with np.errstate(invalid="ignore"):
        return bool(
            (values == 0).mean() > ZEROS_OF_COUNTS
            and (values >= 0).all()
            and (values == np.floor(values)).all()
        )


def _numeric_types(table: Table, positions: AnyArray, names: tuple[str, ...], what: str) -> list[ColumnType]:
    """Return the types of columns of numbers, all at once: there may be thousands."""
    values = number_matrix(take_columns(table, positions), what)
    gone = np.isnan(values)
    low = np.where(gone, np.inf, values).min(axis=0)
    high = np.where(gone, -np.inf, values).max(axis=0)
    booleans = _booleans(table)
    found = []
    for k, position in enumerate(positions):
        name, note = "boolean" if booleans[position] else "number", ""
        if name == "number" and (max(-low[k], high[k]) >= EXACT or IDENTIFIER.search(names[position])):
            found.append(column_type(read_column(table, int(position), what), names[position]))
            continue
        if not low[k] < high[k]:
            note = "constant"
        found.append(ColumnType(name, note))
    return found


def _booleans(table: Table) -> list[bool]:
    if hasattr(table, "dtypes"):
        return [str(dtype).lower() in ("bool", "boolean", "bool[pyarrow]") for dtype in table.dtypes]
    return [table.dtype.kind == "b"] * int(table.shape[1])


def _numbering(values: AnyArray) -> str:
    """Return "identifier" for whole numbers all of which differ."""
    whole = values.dtype.kind in "iuO" or bool((values == np.floor(values)).all())
    return "identifier" if whole and values.size > 2 and len(set(values.tolist())) == values.size else ""


def _constant(values: object) -> str:
    return "constant" if len(set(values)) <= 1 else ""  # type: ignore[call-overload]


def _is_identifier(words: list[str], name: str) -> bool:
    """Tell whether words, all of them different, are names of rows: short, without blanks, with digits."""
    if any(len(text) > LONGEST_IDENTIFIER or len(text.split()) > 1 for text in words):
        return False
    return bool(IDENTIFIER.search(name)) or all(any(sign.isdigit() for sign in text) for text in words)


def _is_text(words: list[str], distinct: int) -> bool:
    if 2 * distinct <= len(words):
        return False
    return distinct > VALUES_OF_TEXT or sum(len(text.split()) for text in words) >= WORDS_OF_TEXT * len(words)
