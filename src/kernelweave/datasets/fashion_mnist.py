"""Fashion-MNIST from the four files its authors publish, as Debian's package installs them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.datasets.dataset import Dataset
from kernelweave.errors import DataError

FOLDER = Path("/usr/share/datasets/fashion-mnist")  # of Debian's package dataset-fashion-mnist
PARTS = {"train": 60_000, "t10k": 10_000}


def fashion_mnist(part: str = "train", directory: str | Path | None = None) -> Dataset:
    """Return 28 × 28 images of clothes as rows of 784 values in [0, 1], float32, and their ten classes.

    ``part`` is "train" (60,000) or "t10k" (10,000); ``directory`` holds the gzipped files.
    """
    if part not in PARTS:
        raise DataError(f"There is no part {part!r} of Fashion-MNIST; there are {', '.join(PARTS)}.")
    folder, n_samples = Path(directory or FOLDER), PARTS[part]
    X = _bytes(folder / f"{part}-images-idx3-ubyte.gz", 16, n_samples * 784).reshape(n_samples, 784)
    y = _bytes(folder / f"{part}-labels-idx1-ubyte.gz", 8, n_samples)
    return Dataset("fashion_mnist", X / np.float32(255.0), y)


def _bytes(file: Path, header: int, count: int) -> AnyArray:
    if not file.is_file():
        raise DataError(f"{file.name} is not in {str(file.parent)!r}; install dataset-fashion-mnist.")
    try:
        with gzip.open(file) as opened:
            found = np.frombuffer(opened.read(), np.uint8)[header:]
    except (OSError, EOFError) as error:
        raise DataError(f"{str(file)!r} cannot be read ({error}); get it again.") from None
    if found.size != count:
        raise DataError(f"{file.name} should hold {count} values, received {found.size}; get it again.")
    return found
