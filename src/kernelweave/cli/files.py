"""Reads tables from CSV, Parquet and NPZ files; what cannot be read is refused in one sentence."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np

from kernelweave.errors import DataError

SEPARATORS = ",;\t|"
# Rows of a text file that are turned into numbers at a time.
ROWS_AT_A_TIME = 50_000
# And no more than so many bytes of text, or of numbers.
BYTES_AT_A_TIME = 32 << 20
LEADING_ZERO = re.compile(r"\s*[+-]?0\d")


@dataclass(frozen=True)
class TableFile:
    """One file: a pandas frame, and groups of its columns where the file has arrays of several columns."""

    name: str
    path: Path
    frame: Any = field(repr=False)
    groups: dict[str, list[str]] = field(default_factory=dict)
    n_rows: int = 0  # of the file; the frame may have some of them only


# Told after each batch about how many rows the file has, as far as is known, its columns, and the share read.
Watch = Callable[[int, int, float], None]


def unwatched(n_rows: int, n_columns: int, share: float) -> None:
    """Do nothing: nobody watches a file being read."""


def named_path(word: str) -> tuple[str, Path]:
    """Return name and path of an argument, a path or ``name=path``; a path may have an equals sign itself."""
    name, sign, rest = word.partition("=")
    if sign and not Path(word).exists():
        return name, Path(rest)
    return Path(word).stem, Path(word)


def read_table(
    word: str, key: str | None = None, target: str = "", *, watch: Watch = unwatched, most: int | None = None
) -> TableFile:
    """Read the file of an argument: a path, or ``name=path`` to name it.

    Column ``key`` is left as it is written, and so is the target unless it is made of numbers. Of more than
    ``most`` rows so many are drawn at random, where the file can be read in batches.
    """
    label, path = named_path(word)
    groups: dict[str, list[str]] = {}
    if path.suffix.lower() == ".npz":
        _require_file(path)
        with _unreadable(path):
            frame, groups = _read_npz(path)
        if not len(frame):
            raise DataError(f"{path} has no rows.")
    else:
        batches = read_batches(path, columns_as_written(label, key, target), ROWS_AT_A_TIME, watch)
        batch, n_rows = _one_batch(batches) if most is None else _drawn(batches, most)
        frame = batch.frame
        for name, cells in batch.written.items():
            if name == key or not is_quantity(frame[name], cells):
                frame[name] = cells
        return TableFile(label, path, frame, groups, n_rows)
    return TableFile(label, path, frame, groups, len(frame))


def columns_as_written(name: str, key: str | None, target: str) -> list[str]:
    """Return the columns of a file that are also wanted as they are written."""
    return [column for column in (key, target, target.removeprefix(f"{name}:")) if column]


@dataclass(frozen=True)
class FrameBatch:
    """Some rows of a file, columns as they were written, and the share of the file that is read."""

    frame: Any = field(repr=False)
    written: Mapping[str, Any] = field(repr=False)
    share: float


def can_be_read_in_batches(word: str) -> bool:
    """Return whether the file of an argument can be read a few rows at a time."""
    return named_path(word)[1].suffix.lower() in BATCHED


def read_batches(
    path: Path, kept: Sequence[str], size: int, watch: Watch = unwatched
) -> Iterator[FrameBatch]:
    """Yield rows of CSV or Parquet, about ``size`` at a time; columns ``kept`` also as they are written."""
    _require_file(path)
    n_rows = 0
    with _unreadable(path):
        for batch in BATCHED[path.suffix.lower()](path, kept, size):
            n_rows += len(batch.frame)
            if len(batch.frame):
                watch(round(n_rows / batch.share), batch.frame.shape[1], batch.share)
                yield batch
    if not n_rows:
        raise DataError(f"{path} has no rows.")


def stacked(parts: Sequence[Any]) -> Any:
    """Return frames or columns one below the other, their rows numbered anew."""
    if len(parts) == 1:
        return parts[0].reset_index(drop=True)
    return pandas().concat(parts, ignore_index=True)


def _one_batch(batches: Iterable[FrameBatch]) -> tuple[FrameBatch, int]:
    """Return all batches as one, and the number of their rows."""
    parts = list(batches)
    written = {name: stacked([part.written[name] for part in parts]) for name in parts[0].written}
    frame = stacked([part.frame for part in parts])
    return FrameBatch(frame, written, 1.0), len(frame)


def _drawn(batches: Iterable[FrameBatch], size: int) -> tuple[FrameBatch, int]:
    """Return rows drawn at random in their order, and the number of all; no more than these are held."""
    rng, n_rows = np.random.default_rng(0), 0
    held: FrameBatch | None = None
    marks = np.empty(0)  # a random number for every row that is held: the smallest stay
    for batch in batches:
        marks = np.append(marks, rng.random(len(batch.frame)))
        n_rows += len(batch.frame)
        held = batch if held is None else _one_batch([held, batch])[0]
        if len(marks) > size:
            rows = np.sort(np.argpartition(marks, size - 1)[:size])
            marks = marks[rows]
            written = {name: cells.iloc[rows] for name, cells in held.written.items()}
            held = FrameBatch(held.frame.iloc[rows], written, batch.share)
    assert held is not None  # files without rows are refused
    return _one_batch([held])[0], n_rows


def _require_file(path: Path) -> None:
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name the files in it.")
    if path.suffix.lower() not in (*BATCHED, ".npz"):
        raise DataError(f"{path} is none of the files that can be read: {', '.join((*BATCHED, '.npz'))}.")


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _csv_batches(path: Path, kept: Sequence[str], size: int) -> Iterator[FrameBatch]:
    header: list[str] = []
    separator, n_lines, n_bytes, n_all = ",", 0, 0, path.stat().st_size
    with path.open("rb") as file:
        while content := _whole_rows(file, size):
            stream = io.StringIO(_decoded(content, path, n_bytes), newline="")
            n_bytes += len(content)
            if not header:
                separator = _separator(stream.getvalue())
                header, n_lines = _read_header(stream, separator, path, n_lines)
            body = stream.read()
            n_before, n_lines = n_lines, _require_even_rows(body, separator, header, path, n_lines)
            if n_lines > n_before:
                frame, written = _parsed(body, separator, header, path, kept)
                yield FrameBatch(frame, written, n_bytes / n_all)
    if not header:
        raise DataError(f"{path} is empty.")


def _whole_rows(file: BinaryIO, size: int) -> bytes:
    """Return the next lines, and more of them as long as a quoted cell is open."""
    content = b"".join(_lines(file, size))
    while content.count(b'"') % 2 and (more := b"".join(_lines(file, size))):
        content += more
    return content


def _lines(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield so many lines at most, and fewer where they are long."""
    n_bytes = 0
    for line in islice(file, size):
        yield line
        if (n_bytes := n_bytes + len(line)) >= BYTES_AT_A_TIME:
            return


def _decoded(content: bytes, path: Path, position: int) -> str:
    if b"\0" in content:
        raise DataError(f"{path} is not a text file in UTF-8; save it as CSV in UTF-8.")
    try:
        return content.decode("utf-8" if position else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not in UTF-8 (byte {content[error.start]:#04x} at position "
            f"{position + error.start}); save it as UTF-8."
        ) from None


def _read_header(stream: io.StringIO, separator: str, path: Path, n_lines: int) -> tuple[list[str], int]:
    """Return the first row that is not blank, which is then read, and the lines up to its end."""
    reader = csv.reader(stream, delimiter=separator)
    try:
        header = next((row for row in reader if "".join(row).strip()), [])
    except csv.Error as error:
        raise DataError(f"Line {n_lines + reader.line_num} of {path} is not CSV: {error}.") from None
    if header:
        _require_names(header, path)
    return header, n_lines + reader.line_num


def _parsed(
    text: str, separator: str, header: list[str], path: Path, kept: Sequence[str]
) -> tuple[Any, dict[str, Any]]:
    """Return rows of text as a frame, and columns of it as they are written."""
    pd = pandas()
    # Every digit counts; newer versions of pandas do this by default, and warn about the option.
    options: dict[str, Any] = {
        "sep": separator,
        "float_precision": "round_trip",
        "header": None,
        "names": header,
    }
    found = [name for name in dict.fromkeys(kept) if name in header]
    written: dict[str, Any] = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = pd.read_csv(io.StringIO(text), **options)
            if found:  # once more as text: pandas reads NA, None and 01 as something else
                options |= {"usecols": found, "dtype": str, "keep_default_na": False, "na_values": [""]}
                cells = pd.read_csv(io.StringIO(text), **options)
                written = {name: cells[name] for name in found}
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(f"{path} is not a table in CSV: {_one_line(error)}.") from None
    return frame, written


def is_quantity(values: Any, written: Any) -> bool:
    """Return whether a column read as numbers holds quantities and not codes such as 007."""
    types = pandas().api.types
    if not types.is_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return False
    return bool(values.notna().any()) and not any(LEADING_ZERO.match(cell) for cell in written.dropna())


def _separator(text: str) -> str:
    """Return the separator most frequent in the header."""
    header = text.lstrip("\r\n").partition("\n")[0]
    return max(SEPARATORS, key=header.count)


def _require_even_rows(text: str, separator: str, header: list[str], path: Path, n_before: int) -> int:
    """Check that every row has as many cells as the header; return the lines up to the last row."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    n_lines = n_before
    try:
        for row in reader:
            if row and len(row) != len(header):
                raise DataError(
                    f"Line {n_before + reader.line_num} of {path} has {len(row)} cells, the header has "
                    f"{len(header)}; every line needs as many."
                )
            if row:
                n_lines = n_before + reader.line_num
    except csv.Error as error:
        raise DataError(f"Line {n_before + reader.line_num} of {path} is not CSV: {error}.") from None
    return n_lines


def _require_names(header: list[str], path: Path) -> None:
    if any(not name.strip() for name in header):
        place = next(k for k, name in enumerate(header, 1) if not name.strip())
        raise DataError(f"Column {place} of {path} has no name in the header; give it one.")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(f"{path} has several columns named {twice[0]!r}; names have to differ.")


def _parquet_batches(path: Path, kept: Sequence[str], size: int) -> Iterator[FrameBatch]:  # noqa: ARG001
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DataError("Parquet files need pyarrow: pip install 'kernelweave[io]'.") from None
    try:
        with parquet.ParquetFile(path) as file:
            n_rows, n_all = 0, max(file.metadata.num_rows, 1)
            size = min(size, max(1, BYTES_AT_A_TIME // (8 * max(file.metadata.num_columns, 1))))
            for batch in file.iter_batches(batch_size=size):
                frame = batch.to_pandas().reset_index(drop=True)
                frame.columns = [str(name) for name in frame.columns]
                _require_names(list(frame.columns), path)
                n_rows += len(frame)
                yield FrameBatch(frame, {}, n_rows / n_all)
    except (ValueError, OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} is not a Parquet file: {_one_line(error)}.") from None


def _read_npz(path: Path) -> tuple[Any, dict[str, list[str]]]:
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


BATCHED: dict[str, Callable[[Path, Sequence[str], int], Iterator[FrameBatch]]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), _csv_batches),
    **dict.fromkeys((".parquet", ".pq"), _parquet_batches),
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
