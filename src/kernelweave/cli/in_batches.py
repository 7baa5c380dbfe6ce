"""One file, some rows at a time: for tables of any length, which are never held as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.cli import files
from kernelweave.cli.columns import is_number, numeric_table
from kernelweave.cli.files import TableFile, Watch, is_quantity, named_path, pandas, unwatched
from kernelweave.cli.join_tables import JoinedTable, single_table
from kernelweave.errors import DataError

# Of a target with more different numbers than this in one batch, the numbers alone are kept.
FEW = 1_000


@dataclass(frozen=True)
class TableBatch:
    """Some rows of a file, and where in it they are."""

    table: JoinedTable
    written: Any = field(repr=False)  # the target as it is written, where it is known
    path: Path
    first: int
    is_all: bool

    def numbers(self, columns: list[str]) -> Any:
        """Return these columns as floats; what is none is named by its place in the file."""
        last = self.first + len(self.table.frame) - 1
        where = "" if self.is_all else f" (rows {self.first + 1} to {last + 1} of {self.path})"
        return numeric_table(self.table.frame, columns, where)


def read_in_batches(
    word: str,
    id_column: str | None,
    target: str = "",
    *,
    id_optional: bool = False,
    watch: Watch = unwatched,
) -> Iterator[TableBatch]:
    """Yield the rows of a file that can be read in batches; ids have to differ among all of them."""
    name, path = named_path(word)
    kept = files.columns_as_written(name, id_column, target)
    ids, first = DifferentValues(), 0
    for batch in files.read_batches(path, kept, files.ROWS_AT_A_TIME, watch):
        frame = batch.frame
        if id_column is not None and id_column in batch.written:
            frame[id_column] = batch.written[id_column]
        joined = single_table(TableFile(name, path, frame), id_column, id_optional)
        if joined.ids is not None:
            ids.look(joined.ids)
        written = next((cells for key, cells in batch.written.items() if key != id_column), None)
        yield TableBatch(joined, written, path, first, first == 0 and batch.share == 1.0)
        first += len(frame)
    if repeat := ids.repeat():
        raise DataError(
            f"Rows {repeat[0] + 1} and {repeat[1] + 1} of {path} have the same id; ids have to differ."
        )


class DifferentValues:
    """Tells whether values that come in batches differ; of each a number of 64 bits is kept."""

    def __init__(self) -> None:
        self._marks: list[AnyArray] = []

    def look(self, values: Any) -> None:
        """Take more values into account."""
        self._marks.append(pandas().util.hash_array(np.asarray(values, dtype=object)))

    def repeat(self) -> tuple[int, int] | None:
        """Return the places of two values that are the same, or None."""
        marks = np.concatenate([np.empty(0, dtype=np.uint64), *self._marks])
        order = np.argsort(marks, kind="stable")
        same = np.flatnonzero(marks[order[1:]] == marks[order[:-1]])
        return (int(order[same[0]]), int(order[same[0] + 1])) if same.size else None


class TargetColumn:
    """The target of all batches: numbers, or a code for each of its different texts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: list[Any] = []
        self._texts: list[Any] = []  # None where a batch has too many different ones

    def look(self, values: Any, written: Any) -> None:
        """Take a batch into account; ``written`` are its cells as text, if they are known."""
        texts = (values if written is None else written).astype("category").array
        numeric = is_number(values)
        few = written is None or not numeric or len(texts.categories) <= FEW
        quantity = written is None or is_quantity(values, pandas().Series(texts.categories))
        self._numbers.append(values if numeric and (quantity or values.isna().all()) else None)
        self._texts.append(texts if few else None)

    def values(self) -> Any:
        """Return the column as a whole."""
        pd = pandas()
        if all(part is not None for part in self._numbers):
            return files.stacked(self._numbers)
        if any(part is None for part in self._texts):
            raise DataError(
                f"The target {self._name!r} has numbers in some rows and text or codes such as 007 in others; "
                "write all in one way."
            )
        return pd.Series(pd.api.types.union_categoricals(self._texts))
