"""The study of metrics with privileged information: verify pairs of new samples by the visible view alone."""

from __future__ import annotations

import hashlib
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave._typing import AnyArray, Matrix
from kernelweave.datasets import load
from kernelweave.evaluation import pair_average_precision, pair_roc_auc
from kernelweave.experiments.experiment import chosen
from kernelweave.experiments.store import Cell
from kernelweave.metric import ITML, ITMLPlus, ITMLSelect
from kernelweave.metric.supervised import pairs_from_labels


@dataclass(frozen=True)
class TwoViews:
    """Which data set, which of its views is seen at test time, and which at training time only."""

    dataset: str
    visible: str
    hidden: str
    title: str = ""


@dataclass(frozen=True)
class Candidates:
    """A learner of pairs and the parameters it is searched over; ``shuffled`` is the control."""

    learner: Any
    grid: Mapping[str, Sequence[float]] = field(default_factory=dict)
    shuffled: bool = False

    def models(self) -> list[Any]:
        return [
            type(self.learner)(**self.learner.get_params() | dict(zip(self.grid, values, strict=True)))
            for values in product(*self.grid.values())
        ]


@dataclass(frozen=True)
class Verification:
    """Methods × two-view data × random splits × shares of pairs with privileged features.

    A split draws training and test samples; pairs are drawn inside each. Columns are standardised and reduced
    to ``dim`` principal components with the statistics of the training part. Parameters are chosen by the
    average precision on pairs of the last quarter of the training samples, which the candidates do not see.
    """

    name: str
    samples: tuple[TwoViews, ...]
    methods: Mapping[str, Candidates]
    shares: tuple[float, ...] = (1.0,)
    splits: int = 5
    train_share: float = 0.6
    n_pairs: int = 1000
    dim: int = 40
    tol: float = 1e-3
    quick: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        settings = (dict(self.methods), self.train_share, self.n_pairs, self.dim, self.tol, self.samples)
        return hashlib.sha256(repr(settings).encode()).hexdigest()[:12]

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(sample.dataset for sample in self.samples)

    def cells(self, quick: bool) -> list[Cell]:
        """Return one cell per data set, share, split and method; quick, those ``quick`` names."""
        every: list[Cell] = [
            {"dataset": sample.dataset, "share": share, "split": split, "method": method}
            for sample in self.samples
            for share in self.shares
            for split in range(self.splits)
            for method in self.methods
        ]
        return chosen(every, self.quick) if quick else every

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:
        rng = np.random.RandomState(zlib.crc32(cell["dataset"].encode()) % 2**31 + cell["split"])
        X, Z, y, X_test, y_test = self._split(cell, data, rng)
        n_fit = round(0.75 * len(y))
        fit, check = slice(0, n_fit), slice(n_fit, None)
        method = self.methods[cell["method"]]
        models = method.models()
        tried = [self._scores(m, cell, (X[fit], Z[fit], y[fit]), (X[check], y[check])) for m in models]
        best = int(np.argmax([scores["average_precision"] for scores in tried]))
        found = self._scores(models[best], cell, (X, Z, y), (X_test, y_test))
        chosen = {name: float(models[best].get_params()[name]) for name in method.grid}
        return found | {"validation": tried[best]["average_precision"]} | chosen

    def _split(self, cell: Cell, data: str | Path | None, rng: Any) -> tuple[AnyArray, ...]:
        dataset = load(cell["dataset"], data)
        views = next(sample for sample in self.samples if sample.dataset == cell["dataset"])
        X, Z = (view(dataset, name) for name in (views.visible, views.hidden))
        y = np.asarray(dataset.y)
        order = rng.permutation(len(y))
        n_train = round(self.train_share * len(y))
        train, test = order[:n_train], order[n_train:]
        visible, hidden = (self._reduced(A[train]) for A in (X, Z))
        return (
            visible.transform(X[train]),
            hidden.transform(Z[train]),
            y[train],
            visible.transform(X[test]),
            y[test],
        )

    def _reduced(self, A: Matrix) -> Any:
        n_components = min(self.dim, A.shape[1], len(A) // 3)
        return make_pipeline(StandardScaler(), PCA(n_components, whiten=False, random_state=0)).fit(A)

    def _scores(
        self, model: Any, cell: Cell, train: tuple[AnyArray, ...], test: tuple[AnyArray, ...]
    ) -> dict[str, float]:
        """Fit on pairs of the training samples and score those of the test samples, the same for all."""
        (X, Z, y), (X_test, y_test) = train, test
        ends, signs = pairs_from_labels(y, self.n_pairs, 0.3, random_state=cell["split"])
        ends_test, signs_test = pairs_from_labels(y_test, 2 * self.n_pairs, 0.3, random_state=cell["split"])
        rng = np.random.RandomState(cell["split"])
        hidden = Z[ends]
        if self.methods[cell["method"]].shuffled:
            hidden = hidden[rng.permutation(len(ends))]
        known = np.random.RandomState(cell["split"]).permutation(len(ends)) < cell["share"] * len(ends)
        hidden[~known] = np.nan
        model.set_params(preprocessor=X, tol=self.tol, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is recorded
            warnings.filterwarnings("ignore", "None of the .* pairs has privileged")  # share 0 is ITML
            model.fit(ends, signs, privileged=hidden)
        distances = model.pair_distance(X_test[ends_test])
        return {
            "average_precision": pair_average_precision(signs_test, distances),
            "roc_auc": pair_roc_auc(signs_test, distances),
            "relative_gap": float(model.duality_gap_),
            "sweeps": int(model.n_iter_),
        }


def view(dataset: Any, name: str) -> Matrix:
    """Return a view of a data set: one of its views, its table ("X"), or an extra array."""
    if name == "X":
        return np.asarray(dataset.X, dtype=float)
    if name in dataset.extra:
        return np.asarray(dataset.extra[name], dtype=float)
    return np.asarray(dataset.X[name], dtype=float)


GAMMAS = (0.01, 0.03, 0.06, 0.1, 0.3, 0.6, 1.0, 3.0, 10.0)
FEW = (0.1, 1.0, 10.0)
METHODS: Mapping[str, Candidates] = {
    "L2 distance": Candidates(ITML(gamma=1e-9)),
    "ITML": Candidates(ITML(max_iter=100), {"gamma": GAMMAS}),
    "ITML-S": Candidates(ITMLSelect(max_iter=100), {"gamma": FEW, "drop": (0.05, 0.1, 0.2)}),
    "ITML+": Candidates(
        ITMLPlus(privileged_prior="matched", max_iter=100), {"gamma": FEW, "lam": (0.1, 1.0, 10.0)}
    ),
    "ITML+ shuffled": Candidates(
        ITMLPlus(privileged_prior="matched", max_iter=100),
        {"gamma": FEW, "lam": (0.1, 1.0, 10.0)},
        shuffled=True,
    ),
}
