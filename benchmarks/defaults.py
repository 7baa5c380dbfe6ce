"""What the no-argument classifiers reach against what a user would do instead, on the same splits.

Reads every ``NAME.npz`` of a folder: ``y``, ``n_train``, ``n_test``, ``role`` ("tune": to choose by, "confirm":
looked at when all was chosen), and arrays ``view_NAME``, or ``sparse_NAME_{data,indices,indptr,shape}``. Split i is
``StratifiedShuffleSplit(1, train_size=n_train, test_size=n_test, random_state=i)``. Our estimators get the columns
as they are; the others get counts as tf-idf and numbers as z-scores. Accuracies of the others that stand in
``baselines.json`` of the folder, by set, method and split, are not measured again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave import MKLClassifier, MKLClassifierCV, Views

N_SPLITS = 4
OURS: dict[str, Callable[[], Any]] = {"MKLClassifier()": MKLClassifier, "MKLClassifierCV()": MKLClassifierCV}
WORDS = {
    "logreg": "logistic regression",
    "svcrbf": "SVC, searched",
    "rf": "forest",
    "hgb": "boosting",
    "late": "late fusion",
    "stack": "stacking",
    "sumrbf": "sum of Gaussians",
}
# The last two need several views.
OF_VIEWS = ("late", "sumrbf")
BINS = np.linspace(0.0, 1.0, 11)


def run(options: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    """Measure all sets of the folder, or those of one role."""
    folder = Path(options.data)
    known = json.loads(file.read_text()) if (file := folder / "baselines.json").is_file() else {}
    found = []
    for path in sorted(folder.glob("*.npz")):
        row = measure(path, known.get(path.stem, {}), options.role)
        if row is not None:
            console.log(f"{row['set']}: {row['accuracy']}")
            found.append(row)
    return found


def load(path: Path) -> tuple[dict[str, Any], np.ndarray, dict[str, Any]]:
    """Return the views, the labels and the facts of a set."""
    with np.load(path) as z:
        views: dict[str, Any] = {k[5:]: z[k].astype(float) for k in z.files if k.startswith("view_")}
        for stem in (k[: -len("_data")] for k in z.files if k.startswith("sparse_") and k.endswith("_data")):
            parts = (z[f"{stem}_data"].astype(float), z[f"{stem}_indices"], z[f"{stem}_indptr"])
            views[stem[7:]] = sp.csr_matrix(parts, shape=tuple(z[f"{stem}_shape"]))
        facts = {"n_train": int(z["n_train"]), "n_test": int(z["n_test"]), "role": str(z["role"])}
        return views, z["y"].astype(int), facts


def splits(y: np.ndarray, n_train: int, n_test: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for i in range(N_SPLITS):
        n_left = min(n_test, len(y) - n_train)
        yield next(
            StratifiedShuffleSplit(1, train_size=n_train, test_size=n_left, random_state=i).split(y, y)
        )


def measure(path: Path, known: dict[str, list[float]], role: str | None = None) -> dict[str, Any] | None:
    """Return the mean accuracy of every method on a set, our seconds, and what our probabilities lose."""
    views, y, facts = load(path)
    if role is not None and facts["role"] != role:
        return None
    several = len(views) > 1
    others = [name for name in WORDS if several or name not in OF_VIEWS]
    accuracy: dict[str, list[float]] = {name: known[name][:N_SPLITS] for name in others if name in known}
    seconds: dict[str, list[float]] = {}
    losses: dict[str, list[float]] = {}
    for train, test in splits(y, facts["n_train"], facts["n_test"]):
        for name, make in OURS.items():
            began = time.perf_counter()
            model = make().fit(_rows(views, train), y[train])
            hits = model.predict(_rows(views, test)) == y[test]
            seconds.setdefault(name, []).append(time.perf_counter() - began)
            accuracy.setdefault(name, []).append(float(hits.mean()))
        for name, value in probability_losses(model, views, y, train, test).items():
            losses.setdefault(name, []).append(value)
        for name in others:
            if name not in known:
                hits = _other(name, views, train, test, y) == y[test]
                accuracy.setdefault(name, []).append(float(hits.mean()))
    return {
        "set": path.stem,
        "views": len(views),
        "classes": int(y.max()) + 1,
        **facts,
        "accuracy": {name: float(np.mean(values)) for name, values in accuracy.items()},
        "seconds": {name: float(np.mean(values)) for name, values in seconds.items()},
        "probabilities": {name: float(np.mean(values)) for name, values in losses.items()},
    }


def _rows(views: dict[str, Any], rows: np.ndarray) -> Any:
    """Return samples as our estimators get them."""
    if len(views) == 1:
        return next(iter(views.values()))[rows]
    return Views({name: table[rows] for name, table in views.items()})


# -- probabilities


def probability_losses(
    searched: MKLClassifierCV, views: dict[str, Any], y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> dict[str, float]:
    """Return log loss and calibration error of the search's probabilities, and of a sigmoid around its model.

    The sigmoid is fitted on five folds, of which some class may have no sample: then there is nothing to compare.
    """
    X, Z = _rows(views, train), _rows(views, test)
    if np.bincount(y[train]).min() < 5:
        return {}
    sigmoid = CalibratedClassifierCV(clone(searched.best_estimator_), cv=5, ensemble=False).fit(X, y[train])
    found = {}
    for name, model in (("temperature", searched), ("sigmoid", sigmoid)):
        proba = np.clip(model.predict_proba(Z), 1e-15, 1.0)
        found[f"log loss, {name}"] = float(log_loss(y[test], proba, labels=model.classes_))
        found[f"calibration error, {name}"] = calibration_error(proba, model.classes_, y[test])
    return found


def calibration_error(proba: np.ndarray, classes: np.ndarray, y: np.ndarray) -> float:
    """Return the mean distance of confidence and accuracy over ten bins of confidence, by their samples."""
    sure, right = proba.max(axis=1), classes[proba.argmax(axis=1)] == y
    place = np.clip(np.digitize(sure, BINS) - 1, 0, 9)
    return float(
        sum(
            abs(sure[place == b].mean() - right[place == b].mean()) * (place == b).mean()
            for b in set(place.tolist())
        )
    )


# -- the others


def _other(
    name: str, views: dict[str, Any], train: np.ndarray, test: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Return the predictions of another method."""
    pairs = [_prepared(table, train, test) for table in views.values()]
    X, Z = (np.hstack([pair[side] for pair in pairs]) for side in (0, 1))
    labels = y[train]
    if name == "late":
        models = [_logistic().fit(own, labels) for own, _ in pairs]
        total = sum(model.predict_proba(new) for model, (_, new) in zip(models, pairs, strict=True))
        return np.asarray(models[0].classes_[total.argmax(axis=1)])
    if name == "sumrbf":
        K, L = (sum(_gaussian(own, side) for own, side in _sides(pairs, s)) / len(pairs) for s in (0, 1))
        return np.asarray(
            _searched(SVC(kernel="precomputed"), {"C": [0.1, 1, 10, 100]}).fit(K, labels).predict(L)
        )
    models_of_all: dict[str, Callable[[], Any]] = {
        "logreg": _logistic,
        "svcrbf": lambda: _searched(
            SVC(), {"C": [0.1, 1, 10, 100], "gamma": list(np.logspace(-2, 1, 4) / X.shape[1])}
        ),
        "rf": lambda: RandomForestClassifier(500, random_state=0),
        "hgb": lambda: HistGradientBoostingClassifier(random_state=0),
        "stack": lambda: _stack([own.shape[1] for own, _ in pairs]),
    }
    return np.asarray(models_of_all[name]().fit(X, labels).predict(Z))


def _prepared(table: Any, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return counts as tf-idf and numbers as z-scores, learnt on the training rows."""
    dense = table.toarray() if sp.issparse(table) else table
    counts = sp.issparse(table) or (
        dense.shape[1] >= 100
        and (dense >= 0).all()
        and (dense == np.round(dense)).all()
        and (dense == 0).mean() > 0.8
    )
    step = TfidfTransformer(sublinear_tf=True) if counts else StandardScaler()
    own = step.fit_transform(dense[train])
    new = step.transform(dense[test])
    return tuple(side.toarray() if sp.issparse(side) else side for side in (own, new))  # type: ignore[return-value]


def _logistic() -> Any:
    return LogisticRegressionCV(Cs=np.logspace(-3, 2, 6), cv=3, max_iter=2000)


def _searched(model: Any, grid: dict[str, Any]) -> Any:
    return GridSearchCV(model, grid, cv=3)


def _stack(widths: list[int]) -> Any:
    """Return a logistic regression and a forest per view, stacked."""
    ends = np.cumsum([0, *widths])
    models = []
    for v, (first, last) in enumerate(pairwise(ends)):
        own = ColumnTransformer([("view", "passthrough", list(range(first, last)))])
        models.append((f"logistic {v}", make_pipeline(own, LogisticRegression(max_iter=2000))))
        models.append((f"forest {v}", make_pipeline(own, RandomForestClassifier(200, random_state=0))))
    return StackingClassifier(models, LogisticRegression(max_iter=2000), cv=3)


def _sides(pairs: list[Any], side: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(pair[0], pair[side]) for pair in pairs]


def _gaussian(own: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return exp(−D² / mean D²) of rows against the training rows."""
    within, across = (
        (own**2).sum(axis=1) + (each**2).sum(axis=1)[:, None] - 2 * each @ own.T for each in (own, other)
    )
    return np.asarray(np.exp(-across / within.mean()))


# -- tables


def places(row: dict[str, Any], ours: str) -> dict[str, float]:
    """Return the rank of every method on a set, of one of ours alone beside all others; ties share theirs."""
    field = {name: value for name, value in row["accuracy"].items() if name == ours or name not in OURS}
    return {
        name: 1.0
        + sum(other > value + 1e-9 for other in field.values())
        + 0.5 * (sum(abs(other - value) <= 1e-9 for other in field.values()) - 1)
        for name, value in field.items()
    }


def table(rows: list[dict[str, Any]]) -> Table:
    """Return accuracies in percent, one row per set."""
    names = [*OURS, *WORDS]
    out = Table("set", "role", "views", "classes", "n", *(WORDS.get(name, name) for name in names))
    out.title = (
        f"Accuracy in % on held-out samples, mean over {N_SPLITS} splits; the best of a set is bold. "
        "Ours get the columns as they are."
    )
    for row in sorted(rows, key=lambda row: (row["views"] == 1, row["role"] != "tune", row["set"])):
        found = row["accuracy"]
        best = max(found.values())
        cells = ["" if name not in found else _percent(found[name], best) for name in names]
        out.add_row(
            row["set"], row["role"], str(row["views"]), str(row["classes"]), str(row["n_train"]), *cells
        )
    return out


def _percent(value: float, best: float) -> str:
    return f"**{100 * value:.1f}**" if value >= best - 1e-9 else f"{100 * value:.1f}"


def summaries(rows: list[dict[str, Any]]) -> list[Table]:
    """Return mean ranks, and what probabilities lose."""
    ranks = Table("sets", "role", "number", "of", *(WORDS[n] for n in WORDS), "seconds")
    ranks.title = "Mean rank, each of ours (of) alone beside all others; 1 is best"
    for several in (True, False):
        for role in ("tune", "confirm"):
            some = [row for row in rows if (row["views"] > 1) == several and row["role"] == role]
            for ours in OURS if some else ():
                each = [places(row, ours) for row in some]
                mean = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
                cells = [f"{mean[name]:.2f}" if name in mean else "" for name in WORDS]
                took = float(np.mean([row["seconds"][ours] for row in some]))
                what = "several views" if several else "one table"
                ranks.add_row(what, role, str(len(some)), f"{ours}: {mean[ours]:.2f}", *cells, f"{took:.2f}")
    losses = Table("role", "number", "by", "mean log loss", "mean calibration error", "lower log loss on")
    losses.title = (
        "Probabilities of MKLClassifierCV() by the temperature of its folds, and of scikit-learn's "
        "CalibratedClassifierCV (sigmoid, 5 folds) around the same model"
    )
    for role in ("tune", "confirm"):
        some = [row["probabilities"] for row in rows if row["role"] == role and row["probabilities"]]
        for name, other in (("temperature", "sigmoid"), ("sigmoid", "temperature")) if some else ():
            lower = sum(one[f"log loss, {name}"] < one[f"log loss, {other}"] for one in some)
            means = [
                np.mean([one[f"{what}, {name}"] for one in some])
                for what in ("log loss", "calibration error")
            ]
            losses.add_row(role, str(len(some)), name, *(f"{mean:.3f}" for mean in means), str(lower))
    return [ranks, losses]


def main() -> None:
    """Measure one set and write its row, for those who run sets side by side."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    known = json.loads(file.read_text()) if (file := options.path.parent / "baselines.json").is_file() else {}
    options.out.write_text(json.dumps(measure(options.path, known.get(options.path.stem, {}))))


if __name__ == "__main__":
    main()
