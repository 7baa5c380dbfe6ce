"""Tables in CSV and Parquet files, read some rows at a time; what cannot be read is refused in one sentence."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from kernelweave.errors import DataError

TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
SEPARATORS = ",;\t|"
# What stands for an empty cell beside blanks, as pandas has it.
EMPTY_WORDS = (
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
# The header and how cells are set apart are found in so many lines.
LINES_OF_HEAD = 50
# No more than so many bytes of text, or of numbers, are turned into a frame at a time.
BYTES_AT_A_TIME = 32 << 20


class Part(NamedTuple):
    """Some rows of a file as a pandas frame, and the share of the file that is read by then."""

    frame: Any
    share: float


class MixedColumns:
    """Finds the columns that read as text in some parts of a file and as something else in others.

    There 01 would be the number 1 in one part and the text 01 in another: such columns are to be read as text.
    """

    def __init__(self) -> None:
        self._text: dict[str, None] = {}
        self._others: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The columns found so far."""
        return [name for name in self._text if name in self._others]

    def look(self, frame: Any) -> None:
        """Take a part into account."""
        is_text = reading_module("pandas").api.types.is_string_dtype
        for name, dtype in frame.dtypes.items():
            if is_text(frame[name] if dtype.kind == "O" else dtype):
                self._text[name] = None
            else:
                self._others.add(name)

    def watched(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Yield parts, and take each into account."""
        for part in parts:
            self.look(part.frame)
            yield part


class Head(NamedTuple):
    """The header of a text file: names, what sets cells apart, and the lines it takes."""

    names: list[str]
    separator: str
    n_lines: int


def read_parts(
    path: Path, size: int, *, as_written: Sequence[str] = (), as_text: Sequence[str] = ()
) -> Iterator[Part]:
    """Yield the rows of a CSV or Parquet file, at most ``size`` at a time.

    Of a text file cells of the columns ``as_written`` stay what they are, and only blank ones are empty. Those of
    ``as_text`` stay text even where it reads as numbers; NA, nan, None and the like are empty there as elsewhere.
    """
    require_file(path)
    n_rows = 0
    try:
        is_text = path.suffix.lower() in TEXT
        parts = _csv_parts(path, size, as_written, as_text) if is_text else _parquet_parts(path, size)
        for part in parts:
            n_rows += len(part.frame)
            if len(part.frame):
                yield part
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not n_rows:
        raise DataError(f"{path} has no rows.")


def column_names_of(path: Path) -> list[str]:
    """Return the names of the columns of a CSV or Parquet file."""
    require_file(path)
    return _head(path).names if path.suffix.lower() in TEXT else _parquet_names(path)


def require_file(path: Path, suffixes: Sequence[str] = (*TEXT, *PARQUET)) -> None:
    """Raise DataError unless this is a file of a kind that can be read."""
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name the files in it.")
    if path.suffix.lower() not in suffixes:
        raise DataError(f"{path} is none of the files that can be read: {', '.join(suffixes)}.")


def reading_module(name: str) -> Any:
    """Return a module that reads files, or raise ImportError with how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"Reading this file needs {package}: pip install 'kernelweave[io]'.") from error


# -- text


def _head(path: Path) -> Head:
    with path.open("rb") as file:
        lines = list(islice(file, LINES_OF_HEAD))
        is_all = not file.readline()
    content = b"".join(lines)
    if b"\0" in content:
        raise DataError(f"{path} is not a text file in UTF-8; save it as CSV in UTF-8.")
    if b"\r" in content and b"\n" not in content:
        raise DataError(
            f"The lines of {path} end in CR alone, as on old Macintoshes; save it with line ends LF."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, content[error.start], error.start) from None
    separator = _separator(text, path, is_all=is_all)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        names = next((row for row in reader if "".join(row).strip()), [])
    except csv.Error as error:
        raise DataError(f"Line {reader.line_num} of {path} is not CSV: {error}.") from None
    if not names:
        raise DataError(f"{path} is empty.")
    _require_names(names, path)
    return Head(names, separator, reader.line_num)


def _separator(text: str, path: Path, *, is_all: bool) -> str:
    """Return what sets cells apart: the rows have as many as the header then, and as many as can be.

    Where no sign does so for all rows, the header alone decides.
    """
    found = []
    for sign in SEPARATORS:
        try:
            widths = [
                len(row)
                for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign)
                if "".join(row).strip()
            ]
        except csv.Error:
            continue
        rows = widths if is_all else widths[:-1]  # the last may be cut off
        if rows:
            found.append((len(set(rows)) == 1 < rows[0], rows[0], sign))
    best = max(found, key=lambda one: one[:2], default=(False, 1, SEPARATORS[0]))
    rivals = [sign for even, width, sign in found if even and best[0] and width == best[1]]
    if len(rivals) > 1:
        raise DataError(
            f"It is not clear which of {' and '.join(map(repr, rivals))} sets the columns of {path} apart: names in "
            "the header hold the other; write such names in double quotes."
        )
    return best[2]


def _csv_parts(path: Path, size: int, as_written: Sequence[str], as_text: Sequence[str]) -> Iterator[Part]:
    head, n_all = _head(path), max(path.stat().st_size, 1)
    with path.open("rb") as file:
        n_lines, n_bytes = head.n_lines, sum(len(line) for line in islice(file, head.n_lines))
        while content := _next_rows(file, size):
            frame = _parsed(content, head, path, as_written, as_text, n_lines)
            n_lines += content.count(b"\n")
            n_bytes += len(content)
            yield Part(frame, n_bytes / n_all)


def _next_rows(file: BinaryIO, size: int) -> bytes:
    """Return so many lines, fewer where they are long, and more while a quoted cell is open."""
    lines: list[bytes] = []
    n_bytes, is_open = 0, False
    for line in file:
        lines.append(line)
        n_bytes += len(line)
        is_open ^= line.count(b'"') % 2 == 1
        if not is_open and (len(lines) >= size or n_bytes >= BYTES_AT_A_TIME):
            break
    return b"".join(lines)


def _parsed(
    content: bytes,
    head: Head,
    path: Path,
    as_written: Sequence[str],
    as_text: Sequence[str],
    n_lines: int,
) -> Any:
    """Return rows of text, which begin after so many lines of the file, as a frame."""
    pd = reading_module("pandas")
    options: dict[str, Any] = {
        "sep": head.separator,
        "header": None,
        "names": head.names,
        "low_memory": False,
    }
    written = [name for name in head.names if name in as_written]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # newer versions of pandas read every digit by default, and say so
            text = {name: str for name in as_text if name in head.names}
            frame = pd.read_csv(io.BytesIO(content), dtype=text, float_precision="round_trip", **options)
            if written:  # read once more, where NA and 01 are what they are
                options |= {"usecols": written, "dtype": str, "keep_default_na": False, "na_values": [""]}
                frame[written] = pd.read_csv(io.BytesIO(content), **options)[written]
    except pd.errors.EmptyDataError:  # blank lines only
        return pd.DataFrame(columns=head.names)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error.object[error.start], None) from None
    except (ValueError, pd.errors.ParserError) as error:
        _require_even_rows(content, head, path, n_lines)
        raise DataError(f"{path} is not a table in CSV: {one_line(error)}.") from None
    if _may_be_uneven(content, frame, head):
        _require_even_rows(content, head, path, n_lines)
    for name in as_written:
        if name in frame.columns:
            frame[name] = frame[name].where(frame[name].str.strip() != "")
    return frame


def _may_be_uneven(content: bytes, frame: Any, head: Head) -> bool:
    """Tell whether a row may have more or fewer cells than the header.

    Cells beyond the header are lost in the frame, and show in the number of separators; of a row with fewer the
    last are empty.
    """
    separators, n_cells = content.count(head.separator.encode()), frame.shape[0] * (frame.shape[1] - 1)
    last = frame.iloc[:, -1]
    return b'"' in content or separators != n_cells or bool((last.isna() | (last.astype(str) == "")).any())


def _require_even_rows(content: bytes, head: Head, path: Path, n_lines: int) -> None:
    """Raise DataError, with the line, where a row has more or fewer cells than the header."""
    text = io.StringIO(content.decode("utf-8", errors="replace"), newline="")
    reader = csv.reader(text, delimiter=head.separator)
    try:
        for row in reader:
            if row and len(row) != len(head.names):
                raise DataError(
                    f"Line {n_lines + reader.line_num} of {path} has {len(row)} cells, the header has "
                    f"{len(head.names)} (set apart by {head.separator!r}); every line needs as many."
                )
    except csv.Error as error:
        raise DataError(f"Line {n_lines + reader.line_num} of {path} is not CSV: {error}.") from None


def _require_names(names: Sequence[str], path: Path) -> None:
    if any(not name.strip() for name in names):
        place = next(k for k, name in enumerate(names, 1) if not name.strip())
        raise DataError(f"Column {place} of {path} has no name in the header; give it one.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"{path} has several columns named {twice!r}; names have to differ.")


def _not_utf8(path: Path, byte: int, position: int | None) -> DataError:
    where = "" if position is None else f" at position {position}"
    return DataError(f"{path} is not in UTF-8 (byte {byte:#04x}{where}); save it as UTF-8.")


# -- Parquet


def _parquet_parts(path: Path, size: int) -> Iterator[Part]:
    parquet, pyarrow = reading_module("pyarrow.parquet"), reading_module("pyarrow")
    try:
        with parquet.ParquetFile(path) as file:
            n_rows, n_all = 0, max(file.metadata.num_rows, 1)
            few = max(1, BYTES_AT_A_TIME // (8 * max(file.metadata.num_columns, 1)))
            for batch in file.iter_batches(batch_size=min(size, few)):
                frame = batch.to_pandas().reset_index(drop=True)
                frame.columns = [str(name) for name in frame.columns]
                _require_names(list(frame.columns), path)
                n_rows += len(frame)
                yield Part(frame, n_rows / n_all)
    except (ValueError, OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} is not a Parquet file: {one_line(error)}.") from None


def _parquet_names(path: Path) -> list[str]:
    parquet = reading_module("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            return list(file.schema_arrow.names)
    except (ValueError, OSError) as error:  # pyarrow's own errors are of these kinds
        raise DataError(f"{path} is not a Parquet file: {one_line(error)}.") from None


def one_line(error: BaseException) -> str:
    """Return what an error says on one line, without a full stop."""
    return " ".join(str(error).split()).rstrip(".")
