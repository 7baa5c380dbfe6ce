"""Training on partitions: in this process, or on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.features import FittedFeatures
from kernelweave.estimators.batches import partitions
from kernelweave.estimators.inputs import as_bank, check_input
from kernelweave.estimators.targets import class_factors
from kernelweave.solvers.pnorm.partitioned import Piece, solve_partitioned, work

# How often a piece of work is tried elsewhere when its worker is lost.
RETRIES = 10

Prepared = tuple[Matrix, AnyArray, Vector]


def prepared(X: Any, y: Any, features: FittedFeatures, classes: AnyArray, factors: Vector) -> Prepared:
    """Return the features, the classes by number and the weights of one partition."""
    index = np.searchsorted(classes, np.asarray(y)).astype(np.int64)
    return features.transform(X), index, factors[index]


def labels_of(y: Any) -> tuple[AnyArray, AnyArray]:
    """Return the distinct labels of a partition, and how many it has of each."""
    labels, counts = np.unique(np.asarray(y), return_counts=True)
    return labels, counts


def ascend(part: Prepared, A: Matrix, shared: Any, seed: list[int]) -> Piece:
    """Do one round of work on a prepared partition."""
    Phi, y, weight = part
    return work(Phi, y, weight, A, shared, seed)


def fit_on_partitions(model: Any, X: Any, y: Any, client: Any, max_rounds: int) -> Any:
    """Train the model on partitions and return what it learnt: maps, θ, weights, bounds."""
    Xs, ys = as_partitions(X), as_partitions(y)
    if len(Xs) != len(ys):
        raise ValueError(
            f"X has {len(Xs)} partitions and y has {len(ys)}; they must agree, sample by sample."
        )
    run = Here() if client is None else OnCluster(client)
    found = run.gather(run.map(labels_of, ys))
    model.classes_ = np.unique(np.concatenate([labels for labels, _ in found]))
    if model.classes_.size < 2:
        raise ValueError(
            f"The classifier needs samples of at least 2 classes, but y has 1 class only: "
            f"{model.classes_.tolist()}."
        )
    sizes = [int(counts.sum()) for _, counts in found]
    seen = np.zeros(model.classes_.size)
    for labels, counts in found:
        seen[np.searchsorted(model.classes_, labels)] += counts
    factors = class_factors(model.class_weight, model.classes_, seen)
    first = Xs[0].compute() if hasattr(Xs[0], "compute") else Xs[0]
    first = check_input(model, first, reset=True)
    model.bank_ = as_bank(model.bank).fit(first)
    rng = model._generator()
    maps = model.features.fit(model.bank_, first, rng)
    same = [(maps, model.classes_, factors)] * len(Xs)
    parts = run.map(prepared, Xs, ys, *map(list, zip(*same, strict=True)))

    def call(jobs: list[tuple[Matrix, Any, list[int]]]) -> list[Piece]:
        return run.gather(run.map(ascend, parts, *map(list, zip(*jobs, strict=True))))

    solved = solve_partitioned(
        sizes,
        model.classes_.size,
        maps.offsets,
        1.0 / (float(model.C) * sum(sizes)),
        float(model.p),
        float(seen @ factors),
        call,
        tol=getattr(model.part("solver"), "tol", 1e-3),
        max_rounds=max_rounds,
        seed=int(rng.integers(2**31)),
    )
    return maps, *solved


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
    """Runs the work in this process, partition by partition."""

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
