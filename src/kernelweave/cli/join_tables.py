"""Several files as one table: rows are matched by an id."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelweave.cli.files import Sheet, pandas, read_sheet
from kernelweave.errors import DataError
from kernelweave.views.columns import near_matches

WHOLE = re.compile(r"([+-]?\d+)\.0+")


@dataclass(frozen=True)
class Joined:
    """One table of all files: its rows have an id where one was asked for.

    With several files a column is called ``file:column``, and ``groups`` are the files; a file that keeps
    columns together itself has a group ``file.array`` for each, and for every column beside them. With one
    file columns keep their names, and ``groups`` are what the file keeps together, if anything.
    """

    frame: Any = field(repr=False)
    groups: dict[str, list[str]]
    ids: Any
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_joined(
    words: Sequence[str], id_column: str | None, target: str = "", *, id_optional: bool = False
) -> Joined:
    """Read one file, or several that share an id column."""
    column = "id" if id_column is None and len(words) > 1 else id_column
    sheets = [read_sheet(word, column, target) for word in words]
    names = tuple(sheet.name for sheet in sheets)
    if len(sheets) == 1 or column is None:
        return _alone(sheets[0], id_column, id_optional)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"Two files are called {twice[0]!r}; name them apart as one={sheets[0].path} and so on."
        )
    ids = {sheet.name: _ids(sheet, column, _matched) for sheet in sheets}
    kept = _common(ids)
    frames, groups = [], {}
    for sheet in sheets:
        rest = sheet.frame.drop(columns=[column])
        named = {name: f"{sheet.name}:{name}" for name in rest.columns}
        rows = {value: row for row, value in enumerate(ids[sheet.name])}
        frames.append(rest.rename(columns=named).iloc[[rows[v] for v in kept]].reset_index(drop=True))
        inside = sheet.groups or {"": list(rest.columns)}
        for group, columns in inside.items():
            label = f"{sheet.name}.{group}" if len(inside) > 1 else sheet.name
            groups[label] = [named[c] for c in columns]
        grouped = {name for columns in inside.values() for name in columns}
        groups |= {f"{sheet.name}.{c}": [named[c]] for c in rest.columns if c not in grouped}
    lost = {name: len(values) - len(kept) for name, values in ids.items() if len(values) > len(kept)}
    notes = [f"{count} rows of {name} have no partner in the other files" for name, count in lost.items()]
    return Joined(pandas().concat(frames, axis=1), groups, kept, names, tuple(notes))


def find_column(joined: Joined, column: str) -> str:
    """Return the full name of a column that may be in any of the files."""
    columns = [str(name) for name in joined.frame.columns]
    if column in columns:
        return column
    found = [f"{name}:{column}" for name in joined.names if f"{name}:{column}" in columns]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(f"Column {column!r} is in several files; write one of {', '.join(found)}.")
    raise DataError(f"There is no column {column!r}; did you mean {near_matches(column, tuple(columns))}?")


def _alone(sheet: Sheet, id_column: str | None, id_optional: bool) -> Joined:
    if id_column is None:
        return Joined(sheet.frame, sheet.groups, None, (sheet.name,))
    if id_optional and id_column not in sheet.frame.columns:
        note = f"there is no id column {id_column!r}: rows are numbered"
        return Joined(sheet.frame, sheet.groups, None, (sheet.name,), (note,))
    return Joined(
        sheet.frame.drop(columns=[id_column], errors="ignore"),
        sheet.groups,
        _ids(sheet, id_column, _text),
        (sheet.name,),
    )


def _ids(sheet: Sheet, column: str, write: Callable[[Any], str]) -> list[str]:
    """Return the ids of a file as text, each once."""
    if column not in sheet.frame.columns:
        columns = tuple(str(name) for name in sheet.frame.columns)
        raise DataError(
            f"{sheet.path} has no id column {column!r}; it has {near_matches(column, columns)} "
            "(choose with --id)."
        )
    values = sheet.frame[column]
    if values.isna().any():
        raise DataError(f"The id column {column!r} of {sheet.path} has empty cells; every row needs an id.")
    found = [write(value) for value in values]
    value, count = Counter(found).most_common(1)[0]
    if count > 1:
        raise DataError(f"The id {value} is {count} times in {sheet.path}; ids have to differ.")
    return found


def _common(ids: dict[str, list[str]]) -> list[str]:
    first, *others = ids.values()
    shared = set(first).intersection(*others)
    if not shared:
        examples = "; ".join(f"{name} has {values[0]!r}" for name, values in ids.items())
        raise DataError(f"The files have no id in common ({examples} ...).")
    return [value for value in first if value in shared]


def _text(value: Any) -> str:
    """Write an id the same way whatever type a file gave it: 7 and 7.0 are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


def _matched(value: Any) -> str:
    """Write an id the same way in every file: 7, 7.0, '7' and '7.0' are one."""
    text = _text(value)
    whole = WHOLE.fullmatch(text)
    return whole[1] if whole else text
