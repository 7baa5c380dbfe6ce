"""A data set, and the files that data sets are read from."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.errors import DataError

VARIABLE = "KERNELWEAVE_DATA"


@dataclass(frozen=True)
class Dataset:
    """Samples and labels under a name; ``extra`` has what else the file holds (bags, splits, test rows)."""

    name: str
    X: Any = field(repr=False)
    y: AnyArray = field(repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    notes: str = ""


def data_directory(given: str | Path | None = None) -> Path:
    """Return the folder of the data files: the one given, or the one the environment variable names."""
    chosen = given if given is not None else os.environ.get(VARIABLE)
    if not chosen:
        raise DataError(f"No folder of data files was given; name one with --data or set {VARIABLE}.")
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise DataError(f"The folder of data files {str(folder)!r} does not exist; give another one.")
    return folder


def read_arrays(name: str, directory: str | Path | None = None) -> dict[str, AnyArray]:
    """Return all arrays of one file; nothing in it is executed."""
    folder = data_directory(directory)
    file = folder / f"{name}.npz"
    if not file.is_file():
        raise DataError(
            f"{file.name} is not in {str(folder)!r}; put it there, or name its folder (--data, {VARIABLE})."
        )
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as content:
            return {key: content[key] for key in content.files}
    except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{str(file)!r} cannot be read as an .npz file ({error}); get it again.") from None
