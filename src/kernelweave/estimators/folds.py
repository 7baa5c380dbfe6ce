"""One fold of a search: kernels of the training rows once, all candidates on them, one look at the rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices
from kernelweave.bank.precomputed import as_matrices
from kernelweave.estimators.candidate import Candidate, Score
from kernelweave.estimators.decisions import looking_at
from kernelweave.estimators.grid import Grid, Place
from kernelweave.estimators.results import Row
from kernelweave.estimators.task import Setting, Solved, Start, starts
from kernelweave.estimators.training import reason
from kernelweave.kernels.checks import check_square


@dataclass(frozen=True)
class Samples:
    """Samples that can be split: a table, Views, or a list of square kernel matrices."""

    X: Any
    y: AnyArray
    weight: AnyArray | None

    def part(self, rows: Indices, columns: Indices) -> Samples:
        """Return some of the samples; of kernel matrices only the columns of those they are compared with."""
        if isinstance(self.X, list):
            X: Any = [K[np.ix_(rows, columns)] for K in self.X]
        else:
            X = _safe_indexing(self.X, rows)
        return Samples(X, self.y[rows], None if self.weight is None else self.weight[rows])


@dataclass(frozen=True)
class Fold:
    """Which samples to learn from and which to score on."""

    number: int
    train: Indices
    test: Indices


def as_kernels(X: Any) -> list[AnyArray]:
    """Return precomputed kernels as a list of square matrices, which rows and columns can be taken from."""
    matrices = as_matrices(X)
    for m, K in enumerate(matrices):
        check_square(K, f"Kernel {m}")
    return matrices


def split(samples: Samples, cv: Any, groups: Any, classifier: bool = True) -> list[Fold]:
    """Return the folds of a number, a splitter or an iterable of pairs; None is 5 folds.

    Those of a ``classifier`` are stratified, and each has to have two classes to learn from.
    """
    X = samples.X[0] if isinstance(samples.X, list) else samples.X
    pairs = check_cv(cv, samples.y, classifier=classifier).split(X, samples.y, groups)
    rows = np.arange(len(samples.y))  # pairs may be masks
    folds = [Fold(number, rows[train], rows[test]) for number, (train, test) in enumerate(pairs)]
    if not folds:
        raise ValueError(f"cv={cv!r} gives no fold to score on; it needs at least one.")
    for fold in folds:
        if classifier and np.unique(samples.y[fold.train]).size < 2:
            raise ValueError(
                f"The training samples of fold {fold.number} are of 1 class only; use a stratified splitter, "
                "fewer folds, or shuffle the samples."
            )
    return folds


@dataclass(frozen=True)
class Search:
    """What is the same in every fold: kind and parameters of the model, the grid for M kernels, the score."""

    kind: type[Candidate]
    params: dict[str, Any]
    grid: Callable[[int], Grid]
    score: Score
    done: Callable[[int], None]

    def run(self, samples: Samples, fold: Fold, stop: Event) -> tuple[Grid, list[Row]]:
        """Fit and score all candidates of one fold; raises KeyboardInterrupt when told to stop before."""
        seen, unseen = samples.part(fold.train, fold.train), samples.part(fold.test, fold.train)
        reader = self.kind(**self.params)
        setting = reader._read(seen.X, seen.y, seen.weight)
        grid = self.grid(len(setting.fitted))
        candidates = {place: self.kind(**self.params | parts) for place, parts in grid.all_parts().items()}
        for place, candidate in candidates.items():
            candidate._adopt(reader)
            if grid.is_edge(place):  # the others are made of the same parts
                candidate._check(setting)
        outcomes = self._fit(candidates, grid, setting, stop)
        with looking_at(list(candidates.values()), unseen.X):
            rows = [
                Row(place, fold.number, score=self._score(candidate, unseen), **outcomes[place])
                for place, candidate in candidates.items()
            ]
        return grid, rows

    def _score(self, candidate: Candidate, unseen: Samples) -> float:
        return self.score(candidate, unseen.X, unseen.y, unseen.weight)

    def _fit(
        self, candidates: dict[Place, Candidate], grid: Grid, setting: Setting, stop: Event
    ) -> dict[Place, dict[str, Any]]:
        """Solve the candidates in turn on the same stored kernels, each from its neighbours."""
        models = list(candidates.values())
        task = models[0]._store(setting, models)
        solutions: dict[Place, list[Start]] = {}
        last: Place | None = None
        outcomes = {}
        for place, candidate in candidates.items():
            began = time.perf_counter()
            solved = candidate._solve(task, grid.start(place, candidate._geometry, solutions), stop)
            if stop.is_set():
                raise KeyboardInterrupt
            candidate._keep(task, solved)
            if last is not None:  # what is known there has served
                solutions[last] = [start.light for start in solutions[last]]
            solutions[place], last = starts(solved), place
            outcomes[place] = _outcome(candidate, solved) | {"seconds": time.perf_counter() - began}
            self.done(len(candidates))
        return outcomes


def _outcome(candidate: Candidate, solved: list[Solved]) -> dict[str, Any]:
    worst = max((s.result for s in solved), key=lambda result: result.certificate.relative_gap)
    return {
        "relative_gap": candidate.duality_gap_,
        "machines": sum(s.result.n_iter for s in solved),
        "active_kernels": int(np.atleast_2d(candidate.kernel_weights_).any(axis=0).sum()),
        "trouble": None if worst.stopped == "converged" else reason(worst.stopped, worst.n_iter),
    }
