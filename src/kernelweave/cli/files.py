"""Reads tables from CSV, Parquet and NPZ files; what cannot be read is refused in one sentence."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from kernelweave.errors import DataError

SEPARATORS = ",;\t|"
LEADING_ZERO = re.compile(r"\s*[+-]?0\d")


@dataclass(frozen=True)
class TableFile:
    """One file: a pandas frame, and groups of its columns where the file has arrays of several columns."""

    name: str
    path: Path
    frame: Any = field(repr=False)
    groups: dict[str, list[str]] = field(default_factory=dict)


def named_path(word: str) -> tuple[str, Path]:
    """Return name and path of an argument, a path or ``name=path``; a path may have an equals sign itself."""
    name, sign, rest = word.partition("=")
    if sign and not Path(word).exists():
        return name, Path(rest)
    return Path(word).stem, Path(word)


def read_table(word: str, key: str | None = None, target: str = "") -> TableFile:
    """Read the file of an argument: a path, or ``name=path`` to name it.

    Column ``key`` is left as it is written, and so is the target unless it is made of numbers.
    """
    label, path = named_path(word)
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name the files in it.")
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path} is none of the files that can be read: {', '.join(READERS)}.")
    try:
        frame, groups = reader(path, key, (target, target.removeprefix(f"{label}:")))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not len(frame):
        raise DataError(f"{path} has no rows.")
    return TableFile(label, path, frame, groups)


def _read_csv(path: Path, key: str | None, targets: Sequence[str]) -> tuple[Any, dict[str, list[str]]]:
    content = path.read_bytes()
    if not content.strip():
        raise DataError(f"{path} is empty.")
    if b"\0" in content:
        raise DataError(f"{path} is not a text file in UTF-8; save it as CSV in UTF-8.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not in UTF-8 (byte {content[error.start]:#04x} at position {error.start}); "
            "save it as UTF-8."
        ) from None
    separator = _separator(text)
    _require_even_rows(text, separator, path)
    pd = pandas()
    # Every digit counts; newer versions of pandas do this by default, and warn about the option.
    options: dict[str, Any] = {"sep": separator, "float_precision": "round_trip"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = pd.read_csv(io.StringIO(text), **options)
            kept = [name for name in dict.fromkeys((key, *targets)) if name in frame.columns]
            if kept:  # once more as text: pandas reads NA, None and 01 as something else
                options |= {"usecols": kept, "dtype": str, "keep_default_na": False, "na_values": [""]}
                written = pd.read_csv(io.StringIO(text), **options)
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"{path} is not a table in CSV: {_one_line(error)}.") from None
    for name in kept:
        if name == key or not _is_quantity(frame[name], written[name]):
            frame[name] = written[name]
    return frame, {}


def _is_quantity(values: Any, written: Any) -> bool:
    """Return whether a column read as numbers holds quantities and not codes such as 007."""
    types = pandas().api.types
    if not types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return False
    return bool(values.notna().any()) and not any(LEADING_ZERO.match(cell) for cell in written.dropna())


def _separator(text: str) -> str:
    """Return the separator most frequent in the header."""
    header = text.lstrip("\r\n").partition("\n")[0]
    return max(SEPARATORS, key=header.count)


def _require_even_rows(text: str, separator: str, path: Path) -> None:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    header: list[str] = []
    try:
        for row in reader:
            if not row:
                continue
            if not header:
                header = row
                _require_names(header, path)
            elif len(row) != len(header):
                raise DataError(
                    f"Line {reader.line_num} of {path} has {len(row)} cells, the header has {len(header)}; "
                    "every line needs as many."
                )
    except csv.Error as error:
        raise DataError(f"Line {reader.line_num} of {path} is not CSV: {error}.") from None


def _require_names(header: list[str], path: Path) -> None:
    if any(not name.strip() for name in header):
        place = next(k for k, name in enumerate(header, 1) if not name.strip())
        raise DataError(f"Column {place} of {path} has no name in the header; give it one.")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(f"{path} has several columns named {twice[0]!r}; names have to differ.")


def _read_parquet(path: Path, *_: Any) -> tuple[Any, dict[str, list[str]]]:
    pd = pandas()
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise DataError("Parquet files need pyarrow: pip install 'kernelweave[io]'.") from None
    except (ValueError, OSError) as error:
        raise DataError(f"{path} is not a Parquet file: {_one_line(error)}.") from None
    frame.columns = [str(name) for name in frame.columns]
    _require_names(list(frame.columns), path)
    return frame.reset_index(drop=True), {}


def _read_npz(path: Path, *_: Any) -> tuple[Any, dict[str, list[str]]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, BadZipFile, AttributeError) as error:
        raise DataError(
            f"{path} is not an NPZ file of plain arrays ({_one_line(error)}); write one with numpy.savez."
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
    return pandas().DataFrame(columns), groups


Reader = Callable[[Path, str | None, Sequence[str]], tuple[Any, dict[str, list[str]]]]
READERS: dict[str, Reader] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _read_csv),
    **dict.fromkeys((".parquet", ".pq"), _read_parquet),
    ".npz": _read_npz,
}


def pandas() -> Any:
    """Return pandas, or raise DataError with how to install it."""
    try:
        import pandas as pd
    except ImportError:
        raise DataError("Reading tables needs pandas: pip install 'kernelweave[io]'.") from None
    return pd


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".")
