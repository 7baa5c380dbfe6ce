"""The study most papers do: methods on data sets, random splits, parameters by inner cross-validation."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.datasets import load, with_noise_features
from kernelweave.estimators import MKLClassifier, MKLClassifierCV
from kernelweave.experiments.common import convergence_warnings_ignored, standardised, timed
from kernelweave.experiments.store import Cell
from kernelweave.experiments.study import all_cells, fingerprint, quick_cells
from kernelweave.geometry import Geometry
from kernelweave.learners import Hinge


@dataclass(frozen=True)
class Method:
    """A geometry, and the parameter of it that is searched beside C."""

    geometry: Geometry
    param: str | None = None
    values: tuple[float, ...] | None = None

    def grid(self, n_kernels: int) -> tuple[float, ...] | None:
        """Return the values to search; those of nu below 1/M stand for 1/M, the simplex."""
        if self.values is None or self.param != "nu":
            return self.values
        return tuple(sorted({max(value, 1.0 / n_kernels) for value in self.values}))


@dataclass(frozen=True)
class DatasetSample:
    """Which data set, how many of its samples a split draws (None: all), and what the paper calls it."""

    dataset: str
    n_samples: int | None = None
    title: str = ""


@dataclass(frozen=True)
class Comparison:
    """Methods × data sets × random splits; C and the method's parameter by cross-validation inside.

    Columns are standardised with the training part's mean and deviation. The final model is fitted to the
    kernels of the training part, given as matrices, and timed by the processor's clock on one thread.
    ``noise`` adds a further axis: columns of noise, as multiples of the number of columns.
    """

    name: str
    samples: tuple[DatasetSample, ...]
    methods: Mapping[str, Method]
    bank: Any
    C: tuple[float, ...]
    splits: int = 10
    train_share: float = 0.7
    folds: int = 5
    tol: float = 1e-3
    noise: tuple[float, ...] = (0.0,)
    quick: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        sizes = {sample.dataset: sample.n_samples for sample in self.samples}
        return fingerprint(
            dict(self.methods), self.bank, self.C, self.train_share, self.folds, self.tol, sizes
        )

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(sample.dataset for sample in self.samples)

    def cells(self, quick: bool) -> list[Cell]:
        """Return one cell per data set, noise level, split and method; quick, those ``quick`` names."""
        every = all_cells(
            dataset=self.datasets, noise=self.noise, split=range(self.splits), method=self.methods
        )
        return quick_cells(every, self.quick) if quick else every

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:
        X, y, train, test = self._split(cell, data)
        X = standardised(X, train)
        method = self.methods[cell["method"]]
        search = self._search(method, X[train], y[train], cell["split"])
        fitted = clone(self.bank).fit(X[train])
        grams = list(fitted.grams())
        model = MKLClassifier("precomputed", learner=Hinge(), geometry=clone(method.geometry), tol=self.tol)
        model.set_params(**search.best_params_)
        with convergence_warnings_ignored():
            _, seconds = timed(lambda: model.fit(grams, y[train]))
        crossed = [K for _, K in sorted(fitted.cross(X[test]), key=lambda pair: pair[0])]
        return {
            "accuracy": float(model.score(crossed, y[test])),
            "kernels": int(np.count_nonzero(model.kernel_weights_)),
            "seconds": seconds,
            "relative_gap": float(model.duality_gap_),
            "machines": int(model.n_iter_),
            "cv_accuracy": float(search.best_score_),
            **{name.partition("__")[2]: float(value) for name, value in search.best_params_.items()},
        }

    def _split(self, cell: Cell, data: str | Path | None) -> tuple[Matrix, Vector, Indices, Indices]:
        """Return the samples and a random split of them, the same for every method and noise level."""
        dataset = load(cell["dataset"], data)
        wanted = next(sample for sample in self.samples if sample.dataset == cell["dataset"]).n_samples
        seed = [zlib.crc32(cell["dataset"].encode()), cell["split"]]
        order = np.random.default_rng(seed).permutation(len(dataset.y))[:wanted]
        X, y = dataset.X[order], dataset.y[order]
        if cell["noise"]:
            X = with_noise_features(X, cell["noise"], np.random.RandomState(seed[0] % 2**31 + cell["split"]))
        n_train = round(self.train_share * len(y))
        return X, y, np.arange(n_train), np.arange(n_train, len(y))

    def _search(self, method: Method, X: Matrix, y: Vector, split: int) -> MKLClassifierCV:
        n_kernels = len(clone(self.bank).fit(X))
        search = MKLClassifierCV(
            clone(self.bank),
            learner=Hinge(),
            geometry=clone(method.geometry),
            learner_values=self.C,
            geometry_param=method.param,
            geometry_values=method.grid(n_kernels),
            cv=StratifiedKFold(self.folds, shuffle=True, random_state=split),
            tol=self.tol,
            refit=False,
        )
        with convergence_warnings_ignored():
            return search.fit(X, y)
