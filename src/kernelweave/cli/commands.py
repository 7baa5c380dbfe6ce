"""The commands on files: fit a model and write it, predict with it, inspect it, write its report."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave.cli.files import TableFile, Watch, can_be_read_in_parts, named_path, pandas, watched_parts
from kernelweave.cli.methods import can_use_landmarks, make_model
from kernelweave.cli.prepare import DifferentValues, Prepared, Request, prepare, too_many
from kernelweave.cli.progress import Tick, reading_bar, remembered_interrupt
from kernelweave.cli.tables import Tables, joined, read_tables
from kernelweave.errors import DataError
from kernelweave.io import about, load, require_writable, save, whole_file
from kernelweave.report import write_report
from kernelweave.report.columns import columns_of, lacking_rows, rows_without_a_view
from kernelweave.report.findings import unique_messages
from kernelweave.report.writer import require_installed
from kernelweave.views.views import Views

COMMAND = "kernelweave fit"
MOST_NAMED = 50  # columns of a view, in the report


@dataclass(frozen=True)
class Fitted:
    """A model with the rows it was fitted to, and their names."""

    model: Any
    X: Any
    y: Any
    names: Sequence[str] | None


def fit(request: Request, out: Path, report: Path | None = None) -> tuple[dict[str, Any], Fitted | None]:
    """Fit a model, write it to a file, and return a summary; ``report`` is the page to be written next.

    Ctrl-C while the weights are learnt keeps the best of them, unless a model file is there already. The rows
    are returned with the model unless they are so many that they are not held.
    """
    check_output(out, request.data, is_model, "model file")
    if report is not None:
        if request.landmarks is not None:
            raise DataError("A report compares exact kernels; leave --report or --landmarks out.")
        require_installed()
        check_output(report, [*request.data, str(out)], is_report, "report")
    require_writable(out)
    with reading_bar(bool(request.verbose), "reading") as watch:
        prepared = prepare(request, watch, held=request.probability)
    summary = prepared.summary
    options = (request.cost, request.verbose, request.probability, request.landmarks)
    model = make_model(request.method, prepared.bank, summary["task"], *options)
    with warnings.catch_warnings(record=True) as caught, remembered_interrupt() as pressed:
        warnings.simplefilter("always")
        try:
            prepared.fit(model)
        except MemoryError as error:
            if request.landmarks is not None or not can_use_landmarks(model):
                raise
            reason = str(error).partition(": raise")[0] or "they do not fit into memory"
            raise DataError(too_many(str(summary["rows"]), reason)) from None
    if pressed.is_set() and out.exists():  # the finished model that is there is not replaced by a stopped one
        raise KeyboardInterrupt
    summary["notes"] += unique_messages(caught)
    if "verbose" in model.get_params():
        model.set_params(verbose=0)  # the bar was for this fit, not for whoever fits the model again
    summary |= {"model": type(model).__name__, "method": request.method, "weights": weights_of(model)}
    if hasattr(model, "certificate_"):
        summary["relative_gap"] = float(model.certificate_.relative_gap)
    summary |= _storage_of(model)
    summary["score"] = prepared.score(model)
    summary["stopped"] = pressed.is_set()
    _save(model, out, {"command": COMMAND, **summary})
    fitted = Fitted(model, prepared.X, prepared.y, prepared.ids) if isinstance(prepared, Prepared) else None
    return {"written": str(out), "columns": _as_rows(model), **summary}, fitted


def _as_rows(model: Any) -> list[dict[str, Any]]:
    """Return what was done with every column, as JSON has it."""
    return [asdict(one) for one in columns_of(model)]


def _save(model: Any, out: Path, notes: dict[str, Any]) -> None:
    """Write a model, to the temporary folder if not where it should be: a fit may have taken long."""
    try:
        save(model, out, notes=notes)
    except OSError as error:
        folder = Path(tempfile.mkdtemp(prefix="kernelweave-"))
        kept = folder / out.name
        try:
            save(model, kept, notes=notes)
        except OSError:
            folder.rmdir()
            raise error from None
        raise DataError(f"{error} The model is kept as {kept}.") from None


def report(fitted: Fitted, summary: dict[str, Any], out: Path, begin: Callable[[int], Tick]) -> None:
    """Write the report of a model that `fit` has returned; Ctrl-C during one of its fits ends it."""
    with remembered_interrupt() as pressed:

        def begin_watched(total: int) -> Tick:
            tick = begin(total)

            def next_step(name: str) -> None:
                if pressed.is_set():  # the fit before caught the interrupt and stopped early
                    raise KeyboardInterrupt
                tick(name)

            return next_step

        left_out = ", ".join(f"{name} ({reason})" for name, reason in summary["left_out"].items())
        data = {
            "Files": ", ".join(summary["files"]),
            "Target": summary["target"],
            "Method": summary["method"],
        }
        for name, columns in summary["views"].items():
            more = f", … ({len(columns)})" if len(columns) > MOST_NAMED else ""
            data[f"View {name}"] = ", ".join(columns[:MOST_NAMED]) + more
        write_report(
            fitted.model,
            fitted.X,
            fitted.y,
            out,
            title=f"{summary['target']}, from {', '.join(summary['files'])}",
            samples=fitted.names,
            data=data | ({"Left out": left_out} if left_out else {}),
            notes=summary["notes"],
            begin=begin_watched,
        )


def predict(
    model_file: Path, data: Sequence[str], out: Path | None, *, verbose: bool = False
) -> tuple[str, dict[str, Any]]:
    """Write predictions as CSV to a file, or return them where none is named; and return a summary."""
    notes = about(model_file)["notes"]
    if not has_columns(notes):
        raise DataError(
            f"{model_file} was not written by {COMMAND!r} of this version, so it does not say which columns it needs; "
            "use kernelweave.load in Python."
        )
    if out is not None:
        check_output(out, [*data, str(model_file)], is_predictions, "file of predictions")
    model, content, is_first = load(model_file), StringIO(), True
    summary: dict[str, Any] = {"rows": 0, "unused": [], "notes": []}
    with _csv(out, content) as write, reading_bar(verbose and out is not None, "predicting") as watch:
        for X, ids, where in _samples(data, notes, _words_of(model), watch, summary):
            try:
                nothing = rows_without_a_view(model.bank, X)
                kept = (
                    np.setdiff1d(np.arange(len(X)), nothing) if nothing.size < len(X) else np.arange(len(X))
                )
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    frame = prediction_table(model, X if kept.size == len(X) else _safe_indexing(X, kept))
            except (ValueError, TypeError) as error:
                raise DataError(f"{where}{error}") from None
            summary["notes"] += [f"{where}{said}" for said in unique_messages(caught)]
            if kept.size < len(X):
                frame = frame.set_axis(kept, axis=0).reindex(range(len(X)))
                summary["notes"].append(
                    f"{where}{nothing.size} rows have no value in any view, and no prediction"
                )
            if ids is not None:
                name = "id" if notes["id"] in frame.columns else notes["id"]
                frame.insert(0, name, ids)
                if is_first and name != notes["id"]:
                    said = f"the id column {notes['id']!r} is written as 'id' beside the predictions"
                    summary["notes"].append(said)
            write(frame.to_csv(index=False, header=is_first))
            is_first = False
            summary["rows"] += len(frame)
    return content.getvalue(), summary | {"written": None if out is None else str(out)}


def _words_of(model: Any) -> list[str]:
    """Return the columns that held text: they are read as text again, whatever the new cells look like."""
    return [str(one.column) for one in columns_of(model) if one.type in ("category", "ordered", "text")]


def _samples(
    data: Sequence[str], notes: Mapping[str, Any], words: list[str], watch: Watch, summary: dict[str, Any]
) -> Iterator[tuple[Any, Any, str]]:
    """Yield the rows to predict, their ids and where they are: those of one file as they are read."""
    key, said = notes["id"], summary["notes"]
    if len(notes["files"]) > 1:
        tables = read_tables(data, key, as_text=words, watch=watch)
        X, ids = _joined_samples(tables, notes, summary)
        yield X, ids, ""
        return
    if len(data) > 1:
        raise DataError(f"The model was fitted on 1 file ({notes['files'][0]}); got {len(data)}.")
    columns = list(dict.fromkeys(name for group in notes["views"].values() for name in group))
    kept, seen, n_rows = [] if key is None else [key], DifferentValues(), 0
    for file in _parts(data[0], kept, words, watch):
        if not n_rows:
            summary["unused"] = [str(name) for name in file.frame.columns if name not in (*columns, key)]
            if key is not None and key not in file.frame.columns:
                said.append(f"there is no id column {key!r}: rows are numbered")
                key = None
        _require_columns(file, columns)
        seen.look(ids := Tables([file], key).ids(file))
        last = n_rows + len(file.frame)
        yield file.frame[columns], ids, f"Rows {n_rows + 1} to {last} of {file.path}: "
        n_rows = last
    seen.require_different(named_path(data[0])[1])


def _parts(word: str, kept: list[str], words: list[str], watch: Watch) -> Iterator[TableFile]:
    """Yield the rows of a file as tables, in parts where it can be read so."""
    if not can_be_read_in_parts(word):
        yield from read_tables([word], None).files
        return
    name, path = named_path(word)
    for frame, _ in watched_parts(path, kept, words, watch):
        yield TableFile(name, path, frame)


def _joined_samples(tables: Tables, notes: Mapping[str, Any], summary: dict[str, Any]) -> tuple[Any, Any]:
    """Return several files joined, and the ids; a view whose file is not given is one that everybody lacks."""
    unknown = [name for name in tables.names if name not in notes["files"]]
    if unknown:
        missing = [name for name in notes["files"] if name not in tables.names]
        raise DataError(
            f"The model knows no file {unknown[0]!r} and needs a file called {missing[0]!r}; name yours as "
            f"{missing[0]}=FILE (got {', '.join(tables.names)})."
            if missing
            else f"The model knows no file {unknown[0]!r}, only {', '.join(notes['files'])}."
        )
    files = {file.name: file for file in tables.files}
    given = {}
    for view, columns in notes["views"].items():
        if (file := files.get(view) or files.get(view.rpartition(".")[0])) is not None:
            _require_columns(file, columns)
            given[view] = (file, columns)
    if not given:
        raise DataError(f"None of {', '.join(tables.names)} has columns that the model learnt from.")
    views = joined(tables, given, strangers=True)
    X = Views(
        {
            view: views[view] if view in given else pandas().DataFrame(np.nan, range(len(views)), columns)
            for view, columns in notes["views"].items()
        }
    )
    lacking = {view: rows.size for view, rows in lacking_rows(None, X).items()}
    summary["notes"] += [f"{count} of {len(X)} rows lack {view}" for view, count in lacking.items()]
    used = {(file.name, name) for file, columns in given.values() for name in (*columns, tables.id_column)}
    summary["unused"] = [
        f"{file.name}:{name}"
        for file in tables.files
        for name in file.frame.columns
        if (file.name, str(name)) not in used
    ]
    return X, views.ids


def _require_columns(file: TableFile, columns: Sequence[str]) -> None:
    """Raise DataError where a file lacks columns that the model needs."""
    missing = [name for name in columns if name not in file.frame.columns]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise DataError(
            f"The data lack {len(missing)} of the {len(columns)} columns the model needs: {shown} (in {file.path})."
        )


@contextmanager
def _csv(out: Path | None, content: StringIO) -> Iterator[Callable[[str], Any]]:
    """Yield what writes text to a file, which is there when all of it is, or else to ``content``."""
    if out is None:
        yield content.write
        return
    with whole_file(out) as write:
        yield lambda text: write(text.encode())


def prediction_table(model: Any, X: Any) -> Any:
    """Return a frame of predictions, with decision values and probabilities where the model has them."""
    frame = pandas().DataFrame({"prediction": model.predict(X)})
    if hasattr(model, "decision_function"):
        values = model.decision_function(X)
        if values.ndim == 1:
            frame["decision"] = values
        else:
            for label, column in zip(model.classes_, values.T, strict=True):
                frame[f"decision {label}"] = column
    if hasattr(model, "predict_proba"):
        for label, column in zip(model.classes_, model.predict_proba(X).T, strict=True):
            frame[f"probability {label}"] = column
    return frame


def inspect(model_file: Path) -> dict[str, Any]:
    """Return what a model file holds: its label, and the weights of its kernels."""
    label = about(model_file)
    model = load(model_file)
    last = model[-1] if hasattr(model, "steps") else model
    label["weights"] = weights_of(last)
    if hasattr(last, "certificate_"):
        certificate = last.certificate_
        label["certificate"] = {
            "lower": float(certificate.lower),
            "upper": float(certificate.upper),
            "relative_gap": float(certificate.relative_gap),
        }
    label |= _storage_of(last)
    label["columns"] = _as_rows(last)
    if hasattr(last, "support_"):
        label["support"] = len(last.support_)
    return label


def _storage_of(model: Any) -> dict[str, str]:
    """Return how a model on landmarks stands for its kernels, and how far it is from the exact ones."""
    if getattr(model, "features", None) is None or not hasattr(model, "storage_"):
        return {}
    return {"approximation": model.storage_.how}


def has_columns(notes: Mapping[str, Any]) -> bool:
    """Return whether the notes of a model file are those of `fit`, which describe its table."""
    names = ("rows", "files", "target", "id", "task", "views", "left_out", "lacking")
    return notes.get("command") == COMMAND and all(name in notes for name in names)


def weights_of(model: Any) -> dict[str, float]:
    """Return the weight of every kernel, their mean over the classes where there are several."""
    if not hasattr(model, "kernel_weights_"):
        return {}
    eta = np.atleast_2d(model.kernel_weights_).mean(axis=0)
    return {str(name): float(weight) for name, weight in zip(model.kernel_names_, eta, strict=True)}


def check_output(out: Path, data: Sequence[str], is_kind: Callable[[Path], bool], kind: str) -> None:
    """Refuse before any work is done a file that cannot be written, or that would be lost."""
    if out.is_dir():
        raise DataError(f"{out} is a folder, not a file to write; give it a file name.")
    if not out.parent.is_dir():
        raise DataError(f"There is no folder {out.parent} to write {out.name} to; make it first.")
    taken = {named_path(word)[1].resolve() for word in data}
    if out.resolve() in taken:
        raise DataError(f"{out} is one of the files to read; choose another name.")
    if out.exists() and not is_kind(out):
        raise DataError(f"{out} is there already and is not a {kind}; choose another name.")


def is_model(path: Path) -> bool:
    """Return whether a file is a model file, of whatever version."""
    try:
        about(path)
    except DataError:
        return False
    return True


def is_report(path: Path) -> bool:
    """Return whether a file may be a report: a page."""
    return path.read_bytes()[:64].lower().startswith(b"<!doctype html")


def is_predictions(path: Path) -> bool:
    """Return whether a file has the header of predictions."""
    with path.open("rb") as file:
        return b"prediction" in file.readline()
