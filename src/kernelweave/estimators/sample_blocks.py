"""Samples in blocks for fits on features: of a table in memory, of batches that are read, or on a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from importlib import import_module
from operator import add
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.estimators.validation import check_input, label_column, labels_among, real_targets, signs
from kernelweave.solvers.feature_problem import SampleBlock
from kernelweave.views.batches import Batches, as_partitions
from kernelweave.views.views import Views


class Nothing:
    """The sum over no blocks at all: partitions may be empty."""

    def __add__(self, other: Any) -> Any:
        return other

    def __radd__(self, other: Any) -> Any:
        return other


NOTHING = Nothing()
# Samples of a block: their features stay in cache, and there is enough to do between two sums.
ROWS = 4096


@dataclass(frozen=True)
class TargetCode:
    """How targets become columns: ±1 for classes, with a price for each class, or numbers as they are."""

    classes: AnyArray | None
    class_factors: Vector | None = None
    columns: Indices | None = None  # those of one problem; None: all

    def encode(self, y: Any, n_samples: int) -> tuple[Matrix, Vector]:
        """Return the columns of targets and the weights of the samples."""
        weight = np.ones(n_samples)
        if self.classes is None:
            Y = real_targets(y, n_samples)
        else:
            index = labels_among(y, self.classes, n_samples)
            Y = signs(index, self.classes.size)
            weight = weight if self.class_factors is None else self.class_factors[index]
        return (Y if self.columns is None else np.ascontiguousarray(Y[:, self.columns])), weight


@dataclass(frozen=True)
class TableBlocks:
    """Samples in memory, or in a memory map, that are cut into blocks."""

    X: Any = field(repr=False)
    Y: Matrix = field(repr=False)
    weight: Vector = field(repr=False)
    n_threads: int = 1
    seed: int = 0

    @property
    def n_samples(self) -> int:
        return int(self.Y.shape[0])

    @property
    def n_targets(self) -> int:
        return int(self.Y.shape[1])

    def add_up(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return added_up(self._blocks(), work, arguments, self.n_threads)

    def sample(self, size: int) -> TableBlocks | None:
        if size > self.n_samples // 2:
            return None
        rows = np.sort(np.random.default_rng(self.seed).choice(self.n_samples, size, replace=False))
        weight = self.weight[rows] * (self.n_samples / size)
        return replace(self, X=_safe_indexing(self.X, rows), Y=self.Y[rows], weight=weight)

    def with_columns(self, columns: Indices) -> TableBlocks:
        """Return the same samples with some of their targets."""
        return replace(self, Y=np.ascontiguousarray(self.Y[:, columns]))

    def _blocks(self) -> Iterator[SampleBlock]:
        for start in range(0, self.n_samples, ROWS):
            rows = slice(start, min(start + ROWS, self.n_samples))
            yield SampleBlock(_safe_indexing(self.X, rows), self.Y[rows], self.weight[rows])


@dataclass(frozen=True)
class BatchBlocks:
    """Samples that are read again for every pass; a sample of them is held."""

    batches: Batches
    code: TargetCode
    n_samples: int
    column_checker: Any = field(repr=False)  # an estimator that knows the columns
    held: TableBlocks = field(repr=False)
    n_threads: int = 1

    @property
    def n_targets(self) -> int:
        return self.held.n_targets

    def add_up(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return added_up(self._blocks(), work, arguments, self.n_threads)

    def sample(self, size: int) -> TableBlocks | None:
        return held_sample(self.held, size, self.n_samples)

    def with_columns(self, columns: Indices) -> BatchBlocks:
        """Return the same samples with some of their targets."""
        code = replace(self.code, columns=columns)
        return replace(self, code=code, held=self.held.with_columns(columns))

    def _blocks(self) -> Iterator[SampleBlock]:
        n_read = 0
        for number, (X, y) in enumerate(self.batches):
            yield from read_blocks(number, X, y, self.column_checker, self.code)
            n_read += int(X.shape[0])
        if n_read != self.n_samples:
            raise ValueError(
                f"The batches held {self.n_samples} samples when they were first read and {n_read} now; they must "
                "not change during a fit."
            )


def held_sample(held: TableBlocks, size: int, n_samples: int) -> TableBlocks | None:
    """Return a sample of the samples that are held, which stand for all; None if they are too few for that."""
    if size > held.n_samples or size > n_samples // 2:
        return None
    part = held.sample(size) or held
    return replace(part, weight=part.weight * (n_samples / held.n_samples))


def read_blocks(number: int, X: Any, y: Any, column_checker: Any, code: TargetCode) -> Iterator[SampleBlock]:
    """Yield the blocks of one batch; errors name the batch."""
    try:
        X = check_input(column_checker, X, reset=False)
        Y, weight = code.encode(y, int(X.shape[0]))
    except (ValueError, TypeError) as error:
        raise type(error)(f"In batch {number}: {error}") from error
    for start in range(0, len(Y), ROWS):
        rows = slice(start, min(start + ROWS, len(Y)))
        yield SampleBlock(_safe_indexing(X, rows), Y[rows], weight[rows], f"In batch {number}: ")


# Seconds to wait for a sum before asking whether the cluster still lives, and how often it may have no worker then.
PATIENCE = 10.0
MOST_EMPTY = 6


@dataclass(frozen=True)
class ClusterBlocks:
    """Samples in partitions of a Dask collection; passes run where they are, and only sums travel.

    A worker that is lost takes its partitions with it: they are computed again elsewhere, from the collection.
    """

    client: Any = field(repr=False)
    partitions: list[Any] = field(repr=False)  # futures of lists of blocks
    n_samples: int
    held: TableBlocks = field(repr=False)
    # What the last pass was told: what is the same for the next, as all features are, is not sent again.
    _sent: list[tuple[Any, Any]] = field(default_factory=list, repr=False)

    @property
    def n_targets(self) -> int:
        return self.held.n_targets

    def add_up(self, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            told = self._send(arguments)
            parts = [self._submit(_partition_sum, one, work, *told) for one in self.partitions]
            while len(parts) > 1:  # always the same pairs, so that digits do not depend on who is first
                pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
                parts = [pair[0] if len(pair) == 1 else self._submit(add, *pair) for pair in pairs]
            return self._result(parts[0])
        except (OSError, TimeoutError, CancelledError) as error:
            raise ConnectionError(
                "The Dask cluster is gone: its scheduler does not answer, or it has no worker left; start it again "
                "and fit once more."
            ) from error

    def _send(self, arguments: tuple[Any, ...]) -> list[Any]:
        """Return futures of the arguments.

        They are results of tasks: scattered data would be lost for good with the workers that have them.
        """
        known = {id(value): future for value, future in self._sent}
        told = [known.get(id(value)) or self._submit(_itself, value) for value in arguments]
        self._sent[:] = zip(arguments, told, strict=True)
        return told

    def _result(self, future: Any) -> Any:
        """Return the result; waiting for it ends when the scheduler is lost, or all workers are."""
        n_empty = 0
        while True:
            try:
                return future.result(timeout=PATIENCE)
            except TimeoutError:
                if future.status == "error" or self.client.status != "running":
                    raise
                workers = self.client.scheduler_info()["workers"]  # raises where nobody answers
                n_empty = 0 if workers else n_empty + 1
                if n_empty >= MOST_EMPTY:
                    raise

    def sample(self, size: int) -> TableBlocks | None:
        return held_sample(self.held, size, self.n_samples)

    def with_columns(self, columns: Indices) -> ClusterBlocks:
        """Return the same samples with some of their targets."""
        parts = [self._submit(_with_columns, one, columns) for one in self.partitions]
        return replace(self, partitions=parts, held=self.held.with_columns(columns))

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        # Work is tried on other workers when its own is lost, as often as a long fit may need.
        return self.client.submit(function, *arguments, pure=False, retries=10)


def current_client() -> Any | None:
    """Return the client of the Dask cluster this process works with, if there is one."""
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def on_cluster(
    client: Any, X: Any, y: Any, code: TargetCode, column_checker: Any, n_samples: int, held: TableBlocks
) -> ClusterBlocks:
    """Return the partitions of Dask collections as blocks that stay where they are."""
    Xs, ys = as_partitions(X), as_partitions(y)
    parts = [
        client.submit(
            _read_partition, number, *client.compute([rows, targets]), column_checker, code, retries=10
        )
        for number, (rows, targets) in enumerate(zip(Xs, ys, strict=True))
    ]
    return ClusterBlocks(client, parts, n_samples, held)


def _read_partition(number: int, X: Any, y: Any, column_checker: Any, code: TargetCode) -> list[SampleBlock]:
    return list(read_blocks(number, X, np.asarray(y), column_checker, code)) if len(X) else []


def _itself(value: Any) -> Any:
    return value


def _partition_sum(blocks: list[SampleBlock], work: Callable[..., Any], *arguments: Any) -> Any:
    with blas_threads(1):
        return reduce(add, (_named(work, block, *arguments) for block in blocks), NOTHING)


def _with_columns(blocks: list[SampleBlock], columns: Indices) -> list[SampleBlock]:
    return [block._replace(Y=np.ascontiguousarray(block.Y[:, columns])) for block in blocks]


def _named(work: Callable[..., Any], block: SampleBlock, *arguments: Any) -> Any:
    """Return what the work makes of a block; errors say where the block comes from."""
    try:
        return work(block, *arguments)
    except (ValueError, TypeError) as error:
        if not block.origin:
            raise
        raise ValueError(f"{block.origin}{error}") from error


def added_up(
    blocks: Iterator[SampleBlock], work: Callable[..., Any], arguments: tuple[Any, ...], n_threads: int
) -> Any:
    """Return the sum of the work over blocks, added in their order: threads do not change a digit."""
    total, waiting = None, deque[Future[Any]]()
    with ThreadPoolExecutor(max(1, n_threads)) as pool, blas_threads(1):
        for block in blocks:
            waiting.append(pool.submit(_named, work, block, *arguments))
            if len(waiting) > 2 * n_threads:  # a few ahead, so that no thread waits and little is held
                done = waiting.popleft().result()
                total = done if total is None else total + done
        for one in waiting:
            total = one.result() if total is None else total + one.result()
    return total


# ------------------------------------------------------------------------- what has to be known beforehand


@dataclass
class Survey:
    """What one look at all samples finds out: how many there are, which classes, and some of them at random.

    The sample is a reservoir: every sample that comes by has the same chance to be in it at the end.
    """

    size: int
    rng: np.random.Generator
    n_samples: int = 0
    labels: dict[Any, int] = field(default_factory=dict)
    _rows: list[Any] = field(default_factory=list)
    _targets: list[AnyArray] = field(default_factory=list)
    _places: list[Indices] = field(default_factory=list)

    def look(self, X: Any, y: Any, *, classes: bool) -> None:
        """Take a batch into account."""
        n = int(X.shape[0])
        if y is None:
            raise ValueError("The batches have no targets: name their column, or give y.")
        y = np.asarray(y)
        if len(y) != n:
            raise ValueError(f"X has {n} samples but y has {len(y)} labels; they must agree.")
        if classes:
            for label, count in zip(*np.unique(label_column(y), return_counts=True), strict=True):
                self.labels[label] = self.labels.get(label, 0) + int(count)
        number = np.arange(self.n_samples, self.n_samples + n)
        # Sample i takes a random place among i + 1: that is one of the reservoir with chance size / (i + 1).
        place = np.where(number < self.size, number, self.rng.integers(0, number + 1))
        taken = np.flatnonzero(place < self.size)
        if taken.size:
            self._rows.append(_safe_indexing(X, taken))
            self._targets.append(y[taken])
            self._places.append(place[taken])
        self.n_samples += n

    def sample(self) -> tuple[Any, AnyArray]:
        """Return the sample and its targets; a place that was taken several times has its last holder."""
        places = np.concatenate(self._places)
        _, last = np.unique(places[::-1], return_index=True)
        kept = np.sort(places.size - 1 - last)
        return _safe_indexing(_stacked(self._rows), kept), np.concatenate(self._targets)[kept]


def _stacked(tables: list[Any]) -> Any:
    """Return tables of the same columns, one below the other."""
    first = tables[0]
    if isinstance(first, Views):
        return Views({name: _stacked([views[name] for views in tables]) for name in first.names})
    if hasattr(first, "columns"):
        library = type(first).__module__.partition(".")[0]
        if library == "polars":
            return import_module("polars").concat(tables)
        return import_module("pandas").concat(tables, ignore_index=True)
    return sparse.vstack(tables, format="csr") if sparse.issparse(first) else np.concatenate(tables)
