"""Predictions for rows a model was not fitted to: scores, confusion, calibration, least certain rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, confusion_matrix, r2_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave._typing import AnyArray, Indices, Vector
from kernelweave.explain import Contributions, contributions
from kernelweave.explain.refits import Split, train_test_data

Tick = Callable[[str], None]


@dataclass(frozen=True)
class HeldOut:
    """Predictions for every row by the model fitted to the folds without it; not for rows without a label."""

    splits: Sequence[Split] = field(repr=False)
    models: Sequence[Any] = field(repr=False)
    scores: Vector
    fold: Indices = field(repr=False)
    predictions: AnyArray = field(repr=False)
    values: AnyArray = field(repr=False)
    probabilities: AnyArray | None = field(default=None, repr=False)

    @property
    def tested(self) -> Indices:
        """The rows that were held out once."""
        return np.flatnonzero(self.fold >= 0)

    @property
    def margins(self) -> Vector:
        """How far every row is from the other side: |f|, or the lead of the first class over the second."""
        if self.values.ndim == 1:
            return np.abs(self.values)
        top = np.sort(self.values, axis=1)
        return np.asarray(top[:, -1] - top[:, -2])


@dataclass(frozen=True)
class Calibration:
    """Predicted probabilities against how often they came true, by groups of rows; and the Brier score.

    ``is_own`` is whether the model gives probabilities itself; ``event`` is what they are probabilities of.
    """

    predicted: Vector
    observed: Vector
    counts: Vector
    brier: float
    event: str
    is_own: bool


@dataclass(frozen=True)
class Doubt:
    """Rows of small margin (or large error), and what every kernel adds to the decision of each.

    ``toward`` names what a positive decision speaks for.
    """

    rows: Indices
    toward: tuple[str, ...]
    parts: Contributions = field(repr=False)


def score(model: Any, X: Any, y: Any) -> float:
    """Return the accuracy, or R² of a regressor."""
    measure = r2_score if is_regressor(model) else accuracy_score
    return float(measure(y, model.predict(X)))


def predict_held_out(model: Any, X: Any, y: AnyArray, splits: Sequence[Split], tick: Tick) -> HeldOut:
    """Fit the model to all folds but one, for each, and predict that one."""
    n, regression = len(y), is_regressor(model)
    fold = np.full(n, -1, dtype=np.intp)
    predictions = np.empty(n, dtype=np.float64 if regression else y.dtype)
    values: AnyArray | None = None
    probabilities: AnyArray | None = None
    models, scores = [], []
    for k, split in enumerate(splits):
        tick("this model")
        X_train, y_train, X_test, y_test = train_test_data(model, X, y, split)
        fitted = clone(model).fit(X_train, y_train)
        test = split[1]
        predictions[test], fold[test] = fitted.predict(X_test), k
        decision = predictions[test] if regression else np.asarray(fitted.decision_function(X_test))
        values = np.zeros((n, *decision.shape[1:])) if values is None else values
        values[test] = decision
        if not regression and hasattr(fitted, "predict_proba"):
            proba = fitted.predict_proba(X_test)
            probabilities = np.zeros((n, proba.shape[1])) if probabilities is None else probabilities
            probabilities[test] = proba
        models.append(fitted)
        scores.append(score(fitted, X_test, y_test))
    assert values is not None
    return HeldOut(splits, models, np.array(scores), fold, predictions, values, probabilities)


def confusion(held: HeldOut, y: AnyArray, classes: AnyArray) -> AnyArray:
    """Return how many rows of each class (rows) were predicted to be of which (columns)."""
    rows = held.tested
    return np.asarray(confusion_matrix(y[rows], held.predictions[rows], labels=classes))


def calibration(held: HeldOut, y: AnyArray, classes: AnyArray) -> Calibration | None:
    """Compare held-out probabilities with how often they come true; None where there are too few rows.

    They are the model's own where it gives any, and else what logistic regression makes of its decision
    values, fitted for every fold to the held-out values of the others. With two classes the probability is
    that of the second one, with more that of the predicted class. The curve has at most ten points, each of
    five rows or more.
    """
    fewest = 5
    y, fold, D = y[held.tested], held.fold[held.tested], held.values[held.tested]
    if len(y) < 2 * fewest or any(len(np.unique(y[fold != k])) < len(classes) for k in set(fold)):
        return None
    if held.probabilities is not None:
        P = held.probabilities[held.tested]
    else:
        logistic = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, max_iter=1000))
        cv = PredefinedSplit(fold)
        P = cross_val_predict(logistic, D.reshape(len(y), -1), y, cv=cv, method="predict_proba")
    if len(classes) == 2:
        probability, happened, event = P[:, 1], y == classes[1], f"probability of {classes[1]}"
    else:
        probability, happened = P.max(axis=1), classes[P.argmax(axis=1)] == y
        event = "probability of the prediction"
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, min(10, len(y) // fewest) + 1)))
    group = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, max(len(edges) - 2, 0))
    counts = np.bincount(group)
    used = counts > 0
    predicted, observed = (
        np.bincount(group, weights=w)[used] / counts[used] for w in (probability, happened)
    )
    return Calibration(
        predicted,
        observed,
        counts[used].astype(float),
        float(brier_score_loss(happened, probability)),
        event,
        held.probabilities is not None,
    )


def doubt(model: Any, held: HeldOut, X: Any, y: AnyArray, classes: AnyArray | None, count: int) -> Doubt:
    """Return the rows of least confidence, with contributions by the model that was fitted without them.

    With two classes contributions add up to the decision value, with more to the lead of the first class over
    the second. Of a regressor these are the rows with the largest errors.
    """
    keys = held.margins if classes is not None else -np.abs(held.predictions - y)
    rows = held.tested[np.argsort(keys[held.tested], kind="stable")[:count]]
    values, intercepts, toward = [], [], []
    names: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    for row in rows:
        k = held.fold[row]
        _, _, X_test, _ = train_test_data(model, X, y, held.splits[k])
        position = int(np.flatnonzero(held.splits[k][1] == row)[0])
        found = contributions(held.models[k], _row(X_test, position))
        names, views = found.names, found.views
        if found.values.ndim == 2:
            values.append(found.values[0])
            intercepts.append(float(found.intercept))
            toward.append("" if classes is None else str(classes[1]))
            continue
        assert classes is not None
        first, second = np.argsort(-found.decision[0])[:2]
        values.append(found.values[0, first] - found.values[0, second])
        intercepts.append(float(found.intercept[first] - found.intercept[second]))
        toward.append(f"{classes[first]} over {classes[second]}")
    parts = Contributions(np.array(values), np.array(intercepts), names, views)
    return Doubt(rows, tuple(toward), parts)


def _row(X: Any, position: int) -> Any:
    rows = slice(position, position + 1)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
