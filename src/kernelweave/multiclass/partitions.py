"""Samples that need not fit into memory: batches for ``partial_fit``, partitions for ``fit_partitions``.

`batches` cuts arrays, memory maps, Parquet files and Dask collections into pieces. `PartitionedData` holds
what is known of all partitions and runs work on them, in this process or on the workers of a Dask cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.features import FittedFeatures
from kernelweave.estimators.validation import check_input, label_column, labels_among
from kernelweave.multiclass.partitioned_ascent import PartitionUpdate, SharedTheta, update_partition
from kernelweave.multiclass.rows import FeatureRows


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
            yield from _parquet_batches(path, y, size)
            return
        X = np.load(path, mmap_mode="r")
    if isinstance(y, str | os.PathLike):
        y = np.load(y, mmap_mode="r")
    if hasattr(X, "to_delayed"):
        yield from _dask_batches(X, y, size)
        return
    n = _n_samples(X)
    if y is not None and _n_samples(y) != n:
        raise ValueError(f"X has {n} samples but y has {_n_samples(y)} labels; they must agree.")
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
        yield from batches(samples.compute(), known, size=size)


def _parquet_batches(path: Path, target: Any, size: int) -> Iterator[tuple[Any, Any]]:
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


@dataclass(frozen=True)
class PartitionReader:
    """Turns samples and labels of any partition into features, class numbers and weights."""

    column_checker: Any  # an estimator that knows the columns, and nothing else
    features: FittedFeatures
    classes: AnyArray
    class_factors: Vector

    def read(self, number: int, X: Any, y: Any) -> tuple[Matrix, AnyArray, Vector]:
        """Return features, class numbers and weights of the samples; errors name the partition."""
        try:
            Phi = self.features.transform(check_input(self.column_checker, X, reset=False))
            FeatureRows(Phi, self.features.offsets).check()
            index = labels_among(y, self.classes, len(Phi)).astype(np.int64)
        except ValueError as error:
            raise ValueError(f"In partition {number}: {error}") from error
        return Phi, index, self.class_factors[index]


class PartitionedData:
    """The partitions of X and y that are not empty, with the classes of all and how often each occurs.

    Work on them runs in this process, which then holds the features of all partitions, or on the workers of a
    Dask cluster, where what a lost worker held is computed again by another.

    Parameters
    ----------
    X, y : Dask collections, or lists of arrays or frames.
    client : client of a Dask cluster, or None.
    """

    def __init__(self, X: Any, y: Any, client: Any = None) -> None:
        self._client = client
        Xs, ys = as_partitions(X), as_partitions(y)
        if len(Xs) != len(ys):
            raise ValueError(
                f"X has {len(Xs)} partitions and y has {len(ys)}; they must agree, sample by sample."
            )
        counts = self._gather(self._map(_count_labels, list(range(len(ys))), ys))
        self.classes, self.class_counts = _all_classes(counts)
        # Partitions of Dask frames may be empty.
        empty = [k for k, (labels, _) in enumerate(counts) if not labels.size]
        for k, n in zip(empty, self._gather(self._map(_n_samples, [Xs[k] for k in empty])), strict=True):
            if n:
                raise ValueError(f"In partition {k}: X has {n} samples but y has 0 labels; they must agree.")
        self._numbers = [k for k in range(len(Xs)) if k not in empty]
        self._Xs, self._ys = [Xs[k] for k in self._numbers], [ys[k] for k in self._numbers]
        self._read: list[Any] = []

    @property
    def n_samples(self) -> int:
        return int(self.class_counts.sum())

    def first(self) -> Any:
        """Return the samples of the first partition."""
        return _computed(self._Xs[0])

    def read(self, reader: PartitionReader) -> list[tuple[AnyArray, Vector]]:
        """Read all partitions and hold them where they are; return their class numbers and weights."""
        self._read = self._map(reader.read, self._numbers, self._Xs, self._ys)
        return self._gather(self._map(_targets_of, self._read))

    def update(self, jobs: list[tuple[Matrix, SharedTheta, list[int]]]) -> list[PartitionUpdate]:
        """Run `update_partition` on every partition, each with its own coefficients, θ and seed."""
        return self._gather(self._map(_update_read, self._read, *map(list, zip(*jobs, strict=True))))

    def _map(self, function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
        """Call the function once per partition; on a cluster, return futures."""
        if not columns[0]:
            return []
        if self._client is None:
            known = ([_computed(value) for value in column] for column in columns)
            return [function(*arguments) for arguments in zip(*known, strict=True)]
        sent = [self._client.compute(c) if hasattr(c[0], "dask") else c for c in columns]
        # A piece of work is tried on other workers when its own is lost, as often as a long fit may need.
        return list(self._client.map(function, *sent, retries=10, pure=False))

    def _gather(self, values: list[Any]) -> list[Any]:
        return values if self._client is None else list(self._client.gather(values))


def _computed(value: Any) -> Any:
    return value.compute() if hasattr(value, "compute") else value


def _count_labels(number: int, y: Any) -> tuple[AnyArray, AnyArray]:
    """Return the distinct labels of a partition, and how often each occurs."""
    try:
        y = label_column(y)
        if y.size:
            check_classification_targets(y)
    except ValueError as error:
        raise ValueError(f"In partition {number}: {error}") from error
    labels, counts = np.unique(y, return_counts=True)
    return labels, counts


def _targets_of(read: tuple[Matrix, AnyArray, Vector]) -> tuple[AnyArray, Vector]:
    return read[1], read[2]


def _update_read(
    read: tuple[Matrix, AnyArray, Vector], A: Matrix, shared: SharedTheta, seed: list[int]
) -> PartitionUpdate:
    return update_partition(*read, A, shared, seed)


def _all_classes(counts: list[tuple[AnyArray, AnyArray]]) -> tuple[AnyArray, Vector]:
    """Return the classes of all partitions, and how often each occurs."""
    filled = [(labels, n) for labels, n in counts if labels.size]
    if len({labels.dtype.kind in "OUS" for labels, _ in filled}) == 2:
        raise ValueError("Some partitions of y hold text and some hold numbers; use one kind of label.")
    classes = np.unique(np.concatenate([labels for labels, _ in filled])) if filled else np.empty(0)
    if classes.size < 2:
        raise ValueError(
            f"The classifier needs samples of at least 2 classes, but y has {classes.size} class only: "
            f"{classes.tolist()}."
        )
    totals = np.zeros(classes.size)
    for labels, n in filled:
        totals[np.searchsorted(classes, labels)] += n
    return classes, totals
