"""The commands: from files to a model file, from a model file to predictions, and what a model file holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave.cli.columns import assign, shared_ids, table, targets
from kernelweave.cli.files import named_path, pandas
from kernelweave.cli.join_tables import read_joined
from kernelweave.cli.methods import make, make_bank
from kernelweave.cli.progress import Tick, remembered_interrupt
from kernelweave.errors import DataError
from kernelweave.io import about, load, save, written_whole
from kernelweave.report import write_report
from kernelweave.report.writer import require_installed

COMMAND = "kernelweave fit"
# What a model file of the command tells of its table.
TOLD = ("rows", "files", "target", "id", "task", "views", "left_out")


@dataclass(frozen=True)
class Request:
    """What to fit on what."""

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


@dataclass(frozen=True)
class Fitted:
    """A model with the rows it was fitted to, and their names."""

    model: Any
    X: Any
    y: Any
    names: Sequence[str] | None


def fit(request: Request, out: Path, report: Path | None = None) -> tuple[dict[str, Any], Fitted]:
    """Fit a model, write it to a file, and return what was done; ``report`` is what will be written next.

    Ctrl-C while the weights are learnt keeps the best of them, unless a model file is there already.
    """
    check_place(out, request.data, is_model, "model file")
    if report is not None:
        require_installed()
        check_place(report, [*request.data, str(out)], is_report, "report")
    X, y, told = prepare(request)
    names = told.pop("ids")
    kernels, how = told.pop("bank"), (request.cost, request.verbose, request.probability)
    model = make(request.method, kernels, told["task"], *how)
    with warnings.catch_warnings(record=True) as caught, remembered_interrupt() as pressed:
        warnings.simplefilter("always")
        model.fit(X, y)
    if pressed.is_set() and out.exists():  # a finished model is worth more than one that was stopped
        raise KeyboardInterrupt
    told["notes"] += unique_sentences(caught)
    last = model[-1]
    if "verbose" in last.get_params():
        last.set_params(verbose=0)  # the bar was for this fit, not for whoever fits the model again
    told |= {"model": type(last).__name__, "method": request.method, "weights": weights_of(last)}
    if hasattr(last, "certificate_"):
        told["relative_gap"] = float(last.certificate_.relative_gap)
    told["score"] = float(model.score(X, y))
    told["stopped"] = pressed.is_set()
    save(model, out, notes={"command": COMMAND, **told})
    return {"written": str(out), **told}, Fitted(model, X, y, names)


def report(fitted: Fitted, told: dict[str, Any], out: Path, begin: Callable[[int], Tick]) -> None:
    """Write the report of a model that `fit` has returned; Ctrl-C during one of its fits ends it."""
    with remembered_interrupt() as pressed:

        def begin_watched(total: int) -> Tick:
            tick = begin(total)

            def next_step(name: str) -> None:
                if pressed.is_set():  # the fit before took the interrupt for its own end
                    raise KeyboardInterrupt
                tick(name)

            return next_step

        left_out = ", ".join(f"{name} ({reason})" for name, reason in told["left_out"].items())
        data = {"Files": ", ".join(told["files"]), "Target": told["target"], "Method": told["method"]}
        data |= {f"View {name}": ", ".join(columns) for name, columns in told["views"].items()}
        write_report(
            fitted.model,
            fitted.X,
            fitted.y,
            out,
            title=f"{told['target']}, from {', '.join(told['files'])}",
            samples=fitted.names,
            data=data | ({"Left out": left_out} if left_out else {}),
            notes=told["notes"],
            begin=begin_watched,
        )


def prepare(request: Request) -> tuple[Any, Any, dict[str, Any]]:
    """Read the files; return the table, the target, and what was taken for what, with the bank."""
    if request.task not in ("auto", "classification", "regression"):
        raise DataError(f"--task is auto, classification or regression; got {request.task!r}.")
    joined = read_joined(request.data, request.id_column, request.target)
    roles = assign(joined, request.target, request.views)
    y, task = targets(joined.frame[roles.target], request.target, request.task)
    X = table(joined.frame, roles.columns)
    if len(X) < 2:
        raise DataError(f"A model needs at least 2 rows, received {len(X)}; give a table with more.")
    told = {
        "rows": len(X),
        "files": list(joined.names),
        "target": roles.target,
        "id": request.id_column or ("id" if len(joined.names) > 1 else None),
        "task": task,
        "views": roles.views,
        "left_out": roles.left_out,
        "notes": [*joined.notes, *shared_ids(joined.frame, roles)],
        "bank": make_bank(request.bank, roles.positions),
        "ids": joined.ids,
    }
    if task == "classification":
        told["classes"] = {str(label): int((y == label).sum()) for label in np.unique(y)}
    return X, y, told


def predict(model_file: Path, data: Sequence[str], out: Path | None) -> tuple[str, dict[str, Any]]:
    """Return predictions as CSV, written to a file where one is named, and what was done."""
    notes = about(model_file)["notes"]
    if not tells_columns(notes):
        raise DataError(
            f"{model_file} was not written by {COMMAND!r}, so it does not say which columns it needs; "
            "use kernelweave.load in Python."
        )
    if out is not None:
        check_place(out, [*data, str(model_file)], is_predictions, "file of predictions")
    if len(data) != len(notes["files"]):
        raise DataError(
            f"The model was fitted on {len(notes['files'])} files ({', '.join(notes['files'])}); "
            f"got {len(data)}."
        )
    joined = read_joined(data, notes["id"], id_optional=True)
    columns = list(dict.fromkeys(name for group in notes["views"].values() for name in group))
    missing = [name for name in notes["files"] if name not in joined.names]
    if len(joined.names) > 1 and missing:
        raise DataError(
            f"The model needs a file called {missing[0]!r}; name yours as {missing[0]}=FILE "
            f"(got {', '.join(joined.names)})."
        )
    X = table(joined.frame, columns)
    frame = answers(load(model_file), X)
    said = list(joined.notes)
    if joined.ids is not None:
        name = "id" if notes["id"] in frame.columns else notes["id"]
        frame.insert(0, name, joined.ids)
        if name != notes["id"]:
            said.append(f"the id column {notes['id']!r} is written as 'id' beside the predictions")
    content = StringIO()
    frame.to_csv(content, index=False)
    if out is not None:
        written_whole(out, content.getvalue().encode())
    unused = [str(name) for name in joined.frame.columns if name not in columns]
    told = {
        "rows": len(X),
        "written": None if out is None else str(out),
        "unused": unused,
        "notes": said,
    }
    return content.getvalue(), told


def answers(model: Any, X: Any) -> Any:
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
    if hasattr(last, "support_"):
        label["support"] = len(last.support_)
    return label


def tells_columns(notes: Mapping[str, Any]) -> bool:
    """Tell whether the notes of a model file are those of `fit`, with all they say of the table."""
    return notes.get("command") == COMMAND and all(name in notes for name in TOLD)


def weights_of(model: Any) -> dict[str, float]:
    """Return the weight of every kernel, their mean over the classes where there are several."""
    if not hasattr(model, "kernel_weights_"):
        return {}
    eta = np.atleast_2d(model.kernel_weights_).mean(axis=0)
    return {str(name): float(weight) for name, weight in zip(model.kernel_names_, eta, strict=True)}


def check_place(out: Path, data: Sequence[str], is_one: Callable[[Path], bool], kind: str) -> None:
    """Say now, not after the work, that a file could not be written."""
    if out.is_dir():
        raise DataError(f"{out} is a folder, not a file to write; give it a file name.")
    if not out.parent.is_dir():
        raise DataError(f"There is no folder {out.parent} to write {out.name} to; make it first.")
    taken = {named_path(word)[1].resolve() for word in data}
    if out.resolve() in taken:
        raise DataError(f"{out} is one of the files to read; choose another name.")
    if out.exists() and not is_one(out):
        raise DataError(f"{out} is there already and is not a {kind}; choose another name.")


def is_model(path: Path) -> bool:
    """Tell whether a file is a model file, of whatever version."""
    try:
        about(path)
    except DataError:
        return False
    return True


def is_report(path: Path) -> bool:
    """Tell whether a file may be a report: a page."""
    return path.read_bytes()[:64].lower().startswith(b"<!doctype html")


def is_predictions(path: Path) -> bool:
    """Tell whether a file has the header of predictions."""
    with path.open("rb") as file:
        return b"prediction" in file.readline()


def unique_sentences(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return warnings as sentences, each once."""
    return list(dict.fromkeys(" ".join(str(w.message).split()) for w in caught))
