"""Samples that need not fit into memory: read a few at a time, as often as they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave.errors import DataError
from kernelweave.views.files import PARQUET, TEXT, MixedColumns, column_names_of, read_parts
from kernelweave.views.same_rows import require_labels


@dataclass(frozen=True)
class Batches:
    """Samples and targets in batches; made by ``batches``. Iterating over it again reads them again."""

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    size: int

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        if callable(self.X):
            yield from self.X()
        elif isinstance(self.X, Path):
            yield from _file_batches(self.X, self.y, self.size, self._as_text)
        elif hasattr(self.X, "to_delayed"):
            yield from _dask_batches(self.X, self.y, self.size)
        else:
            yield from _table_batches(self.X, self.y, self.size)

    @cached_property
    def _as_text(self) -> list[str]:
        """The columns of a text file that read as text in some batches only, which takes a pass to find out."""
        mixed = MixedColumns()
        if self.X.suffix.lower() in TEXT:
            for frame, _ in read_parts(self.X, self.size):
                mixed.look(frame)
        return mixed.names


def batches(X: Any, y: Any = None, *, size: int = 10_000) -> Batches:
    """Return (X, y) in batches of at most ``size`` samples, reading no more than that at once.

    Parameters
    ----------
    X : array, memory map, frame, `Views`; path of a ``.npy`` file (memory-mapped), of a Parquet or of a CSV file;
        Dask array or frame, whose partitions are computed one after the other; or a function that returns an
        iterator over pairs (X, y), for batches of your own.
    y : targets of the same kind, as many as samples; for a Parquet or CSV file the name of their column. None yields
        (X, None). A column of a CSV file that reads as numbers in some batches and as words in others is read as words:
        a pass more finds it out.
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
        X = _opened(Path(X), y)
    if isinstance(y, str | os.PathLike) and not isinstance(X, Path):
        y = _memory_map(Path(y))
    if not callable(X) and not isinstance(X, Path) and not hasattr(X, "to_delayed"):
        if not hasattr(X, "shape") and not hasattr(X, "__len__"):
            raise TypeError(
                f"There are no batches of {type(X).__name__}; give an array, a frame, Views, a path, a Dask collection "
                "or a function that returns an iterator over pairs (X, y)."
            )
        n = _n_samples(X)
        if y is not None and _n_samples(y) != n:
            raise ValueError(f"X has {n} samples but y has {_n_samples(y)} labels; they must agree.")
        require_labels(X, y)
    return Batches(X, y, int(size))


def _table_batches(X: Any, y: Any, size: int) -> Iterator[tuple[Any, Any]]:
    n = _n_samples(X)
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        yield _safe_indexing(X, rows), None if y is None else np.asarray(_safe_indexing(y, rows))


def _dask_batches(X: Any, y: Any, size: int) -> Iterator[tuple[Any, Any]]:
    if y is not None and not hasattr(y, "to_delayed"):
        raise ValueError(f"The labels of a Dask collection are one too, cut alike; got {type(y).__name__}.")
    Xs = as_partitions(X)
    ys = [None] * len(Xs) if y is None else as_partitions(y)
    if len(Xs) != len(ys):
        raise ValueError(f"X has {len(Xs)} partitions and y has {len(ys)}; they must agree.")
    for samples, labels in zip(Xs, ys, strict=True):
        known = None if labels is None else np.asarray(labels.compute())
        yield from _table_batches(samples.compute(), known, size)


def _file_batches(path: Path, target: Any, size: int, as_text: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    for frame, _ in read_parts(path, size, as_text=as_text):
        yield (frame, None) if target is None else (frame.drop(columns=target), np.asarray(frame[target]))


def _opened(path: Path, y: Any) -> Any:
    """Return a memory map of a .npy file, the path of another that can be read and has the column of targets."""
    if path.suffix.lower() == ".npy" and path.exists():
        return _memory_map(path)
    if path.exists() and path.suffix.lower() not in (*TEXT, *PARQUET):
        raise DataError(
            f"Batches are read from .npy, CSV ({', '.join(TEXT)}) and Parquet ({', '.join(PARQUET)}); got {path}."
        )
    names = column_names_of(path)
    if y is not None and (not isinstance(y, str) or y not in names):
        raise ValueError(
            f"For a file y is the name of the column with the labels, one of {names}; got {y!r}."
        )
    return path


def _memory_map(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r")
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{path} is no array in NumPy's format: {error}") from error


def _n_samples(values: Any) -> int:
    return int(values.shape[0]) if hasattr(values, "shape") else len(values)


def as_partitions(collection: Any) -> list[Any]:
    """Return the partitions of a Dask collection along its samples, as delayed values, or those of a list."""
    if hasattr(collection, "to_delayed"):
        parts = np.asarray(collection.to_delayed(), dtype=object)
        if parts.ndim == 2 and parts.shape[1] > 1:
            raise ValueError(
                f"The Dask array is cut into {parts.shape[1]} pieces along its columns; rechunk it to "
                "X.rechunk({1: -1}), so that every piece holds whole samples."
            )
        return list(parts.ravel())
    if isinstance(collection, list | tuple) and collection:
        return list(collection)
    raise TypeError(
        f"Partitions are a Dask array or frame, or a list of arrays; got {type(collection).__name__}."
    )
