"""What a fit or a comparison learns from: the tables of a request, held as a whole or read in parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices
from kernelweave.cli.columns import (
    ID,
    UNNAMED,
    TargetColumn,
    chosen_views,
    empty_word_notes,
    look_at_cells,
    looks_like_id,
    ordered,
    parse_orders,
    read_target,
    repeated_id_note,
)
from kernelweave.cli.files import (
    ROWS_AT_A_TIME,
    TableFile,
    Watch,
    can_be_read_in_parts,
    named_path,
    pandas,
    unwatched,
    watched_parts,
)
from kernelweave.cli.methods import make_bank
from kernelweave.cli.tables import Tables, joined, read_tables, views_of
from kernelweave.errors import DataError
from kernelweave.gram.memory import budget, human, streamed_bytes
from kernelweave.report.columns import lacking_rows, lacking_summary, rows_without_a_view
from kernelweave.views.batches import batches
from kernelweave.views.files import MixedColumns, read_parts

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
    method: str = "default"
    bank: str = "default"
    cost: float | None = None
    verbose: int = 0
    probability: bool = False
    landmarks: int | None = None
    most_rows: int | None = None  # more are left out at random
    orders: Sequence[str] = ()


@dataclass(frozen=True)
class Prepared:
    """Samples and target of a request, its kernels, the ids of the rows, and a summary to print and to save."""

    X: Any
    y: Any
    bank: Any
    ids: Sequence[str] | None
    summary: dict[str, Any]

    def fit(self, model: Any) -> None:
        """Fit a model to the samples."""
        model.fit(self.X, self.y)

    def score(self, model: Any) -> float:
        """Return the accuracy, or R², on the rows."""
        return float(model.score(self.X, self.y))


@dataclass(frozen=True)
class PreparedInParts:
    """The same where the table stays in its file, which is read once for every pass of the fit.

    Classes are codes, places in ``labels``.
    """

    path: Path
    as_written: Sequence[str]
    as_text: Sequence[str]
    orders: Mapping[str, list[str]]
    columns: list[str]
    y: AnyArray = field(repr=False)
    labels: AnyArray | None
    bank: Any
    summary: dict[str, Any]

    def fit(self, model: Any) -> None:
        """Fit a model that learns from batches."""
        model.fit(batches(self._read))

    def score(self, model: Any) -> float:
        """Return the accuracy, or R², on the rows."""
        found = np.concatenate([model.predict(X) for X, _ in self._read()])
        return float(
            r2_score(self.y, found) if self.labels is None else accuracy_score(self.labels[self.y], found)
        )

    def _read(self) -> Iterator[tuple[Any, Any]]:
        first = 0
        for frame, _ in read_parts(
            self.path, ROWS_AT_A_TIME, as_written=self.as_written, as_text=self.as_text
        ):
            y = self.y[first : first + len(frame)]
            first += len(frame)
            for name, levels in self.orders.items():
                frame[name] = ordered(frame[name], levels, name)
            yield frame[self.columns], y if self.labels is None else self.labels[y]


@dataclass(frozen=True)
class TableColumns:
    """What the columns are: the target and its file, the columns of every view with their file, those left out.

    ``several`` says whether there are several files.
    """

    file: TableFile = field(repr=False)
    target: str
    views: dict[str, tuple[TableFile, list[str]]]
    left_out: dict[str, str]
    several: bool

    @property
    def names(self) -> dict[str, list[str]]:
        """The columns of every view."""
        return {view: columns for view, (_, columns) in self.views.items()}

    @property
    def declared(self) -> dict[str, list[str]] | None:
        """The views that a bank has to name: groups of columns of one table."""
        return None if self.several or list(self.views) == ["all"] else self.names

    @property
    def used(self) -> list[str]:
        """All columns of the views of one file, each once, in order."""
        return list(dict.fromkeys(name for columns in self.names.values() for name in columns))


def prepare(request: Request, watch: Watch = unwatched, *, held: bool = True) -> Prepared | PreparedInParts:
    """Read the files and decide what every column is; a table that need not be ``held`` stays in its file."""
    if request.task not in ("auto", "classification", "regression"):
        raise DataError(f"--task is auto, classification or regression; got {request.task!r}.")
    in_parts = len(request.data) == 1 and can_be_read_in_parts(request.data[0])
    if in_parts and request.landmarks is not None and not held:
        return _prepare_in_parts(request, watch)
    return prepare_held(request, watch)


def prepare_held(request: Request, watch: Watch = unwatched) -> Prepared:
    """Read the files, join them, and decide what every column is."""
    orders = parse_orders(request.orders)
    tables = read_tables(
        request.data,
        request.id_column,
        request.target,
        as_written=list(orders),
        watch=_refusing_too_many(request, watch),
        most=request.most_rows,
    )
    for name, levels in orders.items():
        file, column = tables.find(name)
        file.frame[column] = ordered(file.frame[column], levels, column)
    columns = _assigned(tables, request)
    notes = list(tables.notes)
    for file, used in columns.views.values():
        notes += look_at_cells(file.frame, used).values()
    target = TargetColumn(request.target)
    target.look(columns.file.frame[columns.target])
    values = target.values()
    notes += _repeated_ids(tables, columns)
    X, ids, n_all = _samples(tables, columns)
    rows = _rows_to_learn_from(X, ids, tables, columns, notes)
    if request.most_rows is not None and n_all > request.most_rows:
        if rows.size > request.most_rows:
            rows = np.sort(np.random.default_rng(0).choice(rows, request.most_rows, replace=False))
        notes.append(f"{rows.size} of {n_all} rows are used, drawn at random; --rows says how many")
    if rows.size < len(X):
        X, ids = _safe_indexing(X, rows), None if ids is None else ids[rows]
    values = values.iloc[rows] if ids is None else values.set_axis(tables.ids(columns.file)).loc[list(ids)]
    y, task = read_target(values, request.target, request.task)
    summary, bank = _summary(tables, columns, y, task, notes), make_bank(request.bank, columns.declared, task)
    names = [str(name) for name in (np.arange(len(y)) if ids is None else ids)]
    summary["lacking"] = lacking_summary(lacking_rows(bank, X), names)
    return Prepared(X, y, bank, None if ids is None else names, summary)


def _samples(tables: Tables, columns: TableColumns) -> tuple[Any, AnyArray | None, int]:
    """Return the samples without their target, their ids, and how many the files have."""
    if len(tables.files) > 1:
        views = joined(tables, columns.views)
        assert views.ids is not None
        return views, views.ids, len(views)
    (file,) = tables.files
    return file.frame[columns.used], tables.ids(file), file.n_rows


def _rows_to_learn_from(
    X: Any, ids: AnyArray | None, tables: Tables, columns: TableColumns, notes: list[str]
) -> Indices:
    """Return the rows with a target and with a value in any view; notes say who the others are."""
    learnt = np.ones(len(X), dtype=bool)

    def leave_out(which: AnyArray, names: AnyArray, why: str) -> None:
        if which.any():
            who = ", ".join(map(str, names[which][:5])) + (", ..." if which.sum() > 5 else "")
            notes.append(f"{which.sum()} of {which.size} rows {why} and are not learnt from: {who}")

    names = np.arange(len(X)) if ids is None else ids
    if len(tables.files) > 1:
        with_target = tables.ids(columns.file)
        assert with_target is not None
        leave_out(~np.isin(with_target, names), with_target, f"of {columns.file.name} are in no other file")
        learnt = np.isin(names, with_target)
        leave_out(~learnt, names, f"are not in {columns.file.name}, which has the target,")
    nothing = np.isin(np.arange(len(X)), rows_without_a_view(make_bank("by_type", columns.declared), X))
    leave_out(nothing & learnt, names, "have no value in any view")
    learnt &= ~nothing
    if not learnt.any():
        raise DataError(f"No row has both a target and a value to learn from: {'; '.join(notes)}.")
    return np.flatnonzero(learnt)


def _assigned(tables: Tables, request: Request) -> TableColumns:
    """Decide what every column is; without views that are named, every file is one, or its arrays are."""
    several = len(tables.files) > 1
    if request.views and several:
        raise DataError("Several files are views already; use --view with one file only.")
    target_file, target = tables.find(request.target)
    views: dict[str, tuple[TableFile, list[str]]] = {}
    left_out = {}
    for file in tables.files:
        columns = [str(name) for name in file.frame.columns if name != tables.id_column]
        columns = [name for name in columns if file is not target_file or name != target]
        if request.views:
            found = chosen_views(request.views, columns, target)
        else:
            found = views_of(file, [name for name in columns if not looks_like_id(name)], several=several)
        views |= {name: (file, group) for name, group in found.items() if group}
        used = {name for group in found.values() for name in group}
        for name in columns:
            if name not in used:
                full = f"{file.name}:{name}" if several else name
                left_out[full] = ID if looks_like_id(name) else UNNAMED
    if not views:
        raise DataError(f"There is no column beside the target {request.target!r} to learn from.")
    return TableColumns(target_file, target, views, left_out, several)


def _repeated_ids(tables: Tables, columns: TableColumns) -> list[str]:
    """Return a note for every column left out as an id whose values several rows share."""
    ids = [name for name, why in columns.left_out.items() if why == ID]
    found = [(name, tables.find(name)) for name in ids]
    return [repeated_id_note(name) for name, (file, column) in found if not file.frame[column].is_unique]


def _prepare_in_parts(request: Request, watch: Watch) -> PreparedInParts:
    """Look at all rows of a file once, and hold no more of them than the target."""
    name, path = named_path(request.data[0])
    orders = {one.removeprefix(f"{name}:"): levels for one, levels in parse_orders(request.orders).items()}
    kept = [request.target, request.target.removeprefix(f"{name}:"), *orders]
    kept += [] if request.id_column is None else [request.id_column]
    target, ids, mixed, n_rows = TargetColumn(request.target), DifferentValues(), MixedColumns(), 0
    doubtful: dict[str, str] = {}
    id_like: dict[str, DifferentValues] = {}
    for frame, _ in mixed.watched(watched_parts(path, kept, watch=watch)):
        tables = Tables([TableFile(name, path, frame)], request.id_column)
        if not n_rows:
            columns = _assigned(tables, request)
            id_like = {one: DifferentValues() for one, why in columns.left_out.items() if why == ID}
        where = f" (rows {n_rows + 1} to {n_rows + len(frame)} of {path})"
        doubtful = look_at_cells(frame, columns.used, where) | doubtful
        for column, levels in orders.items():
            ordered(frame[tables.find(column)[1]], levels, column)
        target.look(frame[columns.target])
        ids.look(tables.ids(tables.files[0]))
        for column, seen in id_like.items():
            seen.look(frame[column])
        n_rows += len(frame)
    ids.require_different(path)
    y, task = read_target(target.values(), request.target, request.task)
    notes = [repeated_id_note(column) for column, seen in id_like.items() if seen.repeat()]
    summary = _summary(tables, columns, y, task, [*notes, *doubtful.values()])
    labels = None
    if task == "classification":
        labels, y = np.unique(y, return_inverse=True)
        y = y.astype(np.int32)
    bank = make_bank(request.bank, columns.declared, task)
    return PreparedInParts(path, kept, mixed.names, orders, columns.used, y, labels, bank, summary)


class DifferentValues:
    """Tells whether values that come in parts differ; of each a number of 64 bits is kept."""

    def __init__(self) -> None:
        self._marks: list[AnyArray] = []

    def look(self, values: Any) -> None:
        """Take more values into account, if there are any."""
        if values is None:
            return
        self._marks.append(pandas().util.hash_array(np.asarray(values, dtype=object)))

    def repeat(self) -> tuple[int, int] | None:
        """Return the places of two values that are the same, or None."""
        marks = np.concatenate([np.empty(0, dtype=np.uint64), *self._marks])
        order = np.argsort(marks, kind="stable")
        same = np.flatnonzero(marks[order[1:]] == marks[order[:-1]])
        return (int(order[same[0]]), int(order[same[0] + 1])) if same.size else None

    def require_different(self, path: Path) -> None:
        """Raise DataError where two of the ids of a file are the same."""
        if repeat := self.repeat():
            raise DataError(
                f"Rows {repeat[0] + 1} and {repeat[1] + 1} of {path} have the same id; ids have to differ."
            )


def _summary(tables: Tables, columns: TableColumns, y: Any, task: str, notes: list[str]) -> dict[str, Any]:
    if len(y) < 2:
        raise DataError(f"A model needs at least 2 rows, received {len(y)}; give a table with more.")
    summary: dict[str, Any] = {
        "rows": len(y),
        "files": tables.names,
        "target": columns.target if len(tables.files) == 1 else f"{columns.file.name}:{columns.target}",
        "id": tables.id_column,
        "task": task,
        "views": columns.names,
        "left_out": columns.left_out,
        "lacking": {},
        "notes": notes,
    }
    if task == "classification":
        labels, counts = np.unique(y, return_counts=True)
        notes += empty_word_notes(labels, columns.target)
        summary["classes"] = {str(k): int(n) for k, n in zip(labels, counts, strict=True)}
    return summary


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
