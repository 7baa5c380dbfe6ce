"""The study of privileged features: a classifier with them, with their rows shuffled, and without."""

from __future__ import annotations

import hashlib
import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank import KernelBank
from kernelweave.datasets import load
from kernelweave.estimators import SVMPlusClassifier
from kernelweave.experiments.store import Cell
from kernelweave.kernels import Gaussian, Linear, UnitMean

# What the classifier is given as privileged features.
METHODS = ("SVM", "max-hinge", "SVM+", "SVM+ shuffled", "SVM+ MKL", "SVM+ MKL shuffled")


@dataclass(frozen=True)
class Task:
    """A decision view and a privileged view of a data set, and how many samples a split trains on.

    ``binary`` names how classes become two: "" keeps them, "parity" asks for even against odd. ``units``
    says that the decision view's columns share one, as pixels do, and stay as they are.
    """

    dataset: str
    decision: str
    privileged: str
    n_train: int
    binary: str = ""
    units: bool = False


@dataclass(frozen=True)
class Data:
    """Training candidates with both views, and test samples with one."""

    X: Matrix
    Z: Matrix
    y: AnyArray
    X_test: Matrix | None
    y_test: AnyArray | None


@dataclass(frozen=True)
class PrivilegedStudy:
    """Tasks × random training sets × methods; the parameters by cross-validation inside, on one grid.

    Every method searches the same C; those with privileged features also λ, shuffled or not. Columns are
    standardised on the training samples. Where a data set has no test samples of its own, the samples left
    over are tested. Shuffling is within the training samples, once per split.
    """

    name: str
    tasks: Mapping[str, Task]
    C: tuple[float, ...]
    lam: tuple[float, ...]
    splits: int = 20
    folds: int = 4
    tol: float = 1e-3
    quick_tasks: tuple[str, ...] = ()
    quick_splits: int = 2
    methods: tuple[str, ...] = METHODS

    @property
    def protocol(self) -> str:
        settings = (dict(self.tasks), self.C, self.lam, self.folds, self.tol)
        return hashlib.sha256(repr(settings).encode()).hexdigest()[:12]

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(task.dataset for task in self.tasks.values()))

    def cells(self, quick: bool) -> list[Cell]:
        """Return one cell per task, split and method; quick, a few splits of a few tasks."""
        return [
            {"dataset": task, "split": split, "method": method}
            for split in range(self.quick_splits if quick else self.splits)
            for task in (self.quick_tasks if quick else self.tasks)
            for method in self.methods
        ]

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:
        task, split, method = self.tasks[cell["dataset"]], int(cell["split"]), str(cell["method"])
        seed = [zlib.crc32(cell["dataset"].encode()), split]
        X, Z, y, X_test, y_test = _split(read(task, data), task, seed)
        privileged = _teacher(method, Z, np.random.default_rng([*seed, 1]))
        grid = {"C": self.C} | ({"lam": self.lam} if method.startswith("SVM+") else {})
        folds = StratifiedKFold(self.folds, shuffle=True, random_state=split)
        search = GridSearchCV(_model(method, self.tol), grid, cv=folds, refit=True, error_score="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is recorded
            search.fit(X, y, **({} if privileged is None else {"privileged": privileged}))
        best = search.best_estimator_
        return {
            "accuracy": float(best.score(X_test, y_test)),
            "cv_accuracy": float(search.best_score_),
            "relative_gap": float(best.duality_gap_),
            "support": int(best.support_.size),
            **{name: float(value) for name, value in search.best_params_.items()},
        }


def read(task: Task, data: str | Path | None) -> Data:
    """Return the two views of a task: columns of the file's arrays, or views of it, by name."""
    dataset = load(task.dataset, data)
    views, extra = dataset.X, dataset.extra
    y = np.asarray(dataset.y)

    def view(name: str) -> Matrix:
        return np.asarray(extra[name] if name in extra else views if name == "X" else views[name], float)

    y = y % 2 if task.binary == "parity" else y
    tests = {"X": "X_test", "mrna": "test_mrna", "mirna": "test_mirna"}
    held = extra.get(tests.get(task.decision, ""))
    own = None if held is None else np.asarray(held, float)
    return Data(view(task.decision), view(task.privileged), y, own, None if own is None else extra["y_test"])


def _split(data: Data, task: Task, seed: list[int]) -> tuple[Matrix, Matrix, Vector, Matrix, AnyArray]:
    """Return a stratified random training set, standardised, and what is tested."""
    train = _stratified(data.y, task.n_train, np.random.default_rng(seed))
    rest = np.setdiff1d(np.arange(len(data.y)), train)
    X_test = data.X[rest] if data.X_test is None else data.X_test
    y_test = data.y[rest] if data.y_test is None else data.y_test
    mean = data.X[train].mean(axis=0)
    spread = np.ones_like(mean) if task.units else _spread(data.X[train])
    Z = data.Z[train]
    return (
        (data.X[train] - mean) / spread,
        (Z - Z.mean(axis=0)) / _spread(Z),
        data.y[train],
        (X_test - mean) / spread,
        y_test,
    )


def _stratified(y: AnyArray, count: int, rng: np.random.Generator) -> Indices:
    """Return ``count`` samples, as many of each class as its share says."""
    chosen = []
    for label in np.unique(y):
        members = rng.permutation(np.flatnonzero(y == label))
        chosen.append(members[: round(count * members.size / y.size)])
    return np.sort(np.concatenate(chosen))


def _teacher(method: str, Z: Matrix, rng: np.random.Generator) -> Matrix | None:
    if method == "SVM":
        return None
    if method == "max-hinge":  # a teacher who says the same of everyone
        return np.zeros((len(Z), 1))
    return Z[rng.permutation(len(Z))] if method.endswith("shuffled") else Z


def _model(method: str, tol: float) -> SVMPlusClassifier:
    kernels = [Linear(), Gaussian()] if "MKL" in method else [Linear()]
    return SVMPlusClassifier(
        kernel=Gaussian(), privileged_kernel=KernelBank(kernels, scaling=UnitMean()), tol=tol
    )


def _spread(X: Matrix) -> Vector:
    deviation = X.std(axis=0)
    return np.where(deviation > 0.0, deviation, 1.0)
