"""The study of estimators on samples in views: C by cross-validation, accuracy and times on test samples."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.impute import KNNImputer
from sklearn.model_selection import StratifiedKFold

from kernelweave._typing import AnyArray, Matrix
from kernelweave.bank import Views
from kernelweave.experiments.common import timed
from kernelweave.experiments.store import Cell
from kernelweave.experiments.study import all_cells, fingerprint, quick_cells


@dataclass(frozen=True)
class ViewSplit:
    """Training and test samples in views; ``corrupted`` marks training entries that were tampered with."""

    X: Views
    y: AnyArray
    X_test: Views
    y_test: AnyArray
    corrupted: AnyArray | None = None


class SplitSource(Protocol):
    """Where the samples come from: one row of the table per task."""

    @property
    def datasets(self) -> Sequence[str]: ...

    @property
    def tasks(self) -> tuple[str, ...]: ...

    def split(self, task: str, split: int, data: str | Path | None) -> ViewSplit: ...


@dataclass(frozen=True)
class ViewMethod:
    """An estimator, and how missing views are handled before it: nothing, drop, mean or knn."""

    estimator: Any
    missing: str = "nothing"


@dataclass(frozen=True)
class ViewComparison:
    """Methods × tasks × splits, C of each chosen by cross-validation on the training samples."""

    name: str
    draw: SplitSource
    methods: Mapping[str, ViewMethod]
    C: tuple[float, ...]
    splits: int
    folds: int = 5
    quick: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        return fingerprint(self.draw, dict(self.methods), self.C, self.folds)

    @property
    def datasets(self) -> Sequence[str]:
        return self.draw.datasets

    def cells(self, quick: bool) -> list[Cell]:
        every = all_cells(dataset=self.draw.tasks, split=range(self.splits), method=self.methods)
        return quick_cells(every, self.quick) if quick else every

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:
        method = self.methods[cell["method"]]
        drawn = self.draw.split(cell["dataset"], cell["split"], data)
        X, y, X_test = handle_missing_views(drawn, method.missing)
        counts = np.unique(y, return_counts=True)[1]
        if len(counts) < 2 or counts.min() < 5:  # too few of a class to learn from, or to cut into folds
            return {"accuracy": float("nan"), "n_train": len(y)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # gaps are recorded; switches that encode the label are a result
            C = self._best_cost(method.estimator, X, y, cell["split"])
            model = clone(method.estimator).set_params(learner__C=C)
            _, seconds = timed(lambda: model.fit(X, y))
            accuracy, predict_seconds = timed(lambda: float(model.score(X_test, drawn.y_test)))
        measures = {
            "accuracy": accuracy,
            "seconds": seconds,
            "predict_seconds": predict_seconds,
            "relative_gap": float(model.duality_gap_),
            "C": C,
            "n_train": len(y),
        }
        if drawn.corrupted is not None and getattr(model, "switches_", None) is not None:
            measures["auc"] = _auc(drawn.corrupted, ~model.switches_)
        return measures

    def _best_cost(self, estimator: Any, X: Views, y: AnyArray, split: int) -> float:
        if len(self.C) == 1:
            return self.C[0]
        folds = list(StratifiedKFold(self.folds, shuffle=True, random_state=split).split(np.zeros(len(y)), y))
        scores = [
            np.mean(
                [
                    clone(estimator).set_params(learner__C=C).fit(X[train], y[train]).score(X[test], y[test])
                    for train, test in folds
                ]
            )
            for C in self.C
        ]
        return self.C[int(np.argmax(scores))]


def handle_missing_views(drawn: ViewSplit, how: str) -> tuple[Views, AnyArray, Views]:
    """Return training samples, their labels and test samples after dropping or imputing what is missing."""
    if how == "nothing":
        return drawn.X, drawn.y, drawn.X_test
    train, test = (np.hstack([X[name] for name in X.names]) for X in (drawn.X, drawn.X_test))
    y = drawn.y
    means = np.nanmean(train, axis=0)
    if how == "knn":
        imputer = KNNImputer(n_neighbors=5).fit(train)
        train, test = imputer.transform(train), imputer.transform(test)
    elif how == "drop":
        complete = ~np.isnan(train).any(axis=1)
        train, y = train[complete], y[complete]
    train, test = (np.where(np.isnan(part), means, part) for part in (train, test))
    return _as_views(train, drawn.X), y, _as_views(test, drawn.X)


def _as_views(table: Matrix, like: Views) -> Views:
    ends = np.cumsum([like[name].shape[1] for name in like.names])
    return Views(dict(zip(like.names, np.split(table, ends[:-1], axis=1), strict=True)))


def _auc(corrupted: AnyArray, off: AnyArray) -> float:
    """Return the AUC of a yes-or-no classifier: the mean of its true positive and true negative rates."""
    return float(0.5 * (off[corrupted].mean() + (~off[~corrupted]).mean()))
