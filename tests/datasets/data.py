"""Where the papers' data files are on this machine, if they are."""

import os
from pathlib import Path

import pytest

from kernelweave.datasets import load

FOLDER = Path(os.environ.get("KERNELWEAVE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def load_or_skip(name):
    """Return the data set, or skip the test with the reason."""
    if not (FOLDER / f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is not in {FOLDER}; set KERNELWEAVE_DATA to its folder")
    return load(name, FOLDER)
