"""The files of a command as samples: one table, or several joined by an id so that nobody is lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.cli.files import TableFile, Watch, column_names, named_path, read_table, unwatched
from kernelweave.errors import DataError
from kernelweave.views.column_values import is_empty, word
from kernelweave.views.tables import near_matches
from kernelweave.views.views import Views

INTEGER = re.compile(r"([+-]?\d+)\.0+")


@dataclass(frozen=True)
class Tables:
    """The files, the column that tells rows apart, and what there is to say about how it was found."""

    files: list[TableFile] = field(repr=False)
    id_column: str | None
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        return [file.name for file in self.files]

    def find(self, column: str) -> tuple[TableFile, str]:
        """Return the file that has a column, ``column`` or ``file:column``, and its name there."""
        names = [
            column if column in file.frame.columns else column.removeprefix(f"{file.name}:")
            for file in self.files
        ]
        found = [
            (file, name) for file, name in zip(self.files, names, strict=True) if name in file.frame.columns
        ]
        if len(found) == 1:
            return found[0]
        if found:
            full = ", ".join(f"{file.name}:{name}" for file, name in found)
            raise DataError(f"Column {column!r} is in several files; write one of {full}.")
        known = tuple(str(name) for file in self.files for name in file.frame.columns)
        raise DataError(f"There is no column {column!r}; did you mean {near_matches(column, known)}?")

    def ids(self, file: TableFile) -> AnyArray | None:
        """Return the ids of the rows of a file as text, each once; None where none is asked for."""
        if self.id_column is None:
            return None
        if self.id_column not in file.frame.columns:
            known = tuple(str(name) for name in file.frame.columns)
            raise DataError(
                f"{file.path} has no id column {self.id_column!r}; it has {near_matches(self.id_column, known)} "
                "(choose with --id)."
            )
        values = file.frame[self.id_column].tolist()
        if any(map(is_empty, values)):
            raise DataError(
                f"The id column {self.id_column!r} of {file.path} has empty cells; every row needs an id."
            )
        found = [_id(value, match=len(self.files) > 1) for value in values]
        value, count = Counter(found).most_common(1)[0]
        if count > 1:
            raise DataError(f"The id {value} is {count} times in {file.path}; ids have to differ.")
        return np.array(found, dtype=object)


def read_tables(
    words: Sequence[str],
    id_column: str | None,
    target: str = "",
    *,
    as_written: Sequence[str] = (),
    as_text: Sequence[str] = (),
    watch: Watch = unwatched,
    most: int | None = None,
) -> Tables:
    """Read the files; the id of several is guessed unless it is named."""
    several, names = len(words) > 1, [named_path(word)[0] for word in words]
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"Two files are called {twice!r}; name them apart as one={words[0]} and so on.")

    def read(keys: Sequence[str]) -> list[TableFile]:
        wanted = [target, *as_written]
        kept = [*keys, *wanted, *(text.removeprefix(f"{name}:") for text in wanted for name in names)]
        # Rows of several files are drawn when they are joined.
        options: dict[str, Any] = {"as_text": as_text, "watch": watch, "most": None if several else most}
        return [read_table(one, [name for name in kept if name], **options) for one in words]

    if id_column is not None or not several:
        return Tables(read([] if id_column is None else [id_column]), id_column)
    shared = [name for name in column_names(words[0]) if all(name in column_names(one) for one in words[1:])]
    files = read(shared)
    key = _guessed_id(files, [name for name in shared if name != target])
    said = f"Rows are matched by {key!r}, which tells the rows of all files apart; --id names another."
    return Tables(files if len(shared) == 1 else read([key]), key, (said,))


def joined(
    tables: Tables, views: dict[str, tuple[TableFile, list[str]]], *, strangers: bool = False
) -> Views:
    """Return columns of several files as views of everybody who is in one of them; others lack that view.

    ``strangers`` says that files need not have anybody in common.
    """
    frames = {
        name: file.frame[columns].set_axis(tables.ids(file), axis=0)
        for name, (file, columns) in views.items()
    }
    return Views.join(frames, strangers=strangers)


def views_of(file: TableFile, columns: Sequence[str], *, several: bool) -> dict[str, list[str]]:
    """Return columns of a file by view: the arrays of an NPZ file, and every column beside them, or all as one.

    Of several files views are called like the file, and ``file.array`` where it has more than one.
    """
    if not file.groups:
        return {file.name if several else "all": list(columns)}
    inside = {name: [c for c in group if c in columns] for name, group in file.groups.items()}
    grouped = {name for group in inside.values() for name in group}
    singles = {name: [name] for name in columns if name not in grouped}
    if not several:
        return inside | singles
    label = {name: f"{file.name}.{name}" if len(inside) > 1 else file.name for name in inside}
    return {label[name]: group for name, group in inside.items()} | {
        f"{file.name}.{name}": group for name, group in singles.items()
    }


def _guessed_id(files: Sequence[TableFile], shared: Sequence[str]) -> str:
    """Return the one column that tells the rows of all files apart and says which belong together."""
    cells = {
        name: [[_id(v, match=True) for v in f.frame[name] if not is_empty(v)] for f in files]
        for name in shared
    }
    found = [
        name
        for name, own in cells.items()
        if all(len(set(ids)) == len(file.frame) for ids, file in zip(own, files, strict=True))
        and all(not set(ids).isdisjoint(v for other in own if other is not ids for v in other) for ids in own)
    ]
    if "id" in found:
        return "id"
    if len(found) == 1:
        return found[0]
    names = ", ".join(file.name for file in files)
    if found:
        raise DataError(
            f"Each of the columns {', '.join(map(repr, found))} could match the rows of {names}; choose one with --id."
        )
    repeated = [
        (name, file.name)
        for name, own in cells.items()
        for ids, file in zip(own, files, strict=True)
        if len(set(ids)) < len(file.frame)
    ]
    why = f" ({repeated[0][0]!r} is empty or repeated in {repeated[0][1]})" if repeated else ""
    raise DataError(
        f"No column matches the rows of {names}: all files need one with the same name and a different value in every "
        f"row, some of which they have in common{why}; choose one with --id."
    )


def _id(value: Any, *, match: bool) -> str:
    """Write an id the same way whatever type a file gave it; to ``match`` files 7, 7.0, '7 ' and '7.0' are one."""
    text = word(value).strip() if match else word(value)
    integer = INTEGER.fullmatch(text) if match else None
    return integer[1] if integer else text
