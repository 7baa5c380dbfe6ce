"""Methods that weigh the kernels first beside learnt and even weights, on scikit-learn's own data."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from kernelweave import presets
from kernelweave._typing import AnyArray, Matrix
from kernelweave.bank import KernelBank, Views
from kernelweave.experiments.common import convergence_warnings_ignored
from kernelweave.experiments.store import Cell
from kernelweave.experiments.study import Experiment, all_cells, fingerprint
from kernelweave.experiments.views import Scores
from kernelweave.kernels import Gaussian, Linear

VIEWS: Mapping[str, tuple[Callable[..., Any], Mapping[str, list[int]]]] = {
    "breast cancer": (
        load_breast_cancer,
        {"mean": [*range(10)], "error": [*range(10, 20)], "worst": [*range(20, 30)]},
    ),
    "wine": (load_wine, {"acids": [1, 2, 3], "colour": [9, 10, 11], "rest": [0, 4, 5, 6, 7, 8, 12]}),
}
COSTS = {"learner__C": [0.1, 1.0, 10.0, 100.0]}
METHODS: Mapping[str, tuple[Callable[..., Any], Mapping[str, list[float]]]] = {
    "AveKernel": (presets.average_kernel, COSTS),
    "SimpleMKL": (presets.simple_mkl, COSTS),
    "L2MKL": (presets.l2_mkl, COSTS),
    "ALIGNF": (presets.alignf, COSTS),
    "align": (presets.align, COSTS),
    "KTA": (presets.kta, COSTS),
    "EasyMKL": (presets.easy_mkl, {"lam": [0.01, 0.1, 0.5, 0.9]}),
    "FHeuristic": (presets.f_heuristic, COSTS),
    "PWMK": (presets.pwmk, COSTS),
    "LP-β": (presets.lp_beta, COSTS),
}
# The others weigh the kernels for all classes at once.
WEIGHTS_PER_CLASS = ("AveKernel", "SimpleMKL", "L2MKL")


@dataclass(frozen=True)
class BaselinesStudy:
    """Methods × data sets, with and without views of noise × random splits; one parameter tuned inside.

    Columns are standardised with the training part's mean and deviation.
    """

    name: str = "baselines"
    splits: int = 20
    n_train: int = 100
    folds: int = 3
    tol: float = 1e-3

    @property
    def protocol(self) -> str:
        methods = {name: (make.__name__, grid) for name, (make, grid) in METHODS.items()}
        groups = {name: columns for name, (_, columns) in VIEWS.items()}
        return fingerprint((methods, groups, self._bank()), self.n_train, self.folds, self.tol)

    @property
    def datasets(self) -> tuple[str, ...]:
        return ()

    def cells(self, quick: bool) -> list[Cell]:
        datasets = [f"{name}{noise}" for name in VIEWS for noise in ("", ", noise")]
        return all_cells(dataset=datasets, split=range(2 if quick else self.splits), method=METHODS)

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:  # noqa: ARG002 - none is read
        dataset, _, noise = cell["dataset"].partition(", ")
        views, y = self._views(dataset, bool(noise), cell["split"])
        train, test = self._split(dataset, y, cell["split"])
        scaled = {name: StandardScaler().fit(X[train]).transform(X) for name, X in views.items()}
        make, grid = METHODS[cell["method"]]
        folds = StratifiedKFold(self.folds, shuffle=True, random_state=cell["split"])
        params = {"multiclass": "per_class"} if cell["method"] in WEIGHTS_PER_CLASS else {}
        search = GridSearchCV(make(self._bank(), tol=self.tol, **params), dict(grid), cv=folds)
        with convergence_warnings_ignored():
            search.fit(Views(scaled)[train], y[train])
        model = search.best_estimator_
        eta = np.atleast_2d(model.kernel_weights_).mean(axis=0)
        real = np.array([not name.startswith("noise") for name in model.kernel_names_])
        return {
            "accuracy": float(model.score(Views(scaled)[test], y[test])),
            "weight_on_noise": float(eta[~real].sum() / eta.sum()),
            "relative_gap": float(model.duality_gap_),
            "cv_accuracy": float(search.best_score_),
        }

    def _bank(self) -> Any:
        return KernelBank.per_view([Gaussian(), Gaussian(scale=4.0), Linear()])

    def _views(self, dataset: str, noise: bool, split: int) -> tuple[dict[str, Matrix], AnyArray]:
        """Return the views and labels; with noise as many views again of random numbers."""
        read, groups = VIEWS[dataset]
        X, y = read(return_X_y=True)
        views = {name: X[:, columns] for name, columns in groups.items()}
        if noise:
            rng = np.random.default_rng([zlib.crc32(dataset.encode()), split])
            views |= {f"noise {name}": rng.normal(size=table.shape) for name, table in views.items()}
        return views, y

    def _split(self, dataset: str, y: AnyArray, split: int) -> tuple[AnyArray, AnyArray]:
        seed = (zlib.crc32(dataset.encode()) + split) % 2**31
        train, test = train_test_split(
            np.arange(y.size), train_size=self.n_train, stratify=y, random_state=seed
        )
        return train, test


STUDY = BaselinesStudy()
TITLES = {cell["dataset"]: cell["dataset"].capitalize() for cell in STUDY.cells(quick=True)}
EXPERIMENTS = (
    Experiment(
        id="baselines",
        title="Weights first, then the machine: alignment, EasyMKL, heuristics and LP-β",
        source="no paper; the methods of [Cortes12], [Aiolli15], [Qiu09], [Tanabe08], [Gehler09]",
        study=STUDY,
        views=(
            Scores("accuracy", TITLES, tuple(METHODS), {}, baseline="AveKernel", test_share=0.5),
            Scores("weight_on_noise", TITLES, tuple(METHODS), {}, baseline="AveKernel", test_share=0.5),
        ),
        differences=(
            "100 training samples, the rest for testing; three kernels on each of three views, and with "
            "noise on three further views of standard Gaussian numbers.",
            "One parameter per method is tuned (C, or λ for EasyMKL); ν of LP-β is 0.5 and δ of PWMK 0.4.",
        ),
    ),
)
