"""Training on partitions: in this process, or on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.features import FittedFeatures
from kernelweave.estimators.inputs import as_bank, check_input
from kernelweave.estimators.targets import class_factors, label_column, labels_among
from kernelweave.gram.memory import require_room
from kernelweave.multiclass.batches import partitions
from kernelweave.multiclass.partitioned import Partitioned, Piece, solve_partitioned, work
from kernelweave.multiclass.segments import segment_sums
from kernelweave.multiclass.stream import require_lengths
from kernelweave.solvers.problem import Progress

# How often a piece of work is tried elsewhere when its worker is lost.
RETRIES = 10

Prepared = tuple[Matrix, AnyArray, Vector]


@dataclass(frozen=True)
class Made:
    """What turns samples and labels of any partition into features, classes by number and weights."""

    columns: Any  # an estimator that knows the columns, and nothing else
    features: FittedFeatures
    classes: AnyArray
    factors: Vector


def prepared(number: int, X: Any, y: Any, made: Made) -> Prepared:
    """Return the features, the classes by number and the weights of one partition."""
    try:
        Phi = made.features.transform(check_input(made.columns, X, reset=False))
        if not np.isfinite(Phi).all():
            raise ValueError("The features of a sample are not finite; standardise the columns.")
        index = labels_among(y, made.classes, len(Phi)).astype(np.int64)
        require_lengths(segment_sums(Phi * Phi, made.features.offsets, axis=1).T)
    except ValueError as error:
        raise ValueError(f"In partition {number}: {error}") from error
    return Phi, index, made.factors[index]


def labels_of(number: int, y: Any) -> tuple[AnyArray, AnyArray]:
    """Return the distinct labels of a partition, and how many it has of each."""
    try:
        y = label_column(y)
        if y.size:
            check_classification_targets(y)
    except ValueError as error:
        raise ValueError(f"In partition {number}: {error}") from error
    labels, counts = np.unique(y, return_counts=True)
    return labels, counts


def rows_in(X: Any) -> int:
    """Return the number of samples in a partition."""
    return len(X) if isinstance(X, list | tuple) else int(X.shape[0])


def targets_of(part: Prepared) -> tuple[AnyArray, Vector]:
    """Return the classes by number and the weights of a prepared partition."""
    return part[1], part[2]


def ascend(part: Prepared, A: Matrix, shared: Any, seed: list[int]) -> Piece:
    """Do one round of work on a prepared partition."""
    Phi, y, weight = part
    return work(Phi, y, weight, A, shared, seed)


def fit_on_partitions(
    model: Any, X: Any, y: Any, client: Any, max_rounds: int, tol: float, progress: Progress | None
) -> tuple[FittedFeatures, Partitioned]:
    """Train the model on partitions and return what it learnt; sets its classes, columns and bank."""
    Xs, ys = as_partitions(X), as_partitions(y)
    if len(Xs) != len(ys):
        raise ValueError(
            f"X has {len(Xs)} partitions and y has {len(ys)}; they must agree, sample by sample."
        )
    run = Here() if client is None else OnCluster(client)
    found = run.gather(run.map(labels_of, list(range(len(ys))), ys))
    model.classes_, seen = _classes(found)
    kept = _with_samples(run, Xs, found)
    Xs, ys = [Xs[k] for k in kept], [ys[k] for k in kept]
    factors = class_factors(model.class_weight, model.classes_, seen)
    first = Xs[0].compute() if hasattr(Xs[0], "compute") else Xs[0]
    first = check_input(model, first, reset=True)
    model.bank_ = as_bank(model.bank).fit(first)
    rng = model._generator()
    maps = model.features.fit(model.bank_, first, rng)
    if client is None:
        n, D = int(seen.sum()), int(maps.offsets[-1])
        advice = "raise memory_limit, use fewer features, or a client"
        require_room(8 * n * D, model.memory_limit, f"{D} features of {n} samples in all partitions", advice)
    made = Made(_columns_of(model), maps, model.classes_, factors)
    parts = run.map(prepared, kept, Xs, ys, [made] * len(Xs))

    targets = run.gather(run.map(targets_of, parts))

    def call(jobs: list[tuple[Matrix, Any, list[int]]]) -> list[Piece]:
        return run.gather(run.map(ascend, parts, *map(list, zip(*jobs, strict=True))))

    solved = solve_partitioned(
        targets,
        model.classes_.size,
        maps.offsets,
        1.0 / (float(model.C) * sum(len(index) for index, _ in targets)),
        float(model.p),
        call,
        tol=tol,
        max_rounds=max_rounds,
        seed=int(rng.integers(2**31)),
        progress=progress,
    )
    return maps, solved


def _classes(found: list[tuple[AnyArray, AnyArray]]) -> tuple[AnyArray, Vector]:
    """Return the classes of all partitions, and how often each was seen."""
    filled = [(labels, counts) for labels, counts in found if labels.size]
    if len({labels.dtype.kind in "OUS" for labels, _ in filled}) == 2:
        raise ValueError("Some partitions of y hold text and some hold numbers; use one kind of label.")
    classes = np.unique(np.concatenate([labels for labels, _ in filled])) if filled else np.empty(0)
    if classes.size < 2:
        raise ValueError(
            f"The classifier needs samples of at least 2 classes, but y has {classes.size} class only: "
            f"{classes.tolist()}."
        )
    seen = np.zeros(classes.size)
    for labels, counts in filled:
        seen[np.searchsorted(classes, labels)] += counts
    return classes, seen


def _with_samples(run: Any, Xs: list[Any], found: list[tuple[AnyArray, AnyArray]]) -> list[int]:
    """Return which partitions are not empty, which those of Dask frames may be."""
    empty = [k for k, (labels, _) in enumerate(found) if not labels.size]
    counts = run.gather(run.map(rows_in, [Xs[k] for k in empty])) if empty else []
    for k, count in zip(empty, counts, strict=True):
        if count:
            raise ValueError(f"In partition {k}: X has {count} samples but y has 0 labels; they must agree.")
    return [k for k in range(len(Xs)) if k not in empty]


def _columns_of(model: Any) -> Any:
    """Return an estimator of the same bank that knows the columns of the first partition."""
    known = type(model)(bank=model.bank)
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(known, name, getattr(model, name))
    return known


def as_partitions(collection: Any) -> list[Any]:
    """Return the parts of a Dask collection, or those of a list."""
    if hasattr(collection, "to_delayed"):
        return partitions(collection)
    if isinstance(collection, list | tuple) and collection:
        return list(collection)
    raise TypeError(
        f"Partitions are a Dask array or frame, or a list of arrays; got {type(collection).__name__}."
    )


class Here:
    """Runs the work in this process, and holds the features of all partitions."""

    def map(self, function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
        return [function(*arguments) for arguments in zip(*map(self._known, columns), strict=True)]

    def gather(self, values: list[Any]) -> list[Any]:
        return values

    @staticmethod
    def _known(column: list[Any]) -> list[Any]:
        return [value.compute() if hasattr(value, "compute") else value for value in column]


class OnCluster:
    """Runs the work on a Dask cluster; what a lost worker held is made again by another."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def map(self, function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
        known = [self._client.compute(c) if hasattr(c[0], "dask") else c for c in columns]
        return list(self._client.map(function, *known, retries=RETRIES, pure=False))

    def gather(self, values: list[Any]) -> list[Any]:
        return list(self._client.gather(values))
