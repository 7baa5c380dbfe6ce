"""Partitions for ``fit_partitions``: what is known of all of them, and work on them.

It runs in this process or on the workers of a Dask cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.features import FittedFeatures
from kernelweave.estimators.validation import check_input, label_column, labels_among, require_classes
from kernelweave.multiclass.partitioned_ascent import PartitionUpdate, SharedTheta, update_partition
from kernelweave.multiclass.rows import FeatureRows
from kernelweave.views.batches import as_partitions


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
        for k, n in zip(empty, self._gather(self._map(_count, [Xs[k] for k in empty])), strict=True):
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
            require_classes(y)
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


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
