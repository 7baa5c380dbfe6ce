"""All that a report tells, computed once: scores, weights, views, path, doubt, certificate."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from kernelweave._typing import AnyArray, Vector
from kernelweave.bank.cross import n_rows
from kernelweave.errors import IncompatiblePartsError, NotOfferedError
from kernelweave.estimators.base import KernelEstimator
from kernelweave.estimators.inputs import as_one_array
from kernelweave.estimators.model import MKLModel
from kernelweave.explain import ViewCosts, WeightStability, contributions, weight_stability
from kernelweave.explain.contributions import unwrapped
from kernelweave.explain.leaving_out import kernels_by_view
from kernelweave.explain.refits import cut, has_bank, rows_of, with_kernels, without_label
from kernelweave.report.baselines import baselines, best
from kernelweave.report.held_out import (
    Calibration,
    Doubt,
    HeldOut,
    Tick,
    calibration,
    confusion,
    doubt,
    held_out,
    score,
)
from kernelweave.report.walk import Walk, walk
from kernelweave.views.bags import as_bags
from kernelweave.weak_labels.multi_instance import BagClassifier

THIS = "this model"
MOST_DOUBTFUL = 10
MOST_VIEWS = 12
# What a model that cannot do something says no with, and what data are refused with as scikit-learn does; a
# TypeError of Python's own is a bug and shows itself.
REFUSALS = (NotOfferedError, IncompatiblePartsError, ValueError, NotImplementedError)


@dataclass(frozen=True)
class Contest:
    """Scores of methods on the same splits, and how they came about."""

    scores: Mapping[str, Sequence[float]]
    test_share: float
    how: str
    first: str = THIS


@dataclass
class Study:
    """What was found; what could not be found is None, with the reason in ``reasons``."""

    model: Any = field(repr=False)
    machine: Any = field(repr=False)
    metric: str
    contest: Contest
    weights: Vector
    held: HeldOut = field(repr=False)
    y: AnyArray = field(repr=False)
    classes: AnyArray | None
    stability: WeightStability | None = None
    importance: dict[str, float] | None = None
    costs: ViewCosts | None = None
    walk: Walk | None = None
    confusion: AnyArray | None = None
    calibration: Calibration | None = None
    doubt: Doubt | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def attempt(self, what: str, work: Callable[[], Any]) -> None:
        """Set one of the findings, or remember why it is not to be had."""
        try:
            setattr(self, what, work())
        except REFUSALS as error:
            self.reasons[what] = " ".join(str(error).split())


def study(
    model: Any,
    X: Any,
    y: Any,
    *,
    cv: int = 5,
    n_resamples: int = 50,
    random_state: Any = 0,
    contest: Contest | None = None,
    begin: Callable[[int], Tick] = lambda _: lambda _: None,
) -> Study:
    """Find out all that a report tells of a fitted model; ``begin`` hears how many steps there will be."""
    require_reportable(model)
    machine = best(unwrapped(model)[0])
    X, y = samples_of(machine, X), np.asarray(y)
    nameless = without_label(model, y)
    splits = cut(model, X, y, cv, random_state)
    views = kernels_by_view(machine)
    left_out = views if 2 <= len(views) <= MOST_VIEWS else {}
    rivals = {} if contest is not None else baselines(model, machine, y[~nameless])
    tick = begin(len(splits) * (2 + len(rivals) + len(left_out)) + 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        held = held_out(model, X, y, splits, tick)
        share = float(np.mean([len(test) / (~nameless).sum() for _, test in splits]))
        if contest is None:
            contest = Contest({THIS: held.scores.tolist()}, share, f"{len(splits)}-fold cross-validation")
        weights = np.atleast_2d(machine.kernel_weights_).mean(axis=0)
        metric = "R²" if is_regressor(model) else "accuracy"
        classes = None if is_regressor(model) else np.asarray(machine.classes_)
        found = Study(model, machine, metric, contest, weights, held, y, classes)
        _meet(found, rivals, X, tick)
        tick("stability of the weights")
        found.attempt("stability", lambda: _stability(model, machine, X, y, n_resamples, random_state))
        found.attempt("importance", lambda: contributions(model, X).by_view().importance())
        if left_out:
            found.attempt("costs", lambda: _costs(found, left_out, X, share, tick))
        else:
            found.reasons["costs"] = (
                "There is one view only, so none can be left out."
                if len(views) < 2
                else f"There are {len(views)} views; each would have to be left out once per fold."
            )
        found.attempt("walk", lambda: walk(model, model, X, y, held, tick))
        tick("doubtful rows")
        if classes is not None:
            found.confusion = confusion(held, y, classes)
            found.calibration = calibration(held, y, classes)
        found.attempt("doubt", lambda: doubt(model, held, X, y, classes, min(MOST_DOUBTFUL, n_rows(X))))
    found.notes += list(dict.fromkeys(" ".join(str(w.message).split()) for w in caught))
    return found


def require_reportable(model: Any) -> None:
    """Raise TypeError unless there is something to report of this model."""
    machine, _ = unwrapped(model)
    if not isinstance(best(machine), KernelEstimator) or not has_bank(model):
        raise TypeError(
            "A report is of a model with a bank of kernels, such as MKLClassifier; "
            f"got {type(machine).__name__}."
        )
    if not (is_classifier(model) or is_regressor(model)):
        raise TypeError(
            f"A report compares predictions with y; {type(machine).__name__} is neither a classifier nor a "
            "regressor."
        )
    best(machine)._require_fit()


def samples_of(machine: Any, X: Any) -> Any:
    """Return samples that can be split: bags as `Bags`, kernel matrices as one array, others as they are."""
    return as_bags(X) if isinstance(machine, BagClassifier) else as_one_array(X)


def _meet(found: Study, rivals: Mapping[str, Any], X: Any, tick: Tick) -> None:
    """Score the baselines on the same splits."""
    scores = dict(found.contest.scores)
    for name, rival in rivals.items():
        try:
            scores[name] = _scores(name, rival, X, found, tick)
        except (TypeError, *REFUSALS) as error:  # a rival may not take the samples the model takes
            found.notes.append(f"There is no baseline '{name}': {' '.join(str(error).split())}")
    found.contest = Contest(scores, found.contest.test_share, found.contest.how, found.contest.first)


def _scores(name: str, model: Any, X: Any, found: Study, tick: Tick) -> list[float]:
    scores = []
    for split in found.held.splits:
        tick(name)
        train, test = split
        if not without_label(model, found.y).any():  # it learns from labels alone
            train = train[~without_label(found.model, found.y)[train]]
        X_train, y_train, X_test, y_test = rows_of(model, X, found.y, (train, test))
        scores.append(score(clone(model).fit(X_train, y_train), X_test, y_test))
    return scores


def _costs(found: Study, views: Mapping[str, list[int]], X: Any, share: float, tick: Tick) -> ViewCosts:
    """Do what `leave_view_out` does, on the splits of the report."""
    without = {}
    everything = range(len(found.machine.kernel_names_))
    for view, members in views.items():
        less, X_less = with_kernels(found.model, X, [m for m in everything if m not in members])
        without[view] = np.array(_scores(f"without {view}", less, X_less, found, tick))
    return ViewCosts(found.held.scores, without, share)


def _stability(
    model: Any, machine: Any, X: Any, y: AnyArray, n_resamples: int, random_state: Any
) -> WeightStability:
    if not isinstance(machine, MKLModel):
        raise NotOfferedError(
            f"{type(machine).__name__} cannot be refitted on resamples of weighted rows, so its weights have "
            "no intervals."
        )
    return weight_stability(
        machine, unwrapped(model, X)[1], y, n_resamples=n_resamples, random_state=random_state
    )
