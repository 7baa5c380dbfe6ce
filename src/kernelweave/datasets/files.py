"""Where data files are, and reading one."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.errors import DataError

VARIABLE = "KERNELWEAVE_DATA"


def data_directory(given: str | Path | None = None) -> Path:
    """Return the folder of the data files: the one given, or that of the environment variable."""
    chosen = given if given is not None else os.environ.get(VARIABLE)
    if not chosen:
        raise DataError(f"No folder of data files was given; name one with --data or set {VARIABLE}.")
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        raise DataError(f"The folder of data files {str(folder)!r} does not exist; give another one.")
    return folder


def read(name: str, directory: str | Path | None = None) -> dict[str, AnyArray]:
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
