"""One fitted model in one file."""

from __future__ import annotations

import io
import json
import platform
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from kernelweave.errors import DataError
from kernelweave.io.atomic import written_whole
from kernelweave.io.old_names import with_todays_names
from kernelweave.io.trusted import strangers

# Raised when files of this version could not be read by the code of the version before.
FORMAT = 2
LABEL = "kernelweave.json"
# What every label has, and what it is.
KEYS = {
    "format": int,
    "versions": dict,
    "model": str,
    "kernels": list,
    "views": list,
    "notes": dict,
    "digest": str,
}
NOT_IN_FORMAT_1 = {"digest"}
PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn", "skops")
# What a reader of archives and of what is in them says of bytes that are not as they were written.
BROKEN = (
    *(BadZipFile, zlib.error, struct.error, EOFError, KeyError, IndexError, ValueError, TypeError),
    *(AttributeError, ImportError, NotImplementedError, RecursionError),
)


def save(
    model: Any,
    path: str | Path,
    *,
    notes: Mapping[str, Any] | None = None,
    trusted: Sequence[str | type] = (),
) -> None:
    """Write a model to a file, kernels, scalings, views and versions included.

    Parameters
    ----------
    model : estimator
        A fitted estimator of kernelweave, or a scikit-learn pipeline or search around one.
    path : str or Path
        The file; it is replaced in one step, so that it is never half written.
    notes : dict or None, default=None
        Anything JSON can hold, to be read back by `about`.
    trusted : sequence of types or full names, default=()
        Your own types and functions in the model; `load` has to be told of them too.

    Notes
    -----
    The file is a zip archive in the format of skops with one more member, ``kernelweave.json``: format
    version, versions of the packages, names of kernels and views, and a digest of the other members, so that
    a file in which something was exchanged does not load. Nothing in it is code.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave
    >>> X, y = load_iris(return_X_y=True)
    >>> model = kernelweave.MKLClassifier(kernelweave.KernelBank.per_feature()).fit(X, y)
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "iris.kw"
    >>> kernelweave.save(model, file)
    >>> bool((kernelweave.load(file).predict(X) == model.predict(X)).all())
    True

    """
    skops = _skops()
    label = _label(model, notes or {})
    json.dumps(label)  # says now if notes cannot be written
    try:
        content = skops.dumps(model)
        names = skops.get_untrusted_types(data=content)
    except Exception as error:  # skops says no in many ways; all of them mean the same to the user
        raise TypeError(f"{type(model).__name__} cannot be written to a model file: {error}") from error
    if unknown := strangers(names, trusted):
        raise TypeError(
            f"The model holds {', '.join(unknown)}, which a model file does not carry on trust; "
            "pass trusted=[...] to save and load if it is yours and can be imported."
        )
    buffer = io.BytesIO(content)
    with ZipFile(buffer, "a") as archive:
        archive.writestr(LABEL, json.dumps(label | {"digest": _digest(content)}, indent=1))
    written_whole(path, buffer.getbuffer())


def load(path: str | Path, *, trusted: Sequence[str | type] = ()) -> Any:
    """Read a model that `save` has written; nothing in the file is run.

    Only types of kernelweave, numpy and scikit-learn are made, and those in ``trusted``.

    Parameters
    ----------
    path : str or Path
        The file.
    trusted : sequence of types or full names, default=()
        Your own types and functions that the model holds.

    Returns
    -------
    estimator
        The model as it was saved.

    Notes
    -----
    A file that is truncated, not a model, from a newer format or with types of others gives a `DataError`
    of one sentence. Differs from the paper: nothing.

    Examples
    --------
    >>> import kernelweave
    >>> kernelweave.load("not-there.kw")
    Traceback (most recent call last):
    kernelweave.errors.DataError: There is no model file not-there.kw.

    """
    skops = _skops()
    content = _read(path)
    label = _checked_label(content, path)
    try:
        changed = label["format"] > 1 and label["digest"] != _digest(content)
        content = with_todays_names(content)
        names = skops.get_untrusted_types(data=content)
    except BROKEN as error:
        raise _damaged(path, error) from None
    if unknown := strangers(names, trusted):
        raise DataError(
            f"{path} holds {', '.join(unknown)}, which is neither kernelweave's nor scikit-learn's, so it "
            "was not loaded; pass trusted=[...] if you know what it is."
        )
    if changed:
        raise _damaged(path, "its content is not what was saved")
    try:
        model = skops.loads(content, trusted=names)
    except BROKEN as error:
        made, here = label["versions"].get("kernelweave"), version("kernelweave")
        if made != here:
            raise DataError(
                f"{path} was written by kernelweave {made} and cannot be read by {here} ({error}); "
                f"install kernelweave {made} to read it."
            ) from None
        raise _damaged(path, error) from None
    if type(model).__name__ != label["model"]:
        raise _damaged(path, f"it was saved as {label['model']} and holds {type(model).__name__}")
    return model


def about(path: str | Path) -> dict[str, Any]:
    """Return what a model file says of itself, without making the model.

    Keys: ``format``, ``versions``, ``model`` (its class), ``kernels`` and ``views`` (names), ``notes``.

    >>> import pathlib, tempfile
    >>> from kernelweave import MKLClassifier, io
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.kw"
    >>> io.save(MKLClassifier(), file, notes={"target": "label"})
    >>> io.about(file)["notes"]
    {'target': 'label'}
    """
    return _checked_label(_read(path), path)


def _label(model: Any, notes: Mapping[str, Any]) -> dict[str, Any]:
    inner = _innermost(model)
    bank = getattr(inner, "bank_", None)
    return {
        "format": FORMAT,
        "versions": {name: version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "model": type(model).__name__,
        "kernels": [str(name) for name in getattr(inner, "kernel_names_", ())],
        "views": list(dict.fromkeys(getattr(bank, "view_names", ()))),
        "notes": dict(notes),
    }


def _digest(content: bytes) -> str:
    """Return one number for all members of an archive but its label: their names and what is in them."""
    found = sha256()
    with ZipFile(io.BytesIO(content)) as archive:
        for name in sorted(set(archive.namelist()) - {LABEL}):
            found.update(name.encode() + b"\0" + sha256(archive.read(name)).digest())
    return found.hexdigest()


def _innermost(model: Any) -> Any:
    """Return the last step of a pipeline and the best model of a search: what has the kernels."""
    while True:
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return model


def _read(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no model file {path}.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None


def _checked_label(content: bytes, path: str | Path) -> dict[str, Any]:
    if not content.startswith(b"PK"):
        raise DataError(f"{path} is not a model file of kernelweave; write one with kernelweave.save.")
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            if LABEL not in archive.namelist():
                raise DataError(
                    f"{path} is an archive but not a model file of kernelweave: it has no {LABEL}."
                )
            label = json.loads(archive.read(LABEL))
            _require_keys(label, ("format", "versions"))
            if label["format"] <= FORMAT:
                _require_keys(label, KEYS if label["format"] > 1 else KEYS.keys() - NOT_IN_FORMAT_1)
                if (spoilt := archive.testzip()) is not None:
                    raise BadZipFile(f"{spoilt} was changed")
    except DataError:
        raise
    except BROKEN as error:
        raise _damaged(path, error) from None
    if label["format"] > FORMAT:
        raise DataError(
            f"{path} is in format {label['format']} of kernelweave {label['versions'].get('kernelweave')}, "
            f"which is newer than this one ({version('kernelweave')}, format {FORMAT}): "
            "upgrade kernelweave to read it."
        )
    return label  # type: ignore[no-any-return]


def _require_keys(label: Any, names: Iterable[str]) -> None:
    for name in names:
        if not isinstance(label.get(name), KEYS[name]):
            raise ValueError(f"the label says {name} {label.get(name)!r}")


def _damaged(path: str | Path, error: BaseException | str) -> DataError:
    return DataError(f"{path} is truncated or damaged ({error}); write it again with kernelweave.save.")


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError("Model files need skops: pip install 'kernelweave[io]'.") from None
    return skops.io
