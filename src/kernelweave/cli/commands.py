"""The commands on files: fit a model and write it, predict with it, inspect it, write its report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave.cli.columns import assign_columns, numeric_table, read_target, shared_id_notes
from kernelweave.cli.files import named_path, pandas
from kernelweave.cli.join_tables import read_tables
from kernelweave.cli.methods import can_use_landmarks, make_bank, make_model
from kernelweave.cli.progress import Tick, remembered_interrupt
from kernelweave.errors import DataError
from kernelweave.io import about, load, save, written_whole
from kernelweave.report import write_report
from kernelweave.report.findings import unique_messages
from kernelweave.report.writer import require_installed

COMMAND = "kernelweave fit"


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


@dataclass(frozen=True)
class Prepared:
    """Table and target of a request, its kernels, the ids of the rows, and a summary to print and to save."""

    X: Any
    y: Any
    bank: Any
    ids: Sequence[str] | None
    summary: dict[str, Any]


@dataclass(frozen=True)
class Fitted:
    """A model with the rows it was fitted to, and their names."""

    model: Any
    X: Any
    y: Any
    names: Sequence[str] | None


def fit(request: Request, out: Path, report: Path | None = None) -> tuple[dict[str, Any], Fitted]:
    """Fit a model, write it to a file, and return a summary; ``report`` is the page to be written next.

    Ctrl-C while the weights are learnt keeps the best of them, unless a model file is there already.
    """
    check_output(out, request.data, is_model, "model file")
    if report is not None:
        require_installed()
        check_output(report, [*request.data, str(out)], is_report, "report")
    prepared = prepare(request)
    X, y, summary = prepared.X, prepared.y, prepared.summary
    options = (request.cost, request.verbose, request.probability, request.landmarks)
    model = make_model(request.method, prepared.bank, summary["task"], *options)
    with warnings.catch_warnings(record=True) as caught, remembered_interrupt() as pressed:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except MemoryError as error:
            if request.landmarks is not None or not can_use_landmarks(model[-1]):
                raise
            reason = str(error).partition(": raise")[0] or "they do not fit into memory"
            raise DataError(
                f"{len(X)} rows are too many for exact kernels ({reason}); --landmarks 300 learns from any "
                "number of rows."
            ) from None
    if pressed.is_set() and out.exists():  # the finished model that is there is not replaced by a stopped one
        raise KeyboardInterrupt
    summary["notes"] += unique_messages(caught)
    last = model[-1]
    if "verbose" in last.get_params():
        last.set_params(verbose=0)  # the bar was for this fit, not for whoever fits the model again
    summary |= {"model": type(last).__name__, "method": request.method, "weights": weights_of(last)}
    if hasattr(last, "certificate_"):
        summary["relative_gap"] = float(last.certificate_.relative_gap)
    summary |= _storage_of(last)
    summary["score"] = float(model.score(X, y))
    summary["stopped"] = pressed.is_set()
    save(model, out, notes={"command": COMMAND, **summary})
    return {"written": str(out), **summary}, Fitted(model, X, y, prepared.ids)


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
        data |= {f"View {name}": ", ".join(columns) for name, columns in summary["views"].items()}
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


def prepare(request: Request) -> Prepared:
    """Read the files and decide what every column is."""
    if request.task not in ("auto", "classification", "regression"):
        raise DataError(f"--task is auto, classification or regression; got {request.task!r}.")
    joined = read_tables(request.data, request.id_column, request.target)
    columns = assign_columns(joined, request.target, request.views)
    y, task = read_target(joined.frame[columns.target], request.target, request.task)
    X = numeric_table(joined.frame, columns.used)
    if len(X) < 2:
        raise DataError(f"A model needs at least 2 rows, received {len(X)}; give a table with more.")
    summary = {
        "rows": len(X),
        "files": list(joined.names),
        "target": columns.target,
        "id": request.id_column or ("id" if len(joined.names) > 1 else None),
        "task": task,
        "views": columns.views,
        "left_out": columns.left_out,
        "notes": [*joined.notes, *shared_id_notes(joined.frame, columns)],
    }
    if task == "classification":
        summary["classes"] = {str(label): int((y == label).sum()) for label in np.unique(y)}
    return Prepared(X, y, make_bank(request.bank, columns.positions), joined.ids, summary)


def predict(model_file: Path, data: Sequence[str], out: Path | None) -> tuple[str, dict[str, Any]]:
    """Return predictions as CSV, written to a file where one is named, and a summary."""
    notes = about(model_file)["notes"]
    if not has_columns(notes):
        raise DataError(
            f"{model_file} was not written by {COMMAND!r}, so it does not say which columns it needs; "
            "use kernelweave.load in Python."
        )
    if out is not None:
        check_output(out, [*data, str(model_file)], is_predictions, "file of predictions")
    if len(data) != len(notes["files"]):
        raise DataError(
            f"The model was fitted on {len(notes['files'])} files ({', '.join(notes['files'])}); "
            f"got {len(data)}."
        )
    joined = read_tables(data, notes["id"], id_optional=True)
    columns = list(dict.fromkeys(name for group in notes["views"].values() for name in group))
    missing = [name for name in notes["files"] if name not in joined.names]
    if len(joined.names) > 1 and missing:
        raise DataError(
            f"The model needs a file called {missing[0]!r}; name yours as {missing[0]}=FILE "
            f"(got {', '.join(joined.names)})."
        )
    X = numeric_table(joined.frame, columns)
    frame = prediction_table(load(model_file), X)
    new_notes = list(joined.notes)
    if joined.ids is not None:
        name = "id" if notes["id"] in frame.columns else notes["id"]
        frame.insert(0, name, joined.ids)
        if name != notes["id"]:
            new_notes.append(f"the id column {notes['id']!r} is written as 'id' beside the predictions")
    content = StringIO()
    frame.to_csv(content, index=False)
    if out is not None:
        written_whole(out, content.getvalue().encode())
    unused = [str(name) for name in joined.frame.columns if name not in columns]
    summary = {
        "rows": len(X),
        "written": None if out is None else str(out),
        "unused": unused,
        "notes": new_notes,
    }
    return content.getvalue(), summary


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
    names = ("rows", "files", "target", "id", "task", "views", "left_out")
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
