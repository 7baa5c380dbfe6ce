"""The files of a command: their names, and each as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from kernelweave.errors import DataError
from kernelweave.estimators.sample_blocks import Survey
from kernelweave.views.files import (
    PARQUET,
    TEXT,
    MixedColumns,
    Part,
    column_names_of,
    one_line,
    read_parts,
    reading_module,
    require_file,
)

# Rows of a file that are read at a time.
ROWS_AT_A_TIME = 50_000
# Told after each part about how many rows the file has, as far as is known, its columns, and the share read.
Watch = Callable[[int, int, float], None]


@dataclass(frozen=True)
class TableFile:
    """One file: a pandas frame, and groups of its columns where the file has arrays of several columns."""

    name: str
    path: Path
    frame: Any = field(repr=False)
    groups: dict[str, list[str]] = field(default_factory=dict)
    n_rows: int = 0  # of the file; the frame may have some of them only


def unwatched(n_rows: int, n_columns: int, share: float) -> None:
    """Do nothing: nobody watches a file being read."""


def pandas() -> Any:
    """Return pandas, or raise ImportError with how to install it."""
    return reading_module("pandas")


def named_path(word: str) -> tuple[str, Path]:
    """Return name and path of an argument, a path or ``name=path``; a path may have an equals sign itself."""
    name, sign, rest = word.partition("=")
    if sign and not Path(word).exists():
        return name, Path(rest)
    return Path(word).stem, Path(word)


def can_be_read_in_parts(word: str) -> bool:
    """Return whether the file of an argument can be read a few rows at a time."""
    return named_path(word)[1].suffix.lower() in (*TEXT, *PARQUET)


def column_names(word: str) -> list[str]:
    """Return the names of the columns of a file."""
    path = named_path(word)[1]
    if can_be_read_in_parts(word):
        return column_names_of(path)
    return [str(name) for name in _read_npz(path)[0].columns]


def read_table(
    word: str,
    as_written: Sequence[str] = (),
    *,
    as_text: Sequence[str] = (),
    watch: Watch = unwatched,
    most: int | None = None,
) -> TableFile:
    """Read the file of an argument: a path, or ``name=path`` to name it.

    Cells of some columns of a text file stay as they are written. Of more than ``most`` rows so many are drawn at
    random, where the file can be read in parts.
    """
    label, path = named_path(word)
    if not can_be_read_in_parts(word):
        frame, groups = _read_npz(path)
        return TableFile(label, path, frame, groups, len(frame))
    mixed = MixedColumns()
    parts = mixed.watched(watched_parts(path, as_written, as_text, watch))
    frame, n_rows = _gathered(parts, most)
    if mixed.names and path.suffix.lower() in TEXT:
        again = read_parts(path, ROWS_AT_A_TIME, as_written=as_written, as_text=[*as_text, *mixed.names])
        frame, n_rows = _gathered(again, most)
    return TableFile(label, path, frame, {}, n_rows)


def watched_parts(
    path: Path, as_written: Sequence[str], as_text: Sequence[str] = (), watch: Watch = unwatched
) -> Iterator[Part]:
    """Yield the parts of a file, while somebody is told how far it is read."""
    n_rows = 0
    for part in read_parts(path, ROWS_AT_A_TIME, as_written=as_written, as_text=as_text):
        n_rows += len(part.frame)
        watch(round(n_rows / part.share), part.frame.shape[1], part.share)
        yield part


def _gathered(parts: Iterable[Part], most: int | None) -> tuple[Any, int]:
    """Return the rows of all parts, or so many drawn at random in their order, and the number of all."""
    if most is None:
        frames = [part.frame for part in parts]
        frame = frames[0] if len(frames) == 1 else pandas().concat(frames, ignore_index=True)
        return frame, len(frame)
    survey = Survey(most, np.random.default_rng(0))
    for frame, _ in parts:
        survey.look(frame, np.arange(len(frame)), classes=False)
    return survey.sample()[0].reset_index(drop=True), survey.n_samples


def _read_npz(path: Path) -> tuple[Any, dict[str, list[str]]]:
    require_file(path, (*TEXT, *PARQUET, ".npz"))
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, BadZipFile, AttributeError, OSError) as error:
        raise DataError(
            f"{path} is not an NPZ file of plain arrays ({one_line(error)}); write one with numpy.savez."
        ) from None
    if not arrays:
        raise DataError(f"{path} holds no array.")
    lengths = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
    first, n = next(iter(lengths.items()))
    columns: dict[str, Any] = {}
    groups: dict[str, list[str]] = {}
    for name, array in arrays.items():
        if array.ndim not in (1, 2):
            raise DataError(
                f"Array {name!r} of {path} has {array.ndim} dimensions; a column has 1 and a view has 2."
            )
        if len(array) != n:
            raise DataError(
                f"Arrays {first!r} and {name!r} of {path} have {n} and {len(array)} rows; all need as many."
            )
        if array.ndim == 1:
            columns[name] = array
        else:
            groups[name] = [f"{name}[{k}]" for k in range(array.shape[1])]
            columns |= dict(zip(groups[name], array.T, strict=True))
    if not n:
        raise DataError(f"{path} has no rows.")
    return pandas().DataFrame(columns), groups
