"""Methods and baselines on the same splits, and their differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from threading import Event
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.utils import _safe_indexing

from kernelweave.bank.missing_views import KernelsWithMissingViews, fit_with_missing_views
from kernelweave.bank.subset import ConcatenatedBank
from kernelweave.cli.methods import SEARCHED, WITHOUT_COST, make_model, method_names
from kernelweave.cli.prepare import Prepared, Request, prepare_held
from kernelweave.cli.progress import Tick, reading_bar, remembered_interrupt
from kernelweave.errors import DataError
from kernelweave.evaluation import paired
from kernelweave.evaluation import summary as mean_and_deviation
from kernelweave.kernels import Gaussian
from kernelweave.report.baselines import (
    AVERAGE,
    CONCATENATED,
    DUMMIES,
    LATE,
    SINGLE,
    STACKED,
    fusions,
    grid_search,
    single_kernels,
)
from kernelweave.report.findings import unique_messages

BASELINES = (AVERAGE, SINGLE, CONCATENATED, LATE, STACKED)
DEFAULT_METHODS = ("default", "simple_mkl", "sm1_mkl", "l2_mkl")
INNER_FOLDS = 3  # of the search for the best single kernel


@dataclass
class ComparisonResult:
    """Scores of every method on every split; a method that was not finished is not there."""

    splits: list[tuple[Any, Any]] = field(repr=False)
    folds: int
    scores: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stopped: bool = False

    def summary(self) -> dict[str, Any]:
        """Return means, and paired differences from each baseline with intervals."""
        constant = {name for name, _ in DUMMIES.values()}
        differences = {
            name: {base: self._difference(name, base) for base in BASELINES if base in self.scores}
            for name in self.scores
            if name not in constant.union(BASELINES)
        }
        return {
            "splits": len(self.splits),
            "scores": self.scores,
            "means": {name: asdict(mean_and_deviation(values)) for name, values in self.scores.items()},
            "differences": differences,
            "notes": [*self.notes, *_cautions(differences)],
            "stopped": self.stopped,
        }

    def _difference(self, name: str, base: str) -> dict[str, Any]:
        """Return the mean difference, with the interval for training sets that overlap."""
        found = paired(self.scores[name], self.scores[base], test_share=1.0 / self.folds)
        known = {"interval": list(found.interval), "p_value": found.p_value}
        return {"difference": found.difference, **(known if found.is_known else dict.fromkeys(known))}


def _cautions(differences: dict[str, dict[str, dict[str, Any]]]) -> list[str]:
    """Return notes on how to read the intervals."""
    intervals = [found["interval"] for row in differences.values() for found in row.values()]
    notes = []
    if None in intervals:
        notes.append("– is no interval: the difference is the same on every split, which tells no error.")
    if (count := len(intervals) - intervals.count(None)) > 10:  # one in twenty misses
        notes.append(f"each of the {count} intervals is for itself: about one in twenty misses by chance.")
    return notes


def candidates(request: Request, prepared: Prepared, methods: Sequence[str]) -> dict[str, Any]:
    """Return the unfitted models by name, baselines first."""
    bank, task = prepared.bank, prepared.summary["task"]
    chosen = method_names(task) if list(methods) == ["all"] else tuple(dict.fromkeys(methods))
    average = make_model("average_kernel", bank, task, request.cost)
    fitted = fit_with_missing_views(bank, prepared.X)
    names, views = fitted.names, fitted.view_names
    joined = ConcatenatedBank(bank, Gaussian())
    constant, dummy = DUMMIES[task]
    models = {
        constant: dummy,
        AVERAGE: average,
        SINGLE: grid_search(average, single_kernels(bank, range(len(names)), names), INNER_FOLDS),
        CONCATENATED: make_model("average_kernel", joined, task, request.cost),
    }
    if len(set(views)) > 1 and not isinstance(fitted, KernelsWithMissingViews):
        models |= fusions(average, bank, names, views, INNER_FOLDS)
    for name in chosen:
        cost = None if name in (SEARCHED, *WITHOUT_COST) else request.cost
        if name != "average_kernel":
            models[name] = make_model(name, bank, task, cost)
    return models


def compare(
    request: Request, methods: Sequence[str], folds: int, repeats: int, begin: Callable[[int], Tick]
) -> tuple[ComparisonResult, dict[str, Any]]:
    """Score every method on the same splits; Ctrl-C ends with the methods that were finished.

    ``begin`` is called with the number of fits; what it returns is called with a name before each.
    """
    if folds < 2 or repeats < 1:
        raise DataError(f"--folds is 2 or more and --repeats 1 or more; got {folds} and {repeats}.")
    if request.most_rows is not None and request.most_rows < 2 * folds:
        raise DataError(f"--rows is {2 * folds} or more for {folds} folds; got {request.most_rows}.")
    with reading_bar(bool(request.verbose), "reading") as watch:
        prepared = prepare_held(request, watch)
    X, y, summary = prepared.X, prepared.y, prepared.summary
    models = candidates(request, prepared, methods or DEFAULT_METHODS)
    result = ComparisonResult(_splits(y, summary["task"], folds, repeats), folds)
    tick = begin(len(models) * len(result.splits))
    finished = 0
    with warnings.catch_warnings(record=True) as caught, remembered_interrupt() as pressed:
        warnings.simplefilter("always")
        try:
            for name, model in models.items():
                result.scores[name] = _score(model, X, y, result.splits, partial(tick, name), pressed)
                finished = len(caught)  # warnings of an unfinished method are dropped
        except KeyboardInterrupt:
            result.stopped = True
    result.notes = [*summary["notes"], *unique_messages(caught[:finished])]
    if summary.get("lacking"):
        result.notes.append(
            f"{LATE} and {STACKED} learn on every view alone and are left out: some rows lack a view."
        )
    return result, summary


def _score(
    model: Any, X: Any, y: Any, splits: list[tuple[Any, Any]], tick: Callable[[], None], pressed: Event
) -> list[float]:
    found = []
    for train, test in splits:
        tick()
        fitted = clone(model).fit(_safe_indexing(X, train), y[train])
        if pressed.is_set():  # this fit was cut short
            raise KeyboardInterrupt
        found.append(float(fitted.score(_safe_indexing(X, test), y[test])))
    return found


def _splits(y: Any, task: str, folds: int, repeats: int) -> list[tuple[Any, Any]]:
    options: dict[str, Any] = {"n_splits": folds, "n_repeats": repeats, "random_state": 0}
    if task == "regression":
        if len(y) < 2 * folds:
            raise DataError(f"{len(y)} rows are too few for {folds} folds; each needs two or more.")
        return list(RepeatedKFold(**options).split(np.zeros(len(y))))
    labels, counts = np.unique(y, return_counts=True)
    least = max(folds, -(-INNER_FOLDS * folds // (folds - 1)))  # so that each inner fold has one
    if counts.min() < least:
        raise DataError(
            f"The class {labels[counts.argmin()]} has {counts.min()} rows; {folds} folds with {INNER_FOLDS} "
            f"inside need {least}."
        )
    return list(RepeatedStratifiedKFold(**options).split(np.zeros(len(y)), y))
