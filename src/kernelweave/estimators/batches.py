"""Samples from wherever they are, a batch at a time: arrays, memory maps, Parquet, Dask collections."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing


def batches(X: Any, y: Any = None, *, size: int = 10_000) -> Iterator[tuple[Any, Any]]:
    """Yield (X, y) of at most ``size`` samples, reading no more than that at once.

    Parameters
    ----------
    X : array, memory map, frame, `Views`; path of a ``.npy`` file (memory-mapped) or of a Parquet file; Dask
        array or frame, whose partitions are computed one after the other.
    y : labels of the same kind; for Parquet the name of their column.
    size : samples per batch.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import batches
    >>> [len(y) for _, y in batches(np.zeros((25, 2)), np.zeros(25), size=10)]
    [10, 10, 5]

    """
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        if path.suffix != ".npy":
            yield from _parquet(path, y, size)
            return
        X = np.load(path, mmap_mode="r")
    if isinstance(y, str | os.PathLike):
        y = np.load(y, mmap_mode="r")
    if hasattr(X, "to_delayed"):
        for part, labels in zip(partitions(X), partitions(y), strict=True):
            yield from batches(part.compute(), np.asarray(labels.compute()), size=size)
        return
    n = int(X.shape[0])
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        yield _safe_indexing(X, rows), np.asarray(_safe_indexing(y, rows))


def partitions(collection: Any) -> list[Any]:
    """Return the parts of a Dask collection along its samples, as delayed values."""
    parts = np.asarray(collection.to_delayed(), dtype=object)
    if parts.ndim == 2 and parts.shape[1] > 1:
        raise ValueError(
            f"The Dask array is cut into {parts.shape[1]} pieces along its columns; rechunk it to "
            "X.rechunk({1: -1}), so that every piece holds whole samples."
        )
    return list(parts.ravel())


def _parquet(path: Path, target: Any, size: int) -> Iterator[tuple[Any, Any]]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'kernelweave[io]'.") from error
    if not isinstance(target, str):
        raise ValueError(f"For a Parquet file y is the name of the column with the labels; got {target!r}.")
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=size):
        frame = batch.to_pandas()
        yield frame.drop(columns=target), np.asarray(frame[target])
