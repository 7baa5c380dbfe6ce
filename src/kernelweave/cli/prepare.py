"""What a fit or a comparison learns from: the table of a request, held as a whole or on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.preprocessing import StandardScaler

from kernelweave._typing import AnyArray
from kernelweave.cli.columns import (
    ID,
    TableColumns,
    assign_columns,
    numeric_table,
    read_target,
    shared_id_note,
    shared_id_notes,
)
from kernelweave.cli.files import Watch, can_be_read_in_batches, pandas, unwatched
from kernelweave.cli.in_batches import DifferentValues, TargetColumn, read_in_batches
from kernelweave.cli.join_tables import JoinedTable, read_tables
from kernelweave.cli.methods import make_bank
from kernelweave.cli.number_file import NumberFile, require_disk
from kernelweave.errors import DataError
from kernelweave.gram.memory import budget, human, streamed_bytes
from kernelweave.views.batches import batches

# Methods that need no matrix of all rows: any number of rows can be learnt from.
ANY_ROWS = ("obscure",)
# With --probability a table is held as a whole, also with landmarks: up to so many rows.
HELD_ROWS = 200_000


@dataclass(frozen=True)
class Request:
    """What a user asks for: the files, the target and the views, and the method to fit."""

    data: Sequence[str]
    target: str
    views: Sequence[str] = ()
    id_column: str | None = None
    task: str = "auto"
    method: str = "simple_mkl"
    bank: str = "gaussians"
    cost: float | None = None
    verbose: int = 0
    probability: bool = False
    landmarks: int | None = None
    most_rows: int | None = None  # more are left out at random


@dataclass(frozen=True)
class Prepared:
    """Table and target of a request, its kernels, the ids of the rows, and a summary to print and to save."""

    X: Any
    y: Any
    bank: Any
    ids: Sequence[str] | None
    summary: dict[str, Any]

    def fit(self, model: Any) -> None:
        """Fit a pipeline to the table."""
        model.fit(self.X, self.y)

    def score(self, model: Any) -> float:
        """Return the accuracy, or R², on the rows."""
        return float(model.score(self.X, self.y))


@dataclass(frozen=True)
class PreparedOnDisk:
    """The same where the table is on disk: it is read once for every pass of the fit.

    Columns have been standardised by ``scaler``; classes are codes, places in ``labels``.
    """

    rows: NumberFile = field(repr=False)
    y: AnyArray = field(repr=False)
    labels: AnyArray | None
    scaler: StandardScaler
    bank: Any
    summary: dict[str, Any]

    def fit(self, model: Any) -> None:
        """Fit a pipeline whose first step is a scaler."""
        model.steps[0] = (model.steps[0][0], self.scaler)
        model[-1].fit(batches(self._read))

    def score(self, model: Any) -> float:
        """Return the accuracy, or R², on the rows."""
        targets, found = [], []
        for X, y in self._read():
            found.append(model[-1].predict(X))
            targets.append(y)
        measure = r2_score if self.labels is None else accuracy_score
        return float(measure(np.concatenate(targets), np.concatenate(found)))

    def _read(self) -> Iterator[tuple[Any, Any]]:
        first, names = 0, self.scaler.feature_names_in_
        for block in self.rows:
            y = self.y[first : first + len(block)]
            first += len(block)
            X = self.scaler.transform(pandas().DataFrame(block, columns=names))
            yield X, y if self.labels is None else self.labels[y]


def prepare(request: Request, watch: Watch = unwatched, *, held: bool = True) -> Prepared | PreparedOnDisk:
    """Read the files and decide what every column is; a table that need not be ``held`` is written to disk."""
    _require_task(request.task)
    in_batches = len(request.data) == 1 and can_be_read_in_batches(request.data[0])
    if in_batches and request.landmarks is not None and not held:
        return _prepare_on_disk(request, watch)
    return prepare_held(request, watch)


def prepare_held(request: Request, watch: Watch = unwatched) -> Prepared:
    """Read the files and decide what every column is."""
    _require_task(request.task)
    joined = read_tables(
        request.data,
        request.id_column,
        request.target,
        watch=_refusing_too_many(request, watch),
        most=request.most_rows,
    )
    columns = assign_columns(joined, request.target, request.views)
    y, task = read_target(joined.frame[columns.target], request.target, request.task)
    X = numeric_table(joined.frame, columns.used)
    notes = [*joined.notes, *shared_id_notes(joined.frame, columns)]
    summary = _summary(request, joined, columns, y, task, notes)
    return Prepared(X, y, make_bank(request.bank, columns.positions), joined.ids, summary)


def _prepare_on_disk(request: Request, watch: Watch) -> PreparedOnDisk:
    target, scaler = TargetColumn(request.target), StandardScaler()
    joined: JoinedTable | None = None

    def watched(n_rows: int, n_columns: int, share: float) -> None:
        require_disk(n_rows, n_columns)
        watch(n_rows, n_columns, share)

    for batch in read_in_batches(request.data[0], request.id_column, request.target, watch=watched):
        if joined is None:
            joined = batch.table
            columns = assign_columns(joined, request.target, request.views)
            rows = NumberFile(len(columns.used))
            ids = {name: DifferentValues() for name, why in columns.left_out.items() if why == ID}
        X = batch.numbers(columns.used)
        target.look(batch.table.frame[columns.target], batch.written)
        for name, seen in ids.items():
            seen.look(batch.table.frame[name])
        scaler.partial_fit(X)
        rows.append(X.to_numpy())
    assert joined is not None  # a file without rows is refused
    y, task = read_target(target.values(), request.target, request.task)
    notes = [shared_id_note(name) for name, seen in ids.items() if seen.repeat()]
    summary = _summary(request, joined, columns, y, task, notes)
    labels = None
    if task == "classification":
        labels, y = np.unique(y, return_inverse=True)
        y = y.astype(np.int32)
    return PreparedOnDisk(rows, y, labels, scaler, make_bank(request.bank, columns.positions), summary)


def _summary(
    request: Request, joined: JoinedTable, columns: TableColumns, y: Any, task: str, notes: list[str]
) -> dict[str, Any]:
    if len(y) < 2:
        raise DataError(f"A model needs at least 2 rows, received {len(y)}; give a table with more.")
    summary: dict[str, Any] = {
        "rows": len(y),
        "files": list(joined.names),
        "target": columns.target,
        "id": request.id_column or ("id" if len(joined.names) > 1 else None),
        "task": task,
        "views": columns.views,
        "left_out": columns.left_out,
        "notes": notes,
    }
    if task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        summary["classes"] = {str(k): int(n) for k, n in zip(labels, counts, strict=True)}
    return summary


def _require_task(task: str) -> None:
    if task not in ("auto", "classification", "regression"):
        raise DataError(f"--task is auto, classification or regression; got {task!r}.")


def _refusing_too_many(request: Request, watch: Watch) -> Watch:
    """Return what refuses, after the first rows, a table with too many for what is asked for."""
    if request.most_rows is not None:
        return watch

    def watched(n_rows: int, n_columns: int, share: float) -> None:
        watch(n_rows, n_columns, share)
        about = "" if share == 1.0 else "About "
        if request.landmarks is not None:
            if n_rows > HELD_ROWS:
                raise DataError(
                    f"{about}{n_rows} rows are too many for --probability or several files, for which all are held (up "
                    f"to {HELD_ROWS}); leave --probability out, or give one CSV or Parquet file."
                )
        elif request.method not in ANY_ROWS and (needed := streamed_bytes(n_rows, 1, 1)) > budget(None):
            raise DataError(
                too_many(
                    f"{about}{n_rows}", f"they need {human(needed)}, but {human(budget(None))} may be used"
                )
            )

    return watched


def too_many(rows: str, reason: str) -> str:
    """Return the sentence that names the way that is open to any number of rows."""
    return f"{rows} rows are too many for exact kernels ({reason}); --landmarks 300 learns from any number of rows."
