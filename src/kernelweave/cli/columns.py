"""Assigns the columns of a table: the views, what is left out; and reads the target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.cli.files import pandas
from kernelweave.errors import DataError
from kernelweave.views.column_values import reads_as_date, word
from kernelweave.views.files import EMPTY_WORDS
from kernelweave.views.tables import near_matches

ID = "looks like an id"
UNNAMED = "not named in a view"
# 1,5 and 1.500,5 and 1,500,000.5; or a number without a comma.
COMMA_NUMBER = re.compile(
    r"\s*[+-]?(\d*,?\d+|\d{1,3}(\.\d{3})+(,\d*)?|\d{1,3}(,\d{3})+(\.\d*)?|\d+\.\d*)([eE][+-]?\d+)?\s*"
)
# 31/5/2024, 31.05.24, 2024/5/31
DATE = re.compile(r"\s*(\d{4}([./-])\d{1,2}\2\d{1,2}|\d{1,2}([./-])\d{1,2}\3(\d{4}|\d{2}))([T ].*)?")
LEADING_ZERO = re.compile(r"\s*[+-]?0\d")
# Of a target with more different numbers than this in one part of a file, the numbers alone are kept.
FEW = 1_000
# A column with no larger share of words was meant to hold numbers.
FEW_WORDS = 0.2


def chosen_views(words: Sequence[str], columns: list[str], target: str) -> dict[str, list[str]]:
    """Return the columns of the views a user names."""
    chosen = dict(_parse_view(word, columns, target) for word in words)
    if len(chosen) < len(words):
        raise DataError("Two views have the same name; names have to differ.")
    return chosen


def looks_like_id(name: str) -> bool:
    """Return whether the name of a column is that of an identifier: id, patient_id, index."""
    own = name.strip().lower()
    return own in ("id", "index", "unnamed: 0") or own.endswith(("_id", "-id", ".id", " id"))


def repeated_id_note(name: str) -> str:
    """Return what follows where rows share the values of a column that looks like an id."""
    return f"Rows share values of {name!r}: folds that part them make scores too good."


def look_at_cells(frame: Any, columns: Iterable[str], where: str = "") -> dict[str, str]:
    """Return a note for every column of numbers or dates that is taken for words because of some of its cells.

    Numbers that cannot be learnt from raise DataError, and so do those such as 1,5, which would be taken for words;
    ``where`` says in which rows.
    """
    notes = {}
    for name in columns:
        if is_number(frame[name]):
            _require_size(frame[name].to_numpy(dtype=np.float64, na_value=np.nan), f"Column {name!r}{where}")
            continue
        if not pandas().api.types.is_string_dtype(frame[name].dtype):
            continue
        cells = frame[name].dropna().astype(str)
        _require_no_commas(cells, f"Column {name!r}")
        words = cells[pandas().to_numeric(cells, errors="coerce").isna()]
        if 0 < len(words) <= FEW_WORDS * len(cells):
            notes[name] = (
                f"Column {name!r} is taken for words because of {words.iloc[0]!r}: {len(cells) - len(words)} of "
                f"{len(cells)} cells are numbers{where}; leave such cells empty if all should be."
            )
        elif (strange := _no_date(cells)) is not None:
            notes[name] = (
                f"Column {name!r} is taken for words because of {strange!r}{where}: dates are read where all are "
                "written like 2024-05-31; write so, or leave such cells empty."
            )
    return notes


def _require_no_commas(cells: Any, what: str) -> None:
    """Raise DataError where all cells of text are numbers, some of them with commas."""
    commas = cells[cells.str.contains(",")]
    if len(commas) and all(COMMA_NUMBER.fullmatch(cell) for cell in cells):
        raise DataError(
            f"{what} has commas inside its numbers ({commas.iloc[0]!r}), which are not read; write 1.5 for 1,5 and "
            "1500 for 1,500."
        )


def _no_date(cells: Any) -> str | None:
    """Return the first cell that does not read as a date, where nearly all were meant to be dates."""
    if not len(cells) or sum(DATE.fullmatch(cell) is not None for cell in cells) < (1 - FEW_WORDS) * len(
        cells
    ):
        return None
    return next((cell for cell in cells if not reads_as_date(cell)), None)


def ordered(cells: Any, levels: list[str], name: str) -> Any:
    """Return a column as an ordered category; its levels are given from low to high."""
    texts = cells.map(word, na_action="ignore")
    strange = texts[texts.notna() & ~texts.isin([*levels, *EMPTY_WORDS])]
    if len(strange):
        raise DataError(
            f"Column {name!r} holds {strange.iloc[0]!r}, which --order does not name; it names {', '.join(levels)}."
        )
    return pandas().Categorical(texts.where(texts.isin(levels)), categories=levels, ordered=True)


def parse_orders(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the levels of ordered columns, from words such as size=small,medium,large."""
    found = {}
    for text in words:
        name, _, rest = text.partition("=")
        levels = [level.strip() for level in rest.split(",") if level.strip()]
        if not name or len(levels) < 2 or len(set(levels)) < len(levels):
            raise DataError(f"--order is NAME=LOW,...,HIGH, such as size=small,medium,large; got {text!r}.")
        found[name] = levels
    return found


class TargetColumn:
    """A target that comes in parts: numbers, or a code for each of its different texts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: list[Any] = []
        self._texts: list[Any] = []  # None where a part has too many different ones

    def look(self, cells: Any) -> None:
        """Take a part into account."""
        texts = cells.astype("category").array
        numbers = as_quantities(cells, texts)
        self._numbers.append(numbers)
        self._texts.append(texts if numbers is None or len(texts.categories) <= FEW else None)

    def values(self) -> Any:
        """Return the column as a whole."""
        pd = pandas()
        if all(part is not None for part in self._numbers):
            return pd.concat(self._numbers, ignore_index=True)
        if any(part is None for part in self._texts):
            raise DataError(
                f"The target {self._name!r} has numbers in some rows and text or codes such as 007 in others; "
                "write all in one way."
            )
        return pd.Series(pd.api.types.union_categoricals(self._texts))


def as_quantities(cells: Any, texts: Any) -> Any:
    """Return a column as numbers, None where it holds words, or codes such as 007; ``texts`` are its categories."""
    if is_number(cells):
        return cells
    pd = pandas()
    known = pd.Series(texts.categories).astype(str)
    numbers = pd.to_numeric(known, errors="coerce")
    words = known[numbers.isna()]
    if not words.isin(EMPTY_WORDS).all() or known.map(LEADING_ZERO.match).notna().any():
        return None
    if len(known) == len(words) > 0:
        return None
    return pd.Series(np.append(numbers.to_numpy(np.float64), np.nan)[texts.codes], index=cells.index)


def read_target(values: Any, name: str, task: str) -> tuple[AnyArray, str]:
    """Return the target and its task, 'classification' or 'regression'.

    Where the task is "auto", text and integers of at most 20 different values are classes.
    """
    empty = int(values.isna().sum())
    if empty:
        raise DataError(f"The target {name!r} has {empty} empty cells; remove those rows or fill them.")
    numeric = is_number(values)
    if not numeric and task != "classification":
        _require_no_commas(pandas().Series(values.unique()).astype(str), f"The target {name!r}")
    whole = numeric and bool((values == values.round()).all())
    if task == "auto":
        task = "regression" if numeric and not (whole and values.nunique() <= 20) else "classification"
    if task == "regression":
        if not numeric:
            raise DataError(
                f"The target {name!r} is text; regression needs numbers (--task classification?)."
            )
        y = values.to_numpy(dtype=np.float64)
        _require_size(y, f"The target {name!r}")
        return y, task
    if numeric:
        y = values.to_numpy()
        y = y.astype(np.int64) if whole and y.dtype.kind == "f" and np.abs(y).max() < 2**53 else y
    else:
        y = values.astype(str).to_numpy(dtype=object).astype(str)
    kinds, counts = np.unique(y, return_counts=True)
    if kinds.size < 2:
        raise DataError(f"The target {name!r} is always {kinds[0]}; learning needs at least two classes.")
    if kinds.size > len(y) // 2:
        raise DataError(
            f"The target {name!r} has {kinds.size} classes in {len(y)} rows; is it the right column, or "
            "--task regression?"
        )
    if counts.min() < 2:
        raise DataError(
            f"The class {kinds[counts.argmin()]} of {name!r} has one row only; each needs two or more."
        )
    return y, task


def empty_word_notes(labels: Iterable[Any], name: str) -> list[str]:
    """Return a note on a class such as NA, which elsewhere stands for an empty cell."""
    return [
        f"{label!r} is one of the classes of {name!r}; remove its rows if it means that the target is not known"
        for label in map(str, labels)
        if label in EMPTY_WORDS
    ]


def is_number(values: Any) -> bool:
    """Return whether a column of a frame holds numbers (or booleans)."""
    types = pandas().api.types
    return bool(types.is_numeric_dtype(values.dtype) and not types.is_complex_dtype(values.dtype))


def _require_size(values: AnyArray, what: str) -> None:
    """Raise DataError where numbers are infinite, or so large that sums of squares overflow."""
    if np.isinf(values).any():
        raise DataError(f"{what} has infinite values; replace them, or leave those cells empty.")
    if (top := np.abs(values[~np.isnan(values)]).max(initial=0.0)) > 1e150:
        raise DataError(
            f"{what} has values as large as {top:.1e}, whose squares overflow; write it in larger units."
        )


def _parse_view(word: str, columns: list[str], target: str) -> tuple[str, list[str]]:
    name, sign, rest = word.partition("=")
    if not sign or not name or not rest:
        raise DataError(f"--view is NAME=COLUMNS, such as size=width,height or rna=gene*; got {word!r}.")
    found: list[str] = []
    for part in rest.split(","):
        found += _matching_columns(part.strip(), columns, target, name)
    return name, list(dict.fromkeys(found))


def _matching_columns(part: str, columns: list[str], target: str, view: str) -> list[str]:
    """Return the columns of a name, a pattern with * or ?, or a range first:last."""
    if part in columns:
        return [part]
    if part == target:
        raise DataError(f"View {view!r} asks for {part!r}, which is the target; leave it out.")
    first, sign, last = part.partition(":")
    if sign and first in columns and last in columns:
        if columns.index(first) > columns.index(last):
            raise DataError(f"The range {part!r} of view {view!r} runs backwards; write {last}:{first}.")
        return columns[columns.index(first) : columns.index(last) + 1]
    found = [name for name in columns if fnmatchcase(name, part)]
    if not found:
        near = near_matches(part, tuple(columns))
        raise DataError(f"View {view!r} asks for {part!r}, but there is no such column; did you mean {near}?")
    return found
