"""Several files as one table: rows are matched by an id."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelweave.cli.files import TableFile, Watch, pandas, read_table, unwatched
from kernelweave.errors import DataError
from kernelweave.views.tables import near_matches

INTEGER = re.compile(r"([+-]?\d+)\.0+")


@dataclass(frozen=True)
class JoinedTable:
    """One table of all files: its rows have an id where one was asked for.

    With several files a column is called ``file:column``, and ``groups`` are the files; a file that has
    groups of columns itself has a group ``file.array`` for each, and for every column beside them. With one
    file columns keep their names, and ``groups`` are those of the file, if any.
    """

    frame: Any = field(repr=False)
    groups: dict[str, list[str]]
    ids: Any
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read_tables(
    words: Sequence[str],
    id_column: str | None,
    target: str = "",
    *,
    id_optional: bool = False,
    watch: Watch = unwatched,
    most: int | None = None,
) -> JoinedTable:
    """Read one file, or several that share an id column; of more than ``most`` rows so many at random."""
    if len(words) == 1:
        table = read_table(words[0], id_column, target, watch=watch, most=most)
        return _drawn(single_table(table, id_column, id_optional), table.n_rows, most)
    joined = _joined_tables(words, "id" if id_column is None else id_column, target, watch)
    return _drawn(joined, len(joined.frame), most)


def _drawn(joined: JoinedTable, n_rows: int, most: int | None) -> JoinedTable:
    """Return at most so many rows at random; a note says of how many, some of which may be gone before."""
    if most is None or n_rows <= most:
        return joined
    frame, ids = joined.frame, joined.ids
    if len(frame) > most:
        rows = np.sort(np.random.default_rng(0).choice(len(frame), most, replace=False))
        frame = frame.iloc[rows].reset_index(drop=True)
        ids = None if ids is None else [ids[row] for row in rows]
    note = f"{most} of {n_rows} rows are used, drawn at random; --rows says how many"
    return replace(joined, frame=frame, ids=ids, notes=(*joined.notes, note))


def _joined_tables(words: Sequence[str], column: str, target: str, watch: Watch) -> JoinedTable:
    """Read several files and match their rows."""
    tables = [read_table(word, column, target, watch=watch) for word in words]
    names = tuple(table.name for table in tables)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"Two files are called {twice[0]!r}; name them apart as one={tables[0].path} and so on."
        )
    ids = {table.name: _ids(table, column, _matching_text) for table in tables}
    kept = _common_ids(ids)
    frames, groups = [], {}
    for table in tables:
        rest = table.frame.drop(columns=[column])
        named = {name: f"{table.name}:{name}" for name in rest.columns}
        rows = {value: row for row, value in enumerate(ids[table.name])}
        frames.append(rest.rename(columns=named).iloc[[rows[v] for v in kept]].reset_index(drop=True))
        inside = table.groups or {"": list(rest.columns)}
        for group, columns in inside.items():
            label = f"{table.name}.{group}" if len(inside) > 1 else table.name
            groups[label] = [named[c] for c in columns]
        grouped = {name for columns in inside.values() for name in columns}
        groups |= {f"{table.name}.{c}": [named[c]] for c in rest.columns if c not in grouped}
    lost = {name: len(values) - len(kept) for name, values in ids.items() if len(values) > len(kept)}
    notes = [f"{count} rows of {name} have no partner in the other files" for name, count in lost.items()]
    return JoinedTable(pandas().concat(frames, axis=1), groups, kept, names, tuple(notes))


def find_column(joined: JoinedTable, column: str) -> str:
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


def single_table(table: TableFile, id_column: str | None, id_optional: bool) -> JoinedTable:
    """Return one file as a table; an id that is optional is noted where there is none."""
    if id_column is None:
        return JoinedTable(table.frame, table.groups, None, (table.name,))
    if id_optional and id_column not in table.frame.columns:
        note = f"there is no id column {id_column!r}: rows are numbered"
        return JoinedTable(table.frame, table.groups, None, (table.name,), (note,))
    return JoinedTable(
        table.frame.drop(columns=[id_column], errors="ignore"),
        table.groups,
        _ids(table, id_column, _text),
        (table.name,),
    )


def _ids(table: TableFile, column: str, write: Callable[[Any], str]) -> list[str]:
    """Return the ids of a file as text, each once."""
    if column not in table.frame.columns:
        columns = tuple(str(name) for name in table.frame.columns)
        raise DataError(
            f"{table.path} has no id column {column!r}; it has {near_matches(column, columns)} "
            "(choose with --id)."
        )
    values = table.frame[column]
    if values.isna().any():
        raise DataError(f"The id column {column!r} of {table.path} has empty cells; every row needs an id.")
    found = [write(value) for value in values]
    value, count = Counter(found).most_common(1)[0]
    if count > 1:
        raise DataError(f"The id {value} is {count} times in {table.path}; ids have to differ.")
    return found


def _common_ids(ids: dict[str, list[str]]) -> list[str]:
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


def _matching_text(value: Any) -> str:
    """Write an id the same way in every file: 7, 7.0, '7' and '7.0' are one."""
    text = _text(value)
    integer = INTEGER.fullmatch(text)
    return integer[1] if integer else text
