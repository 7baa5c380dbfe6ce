"""What a model says of rows it has not seen: scores, confusion, calibration, doubt."""

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

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.explain import Contributions, contributions
from kernelweave.explain.refits import Split, rows_of

Tick = Callable[[str], None]
# Points of a calibration curve, and the fewest rows each may stand for.
BINS, FEWEST = 10, 5


@dataclass(frozen=True)
class HeldOut:
    """Answers for every row by the model fitted to the folds without it; rows without a label have none."""

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
    """How often the model was right where it was so sure; and the Brier score."""

    said: Vector
    happened: Vector
    counts: Vector
    brier: float
    of: str
    is_own: bool


@dataclass(frozen=True)
class Doubt:
    """Rows of small margin (or large error), and what every kernel said of each."""

    rows: Indices
    against: tuple[str, ...]
    parts: Contributions = field(repr=False)


def score(model: Any, X: Any, y: Any) -> float:
    """Return the accuracy, or R² of a regressor."""
    measure = r2_score if is_regressor(model) else accuracy_score
    return float(measure(y, model.predict(X)))


def held_out(model: Any, X: Any, y: AnyArray, splits: Sequence[Split], tick: Tick) -> HeldOut:
    """Fit the model to all folds but one, for each, and ask it about that one."""
    n = len(y)
    fold = np.full(n, -1, dtype=np.intp)
    predictions = np.empty(n, dtype=np.float64 if is_regressor(model) else y.dtype)
    values: AnyArray | None = None
    sure: AnyArray | None = None
    models, scores = [], []
    for k, split in enumerate(splits):
        tick("this model")
        X_train, y_train, X_test, y_test = rows_of(model, X, y, split)
        fitted = clone(model).fit(X_train, y_train)
        said = np.asarray(fitted.predict(X_test) if is_regressor(model) else fitted.decision_function(X_test))
        values = np.zeros((n, *said.shape[1:])) if values is None else values
        values[split[1]], predictions[split[1]], fold[split[1]] = said, fitted.predict(X_test), k
        if not is_regressor(model) and hasattr(fitted, "predict_proba"):
            said = fitted.predict_proba(X_test)
            sure = np.zeros((n, said.shape[1])) if sure is None else sure
            sure[split[1]] = said
        models.append(fitted)
        scores.append(score(fitted, X_test, y_test))
    assert values is not None
    return HeldOut(splits, models, np.array(scores), fold, predictions, values, sure)


def confusion(held: HeldOut, y: AnyArray, classes: AnyArray) -> AnyArray:
    """Return how many rows of each class (rows) were taken for which (columns)."""
    rows = held.tested
    return np.asarray(confusion_matrix(y[rows], held.predictions[rows], labels=classes))


def calibration(held: HeldOut, y: AnyArray, classes: AnyArray) -> Calibration | None:
    """See how often held-out probabilities come true; None: too few rows.

    They are the model's own where it gives any, and else what a logistic machine makes of its decision
    values, fitted for every fold to the held-out values of the others. With two classes the probability is
    that of the second one, with more that of the predicted class.
    """
    y, fold, D = y[held.tested], held.fold[held.tested], held.values[held.tested]
    if len(y) < 2 * FEWEST or any(len(np.unique(y[fold != k])) < len(classes) for k in set(fold)):
        return None
    if held.probabilities is not None:
        P = held.probabilities[held.tested]
    else:
        machine = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, max_iter=1000))
        cv = PredefinedSplit(fold)
        P = cross_val_predict(machine, D.reshape(len(y), -1), y, cv=cv, method="predict_proba")
    if len(classes) == 2:
        sure, came, of = P[:, 1], y == classes[1], f"probability of {classes[1]}"
    else:
        sure, came, of = P.max(axis=1), classes[P.argmax(axis=1)] == y, "probability of the prediction"
    ends = np.unique(np.quantile(sure, np.linspace(0, 1, min(BINS, len(y) // FEWEST) + 1)))
    place = np.clip(np.searchsorted(ends, sure, side="right") - 1, 0, max(len(ends) - 2, 0))
    counts = np.bincount(place)
    used = counts > 0
    said, happened = (np.bincount(place, weights=w)[used] / counts[used] for w in (sure, came))
    brier = float(brier_score_loss(came, sure))
    return Calibration(said, happened, counts[used].astype(float), brier, of, held.probabilities is not None)


def doubt(model: Any, held: HeldOut, X: Any, y: AnyArray, classes: AnyArray | None, count: int) -> Doubt:
    """Return the rows of least confidence, with contributions by the model that had not seen them.

    With two classes contributions add up to the decision value, with more to the lead of the first class over
    the second. Of a regressor these are the rows with the largest errors.
    """
    tested = held.tested
    keys = held.margins if classes is not None else -np.abs(held.predictions - y)
    rows = tested[np.argsort(keys[tested], kind="stable")[:count]]
    parts, rest, against = [], [], []
    names: tuple[str, ...] = ()
    views: tuple[str, ...] = ()
    for row in rows:
        k = held.fold[row]
        _, _, X_test, _ = rows_of(model, X, y, held.splits[k])
        place = int(np.flatnonzero(held.splits[k][1] == row)[0])
        said = contributions(held.models[k], _row(X_test, place))
        names, views = said.names, said.views
        if said.values.ndim == 2:
            parts.append(said.values[0])
            rest.append(float(said.intercept))
            against.append("" if classes is None else str(classes[1]))
            continue
        first, second = np.argsort(-said.decision[0])[:2]
        parts.append(said.values[0, first] - said.values[0, second])
        rest.append(float(said.intercept[first] - said.intercept[second]))
        assert classes is not None
        against.append(f"{classes[first]} over {classes[second]}")
    values: Matrix = np.array(parts)
    return Doubt(rows, tuple(against), Contributions(values, np.array(rest), names, views))


def _row(X: Any, place: int) -> Any:
    rows = slice(place, place + 1)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
