"""Assigns the columns of a table: the target, the id, the views, and what is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.cli.files import pandas
from kernelweave.cli.join_tables import JoinedTable, find_column
from kernelweave.errors import DataError
from kernelweave.views.tables import near_matches

ID = "looks like an id"
COMMAS = "decimal commas are not read; write 1.5 for 1,5"
COMMA_NUMBER = re.compile(r"\s*[+-]?\d*,?\d+([eE][+-]?\d+)?\s*")


@dataclass(frozen=True)
class TableColumns:
    """Which column is the target, which are in each view, and which are left out and why."""

    target: str
    views: dict[str, list[str]]
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def used(self) -> list[str]:
        """All columns of the views, each once, in order."""
        return list(dict.fromkeys(name for columns in self.views.values() for name in columns))

    @property
    def positions(self) -> dict[str, list[int]]:
        """The views as positions among the columns that are used."""
        position = {name: k for k, name in enumerate(self.used)}
        return {view: [position[name] for name in columns] for view, columns in self.views.items()}


def assign_columns(joined: JoinedTable, target: str, views: Sequence[str]) -> TableColumns:
    """Decide what every column is; without ``views`` they are the files' groups, or all numbers."""
    if views and len(joined.names) > 1:
        raise DataError("Several files are views already; use --view with one file only.")
    full = find_column(joined, target)
    columns = [str(name) for name in joined.frame.columns if name != full]
    if views:
        chosen = dict(_parse_view(word, columns, full) for word in views)
        if len(chosen) < len(views):
            raise DataError("Two views have the same name; names have to differ.")
    else:
        grouped = joined.groups or {"all": columns}
        chosen = {
            name: [c for c in group if c != full and reason_to_leave_out(joined.frame[c]) is None]
            for name, group in grouped.items()
        }
        chosen = {name: group for name, group in chosen.items() if group}
    if not chosen:
        hint = next((f" ({c!r}: {COMMAS})" for c in columns if has_decimal_commas(joined.frame[c])), "")
        raise DataError(f"There is no column of numbers beside the target {target!r} to learn from{hint}.")
    used = {name for group in chosen.values() for name in group}
    left_out = {
        name: reason_to_leave_out(joined.frame[name]) or "not named in a view"
        for name in columns
        if name not in used
    }
    return TableColumns(full, chosen, left_out)


def numeric_table(frame: Any, columns: Sequence[str], where: str = "") -> Any:
    """Return these columns as floats; every cell has to be a finite number. Errors say ``where`` it is not."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise DataError(
            f"The data lack {len(missing)} of the {len(columns)} columns the model needs: {shown}."
        )
    for name in columns:
        _require_numbers(frame[name], name, where)
    return frame[list(columns)].astype(np.float64)


def read_target(values: Any, name: str, task: str) -> tuple[AnyArray, str]:
    """Return the target and its task, 'classification' or 'regression'.

    Where the task is "auto", text and integers of at most 20 different values are classes.
    """
    empty = int(values.isna().sum())
    if empty:
        raise DataError(f"The target {name!r} has {empty} empty cells; remove those rows or fill them.")
    numeric = is_number(values)
    if task == "auto":
        integers = numeric and bool((values == values.round()).all())
        task = "regression" if numeric and not (integers and values.nunique() <= 20) else "classification"
    if task == "regression":
        if not numeric:
            raise DataError(
                f"The target {name!r} is text; regression needs numbers (--task classification?)."
            )
        _require_numbers(values, name)
        return values.to_numpy(dtype=np.float64), task
    y = values.to_numpy() if numeric else values.astype(str).to_numpy(dtype=object).astype(str)
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


def is_number(values: Any) -> bool:
    """Return whether a column of a frame holds numbers (or booleans)."""
    types = pandas().api.types
    return bool(types.is_numeric_dtype(values.dtype) and not types.is_complex_dtype(values.dtype))


def has_decimal_commas(values: Any) -> bool:
    """Return whether a column of text is made of numbers such as 1,5."""
    if is_number(values):
        return False
    cells = values.dropna().astype(str)
    return bool(cells.str.contains(",").any()) and all(COMMA_NUMBER.fullmatch(cell) for cell in cells)


def reason_to_leave_out(values: Any) -> str | None:
    """Return why a column that is in no named view is not learnt from, or None."""
    if not is_number(values):
        return COMMAS if has_decimal_commas(values) else "not a number"
    return ID if looks_like_id(str(values.name)) else None


def looks_like_id(name: str) -> bool:
    """Return whether the name of a column is that of an identifier: id, patient_id, index."""
    word = name.rpartition(":")[2].strip().lower()
    return word in ("id", "index", "unnamed: 0") or word.endswith(("_id", "-id", ".id", " id"))


def shared_id_notes(frame: Any, columns: TableColumns) -> list[str]:
    """Return a sentence for every column left out as an id whose values several rows share."""
    return [
        shared_id_note(name)
        for name, reason in columns.left_out.items()
        if reason == ID and not frame[name].is_unique
    ]


def shared_id_note(name: str) -> str:
    """Return what follows where rows share the values of a column that looks like an id."""
    return f"Rows share values of {name!r}: folds that part them make scores too good."


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


def _require_numbers(values: Any, name: str, where: str = "") -> None:
    column = f"Column {name!r}{where}"
    if not is_number(values):
        not_numbers = values[pandas().to_numeric(values, errors="coerce").isna() & values.notna()]
        example = not_numbers.iloc[0] if len(not_numbers) else values.iloc[0]
        remedy = COMMAS if has_decimal_commas(values) else "encode it or leave it out"
        raise DataError(f"{column} is not made of numbers (such as {example!r}); {remedy}.")
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    empty = int(np.isnan(numbers).sum())
    if empty:
        which = "all cells" if empty == len(numbers) else f"{empty} of {len(numbers)} cells"
        raise DataError(f"{column} has {which} empty; fill them or leave the column out.")
    if not np.isfinite(numbers).all():
        raise DataError(f"{column} has infinite values; replace them or leave the column out.")
    if (top := np.abs(numbers).max()) > 1e150:  # sums of squares over the rows must not overflow
        raise DataError(
            f"{column} has values as large as {top:.1e}, whose squares overflow; write it in larger units."
        )
