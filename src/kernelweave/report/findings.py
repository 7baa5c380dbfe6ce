"""All that a report shows, computed once: scores, weights, views, path, doubtful rows, certificate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from kernelweave._typing import AnyArray, Vector
from kernelweave.bank.protocol import n_rows
from kernelweave.errors import IncompatiblePartsError, NotOfferedError
from kernelweave.estimators.base import KernelEstimator
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.validation import as_one_array
from kernelweave.explain import ViewCosts, WeightStability, contributions, weight_stability
from kernelweave.explain.contributions import unwrap
from kernelweave.explain.leaving_out import kernels_by_view, scores_without_views
from kernelweave.explain.refits import (
    cross_validation_splits,
    has_bank,
    train_test_data,
    unlabelled_rows,
    with_chosen_kernels,
)
from kernelweave.report.baselines import baselines, best_estimator
from kernelweave.report.held_out import (
    Calibration,
    Doubt,
    HeldOut,
    Tick,
    calibration,
    confusion,
    doubt,
    predict_held_out,
    score,
)
from kernelweave.report.weight_path import WeightPath, weight_path
from kernelweave.views.bags import as_bags
from kernelweave.weak_labels.multi_instance import BagClassifier

THIS = "this model"
# Errors of a model that does not offer something, or that refuses the data as scikit-learn does. A TypeError
# of Python's own is a bug and is raised.
REFUSALS = (NotOfferedError, IncompatiblePartsError, ValueError, NotImplementedError)


@dataclass(frozen=True)
class MethodScores:
    """Scores of methods on the same splits: by method, the share tested in a split, and how they came about.

    ``first`` is the method that the others are compared with.
    """

    scores: Mapping[str, Sequence[float]]
    test_share: float
    how: str
    first: str = THIS


@dataclass
class Findings:
    """What a report shows of a model; what it does not offer is None, with the reason in ``reasons``."""

    model: Any = field(repr=False)
    kernel_model: Any = field(repr=False)
    metric: str
    comparison: MethodScores
    weights: Vector
    held: HeldOut = field(repr=False)
    y: AnyArray = field(repr=False)
    classes: AnyArray | None
    stability: WeightStability | None = None
    importance: dict[str, float] | None = None
    costs: ViewCosts | None = None
    path: WeightPath | None = None
    confusion: AnyArray | None = None
    calibration: Calibration | None = None
    doubt: Doubt | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def attempt(self, name: str, find: Callable[[], Any]) -> None:
        """Set one of the findings, or keep the reason why the model does not offer it."""
        try:
            setattr(self, name, find())
        except REFUSALS as error:
            self.reasons[name] = _one_line(error)


def gather_findings(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: int = 5,
    n_resamples: int = 50,
    random_state: Any = 0,
    comparison: MethodScores | None = None,
    begin: Callable[[int], Tick] = lambda _: lambda _: None,
) -> Findings:
    """Compute all that a report shows of a fitted model.

    With ``comparison`` its scores are shown, and no baseline is fitted. ``begin`` is called with the number
    of steps; what it returns is called with a name before each.
    """
    require_reportable(model)
    kernel_model = best_estimator(unwrap(model)[0])
    X, y = divisible(kernel_model, X), np.asarray(y)
    without_label = unlabelled_rows(model, y)
    splits = cross_validation_splits(model, X, y, cv, random_state)
    views = kernels_by_view(kernel_model)
    left_out = views if 2 <= len(views) <= 12 else {}  # one refit per view and fold
    rivals = {} if comparison is not None else baselines(model, kernel_model, y[~without_label])
    tick = begin(len(splits) * (2 + len(rivals) + len(left_out)) + 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        held = predict_held_out(model, X, y, splits, tick)
        share = float(np.mean([len(test) / (~without_label).sum() for _, test in splits]))
        if comparison is None:
            how = f"{len(splits)}-fold cross-validation"
            comparison = MethodScores({THIS: held.scores.tolist()}, share, how)
        weights = np.atleast_2d(kernel_model.kernel_weights_).mean(axis=0)
        metric = "R²" if is_regressor(model) else "accuracy"
        classes = None if is_regressor(model) else np.asarray(kernel_model.classes_)
        found = Findings(model, kernel_model, metric, comparison, weights, held, y, classes)
        _score_baselines(found, rivals, X, tick)
        tick("stability of the weights")
        found.attempt("stability", lambda: _stability(found, X, n_resamples, random_state))
        found.attempt("importance", lambda: contributions(model, X).by_view().importance())
        if left_out:
            found.attempt("costs", lambda: _view_costs(found, left_out, X, share, tick))
        else:
            found.reasons["costs"] = (
                "There is one view only, so none can be left out."
                if len(views) < 2
                else f"There are {len(views)} views; each would have to be left out once per fold."
            )
        found.attempt("path", lambda: weight_path(model, X, y, held, tick))
        tick("doubtful rows")
        if classes is not None:
            found.confusion = confusion(held, y, classes)
            found.calibration = calibration(held, y, classes)
        found.attempt("doubt", lambda: doubt(model, held, X, y, classes, min(10, n_rows(X))))
    found.notes += unique_messages(caught)
    return found


def require_reportable(model: Any) -> None:
    """Raise TypeError unless there is something to report of this model."""
    last, _ = unwrap(model)
    if not isinstance(best_estimator(last), KernelEstimator) or not has_bank(model):
        raise TypeError(
            "A report is of a model with a bank of kernels, such as MKLClassifier; "
            f"got {type(last).__name__}."
        )
    if not (is_classifier(model) or is_regressor(model)):
        raise TypeError(
            f"A report compares predictions with y; {type(last).__name__} is neither a classifier nor a "
            "regressor."
        )
    best_estimator(last)._require_fit()
    if getattr(best_estimator(last), "multilabel_", False):
        raise TypeError(
            f"A report is of one label per sample, but {type(last).__name__} learnt several: report on a model of each."
        )


def divisible(kernel_model: Any, X: Any) -> Any:
    """Return samples that can be split: bags as `Bags`, kernel matrices as one array, others as they are."""
    return as_bags(X) if isinstance(kernel_model, BagClassifier) else as_one_array(X)


def unique_messages(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """Return the messages of warnings, each once and on one line."""
    return list(dict.fromkeys(_one_line(w.message) for w in caught))


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())


def _score_baselines(found: Findings, rivals: Mapping[str, Any], X: Any, tick: Tick) -> None:
    """Score the baselines on the same splits as the model."""
    scores = dict(found.comparison.scores)
    for name, rival in rivals.items():
        try:
            scores[name] = _scores(name, rival, X, found, tick)
        except (TypeError, *REFUSALS) as error:  # a rival may not take the samples the model takes
            found.notes.append(f"There is no baseline '{name}': {_one_line(error)}")
    found.comparison = replace(found.comparison, scores=scores)


def _scores(name: str, model: Any, X: Any, found: Findings, tick: Tick) -> list[float]:
    """Return the scores of another model on the splits of the report."""
    scores = []
    supervised = not unlabelled_rows(model, found.y).any()
    without_label = unlabelled_rows(found.model, found.y)
    for train, test in found.held.splits:
        tick(name)
        rows = train[~without_label[train]] if supervised else train
        X_train, y_train, X_test, y_test = train_test_data(model, X, found.y, (rows, test))
        scores.append(score(clone(model).fit(X_train, y_train), X_test, y_test))
    return scores


def _view_costs(
    found: Findings, views: Mapping[str, list[int]], X: Any, share: float, tick: Tick
) -> ViewCosts:
    """Do what `leave_view_out` does, on the splits of the report."""
    without = scores_without_views(
        with_chosen_kernels(found.model, found.model),
        X,
        views,
        found.kernel_model.kernel_names_,
        lambda view, reduced, X_reduced: _scores(f"without {view}", reduced, X_reduced, found, tick),
    )
    return ViewCosts(found.held.scores, without, share)


def _stability(found: Findings, X: Any, n_resamples: int, random_state: Any) -> WeightStability:
    if not isinstance(found.kernel_model, MKLModel):
        raise NotOfferedError(
            f"{type(found.kernel_model).__name__} cannot be refitted on resamples of weighted rows, so its "
            "weights have no intervals."
        )
    X = unwrap(found.model, X)[1]
    return weight_stability(
        found.kernel_model, X, found.y, n_resamples=n_resamples, random_state=random_state
    )
