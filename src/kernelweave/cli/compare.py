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

from kernelweave.bank.chosen import ConcatenatedBank
from kernelweave.cli.commands import Request, prepare, unique_sentences
from kernelweave.cli.methods import WITHOUT_COST, make, names
from kernelweave.cli.progress import Tick, remembered_interrupt
from kernelweave.errors import DataError
from kernelweave.evaluation import paired, summary
from kernelweave.kernels import Gaussian
from kernelweave.report.baselines import AVERAGE, CONCATENATED, DUMMIES, SINGLE, grid_search, single_kernels

BASELINES = (AVERAGE, SINGLE, CONCATENATED)
# What guessing scores: models that look at no column.
GUESSES = tuple(name for name, _ in DUMMIES.values())
# With more intervals than this one of them is likely to miss by chance.
FEW_INTERVALS = 10
USUAL = ("simple_mkl", "sm1_mkl", "l2_mkl")
INNER_FOLDS = 3


@dataclass
class Contest:
    """Scores of every method on every split; a method that was not finished is not there."""

    splits: list[tuple[Any, Any]] = field(repr=False)
    folds: int
    scores: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stopped: bool = False

    def told(self) -> dict[str, Any]:
        """Return means, and paired differences from each baseline with intervals."""
        differences = {
            name: {base: self._difference(name, base) for base in BASELINES if base in self.scores}
            for name in self.scores
            if name not in BASELINES + GUESSES
        }
        return {
            "splits": len(self.splits),
            "scores": self.scores,
            "means": {name: asdict(summary(values)) for name, values in self.scores.items()},
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
    """Return what to bear in mind when reading the intervals."""
    intervals = [found["interval"] for row in differences.values() for found in row.values()]
    said = []
    if None in intervals:
        said.append("– is no interval: the difference is the same on every split, which tells no error.")
    if (count := len(intervals) - intervals.count(None)) > FEW_INTERVALS:
        said.append(f"each of the {count} intervals is for itself: about one in twenty misses by chance.")
    return said


def candidates(request: Request, X: Any, told: dict[str, Any], methods: Sequence[str]) -> dict[str, Any]:
    """Return the unfitted models by name, baselines first; the bank is taken out of ``told``."""
    told.pop("ids")
    bank, task = told.pop("bank"), told["task"]
    chosen = names(task) if list(methods) == ["all"] else tuple(dict.fromkeys(methods))
    average = make("average_kernel", bank, task, request.cost)
    count = len(bank.fit(X.iloc[:2]))
    joined = ConcatenatedBank(bank, Gaussian())
    guess, dummy = DUMMIES[task]
    models = {
        guess: dummy,
        AVERAGE: average,
        SINGLE: grid_search(average, single_kernels(bank, range(count), count), INNER_FOLDS),
        CONCATENATED: make("average_kernel", joined, task, request.cost),
    }
    for name in chosen:
        cost = None if name in WITHOUT_COST else request.cost
        if name != "average_kernel":
            models[name] = make(name, bank, task, cost)
    return models


def compare(
    request: Request, methods: Sequence[str], folds: int, repeats: int, begin: Callable[[int], Tick]
) -> tuple[Contest, dict[str, Any]]:
    """Score every method on the same splits; Ctrl-C ends with the methods that were finished.

    ``begin`` is told how many fits there will be, and gives what to call before each.
    """
    if folds < 2 or repeats < 1:
        raise DataError(f"--folds is 2 or more and --repeats 1 or more; got {folds} and {repeats}.")
    X, y, told = prepare(request)
    models = candidates(request, X, told, methods or USUAL)
    contest = Contest(_splits(X, y, told["task"], folds, repeats), folds)
    tick = begin(len(models) * len(contest.splits))
    finished = 0
    with warnings.catch_warnings(record=True) as caught, remembered_interrupt() as pressed:
        warnings.simplefilter("always")
        try:
            for name, model in models.items():
                contest.scores[name] = _score(model, X, y, contest.splits, partial(tick, name), pressed)
                finished = len(caught)  # what an unfinished method warned of does not matter
        except KeyboardInterrupt:
            contest.stopped = True
    contest.notes = [*told["notes"], *unique_sentences(caught[:finished])]
    return contest, told


def _score(
    model: Any, X: Any, y: Any, splits: list[tuple[Any, Any]], tick: Callable[[], None], pressed: Event
) -> list[float]:
    found = []
    for train, test in splits:
        tick()
        fitted = clone(model).fit(X.iloc[train], y[train])
        if pressed.is_set():  # this fit was cut short
            raise KeyboardInterrupt
        found.append(float(fitted.score(X.iloc[test], y[test])))
    return found


def _splits(X: Any, y: Any, task: str, folds: int, repeats: int) -> list[tuple[Any, Any]]:
    how: dict[str, Any] = {"n_splits": folds, "n_repeats": repeats, "random_state": 0}
    if task == "regression":
        if len(y) < 2 * folds:
            raise DataError(f"{len(y)} rows are too few for {folds} folds; each needs two or more.")
        return list(RepeatedKFold(**how).split(X))
    labels, counts = np.unique(y, return_counts=True)
    least = max(folds, -(-INNER_FOLDS * folds // (folds - 1)))  # so that each inner fold has one
    if counts.min() < least:
        raise DataError(
            f"The class {labels[counts.argmin()]} has {counts.min()} rows; {folds} folds with {INNER_FOLDS} "
            f"inside need {least}."
        )
    return list(RepeatedStratifiedKFold(**how).split(X, y))
