"""Samples from wherever they are, a batch at a time: arrays, memory maps, Parquet, Dask collections."""

from __future__ import annotations

import os
from collections.abc import Iterator
from numbers import Integral
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
    y : labels of the same kind, as many as samples; for Parquet the name of their column. None yields
        (X, None).
    size : samples per batch.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import batches
    >>> [len(y) for _, y in batches(np.zeros((25, 2)), np.zeros(25), size=10)]
    [10, 10, 5]

    """
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"size must be a whole number of at least 1; got {size!r}.")
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        if path.suffix != ".npy":
            yield from _parquet(path, y, size)
            return
        X = np.load(path, mmap_mode="r")
    if isinstance(y, str | os.PathLike):
        y = np.load(y, mmap_mode="r")
    if hasattr(X, "to_delayed"):
        yield from _computed(partitions(X), None if y is None else _parts_of(y), size)
        return
    n = _count(X)
    if y is not None and _count(y) != n:
        raise ValueError(f"X has {n} samples but y has {_count(y)} labels; they must agree.")
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        yield _safe_indexing(X, rows), None if y is None else np.asarray(_safe_indexing(y, rows))


def _computed(Xs: list[Any], ys: list[Any] | None, size: int) -> Iterator[tuple[Any, Any]]:
    if ys is not None and len(Xs) != len(ys):
        raise ValueError(f"X has {len(Xs)} partitions and y has {len(ys)}; they must agree.")
    for part, labels in zip(Xs, [None] * len(Xs) if ys is None else ys, strict=True):
        known = None if labels is None else np.asarray(labels.compute())
        yield from batches(part.compute(), known, size=size)


def _parts_of(y: Any) -> list[Any]:
    if not hasattr(y, "to_delayed"):
        raise ValueError(f"The labels of a Dask collection are one too, cut alike; got {type(y).__name__}.")
    return partitions(y)


def _count(values: Any) -> int:
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


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
    file = parquet.ParquetFile(path)
    names = list(file.schema_arrow.names)
    if target is not None and (not isinstance(target, str) or target not in names):
        raise ValueError(
            f"For a Parquet file y is the name of the column with the labels, one of {names}; got {target!r}."
        )
    for batch in file.iter_batches(batch_size=size):
        frame = batch.to_pandas()
        yield (frame, None) if target is None else (frame.drop(columns=target), np.asarray(frame[target]))
