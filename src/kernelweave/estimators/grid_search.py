"""The search of a grid: a parameter of the learner by one of the geometry, fold by fold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from numbers import Real
from threading import Event
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank.precomputed import as_matrices
from kernelweave.estimators.base import KnownDecisions, accuracy, decision_values
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.training import FitResult, TrainingData, stop_reason, warn_outside
from kernelweave.kernels.checks import check_square
from kernelweave.solvers import WarmStart
from kernelweave.solvers.warm_start import representative_rows

Place = tuple[int, int]
Score = Callable[[Any, Any, AnyArray, AnyArray | None], float]


# -- the grid


@dataclass(frozen=True)
class ParameterAxis:
    """One parameter of a part and its values as given; ``order`` has their positions, from simple to complex.

    ``name`` is as in ``set_params``; None where there is nothing to vary, with one value that stands for the
    part as it is.
    """

    part: Any
    name: str | None
    values: tuple[Any, ...]
    order: tuple[int, ...]

    def params(self, position: int) -> dict[str, Any]:
        """Return the parameter with its value at this position."""
        return {} if self.name is None else {self.name: self.values[position]}

    def at(self, position: int) -> Any:
        """Return a copy of the part with the value at this position."""
        inner = {name.partition("__")[2]: value for name, value in self.params(position).items()}
        return clone(self.part).set_params(**inner)


def parameter_axis(
    role: str, part: Any, param: str | None, values: Any, default: Sequence[Any]
) -> ParameterAxis:
    """Return the axis of a part: the parameter asked for, or its own, with the values given, or its own.

    The part's own values run from simple to complex, which gives the direction of given ones; values of a
    parameter of which nothing is known count from first to last.
    """
    own = getattr(part, "tunable", None)
    name = own if param is None else param
    if name is None:
        if values is not None:
            raise ValueError(
                f"{role}_values were given, but {type(part).__name__} has no parameter that is varied unless "
                f"named: leave them out, name one as {role}_param, or take another {role}."
            )
        return ParameterAxis(part, None, (None,), (0,))
    if values is None and name != own:
        raise ValueError(f"{role}_param={name!r} needs {role}_values: there are none to try unless given.")
    chosen = tuple(default) if values is None else _as_values(role, values)
    positions = list(range(len(chosen)))
    if name == own and len(default) > 1 and all(isinstance(value, Real) for value in chosen):
        positions.sort(key=chosen.__getitem__, reverse=default[0] > default[-1])
    return ParameterAxis(part, f"{role}__{name}", chosen, tuple(positions))


def _as_values(role: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{role}_values must be a sequence of values such as [0.1, 1.0]; got {values!r}.")
    chosen = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if not chosen:
        raise ValueError(f"{role}_values must have at least one value; got none.")
    return chosen


@dataclass(frozen=True)
class ParameterGrid:
    """All pairs of values of the two axes, at places (learner, geometry) as they were given."""

    learner: ParameterAxis
    geometry: ParameterAxis

    @property
    def shape(self) -> Place:
        return len(self.learner.values), len(self.geometry.values)

    def places(self) -> Iterator[Place]:
        """Yield every place in the order of visits: simple to complex, the geometry running fastest."""
        for i in self.learner.order:
            for j in self.geometry.order:
                yield i, j

    def params(self, place: Place) -> dict[str, Any]:
        """Return the parameters at a place, as ``set_params`` takes them."""
        return self.learner.params(place[0]) | self.geometry.params(place[1])

    def parts(self, place: Place) -> dict[str, Any]:
        """Return learner and geometry at a place."""
        return {"learner": self.learner.at(place[0]), "geometry": self.geometry.at(place[1])}

    def all_parts(self) -> dict[Place, dict[str, Any]]:
        """Return learner and geometry at every place, in the order of visits; rows and columns share them."""
        learners = [self.learner.at(i) for i in range(self.shape[0])]
        geometries = [self.geometry.at(j) for j in range(self.shape[1])]
        return {(i, j): {"learner": learners[i], "geometry": geometries[j]} for i, j in self.places()}

    def is_edge(self, place: Place) -> bool:
        """Tell whether a place is among those that have every learner and every geometry once."""
        return 0 in place

    def start(self, place: Place, solutions: Mapping[Place, list[WarmStart]]) -> list[WarmStart] | None:
        """Return the solution to start from at a place: its neighbour's on the left, or below it."""
        a, b = self.learner.order.index(place[0]), self.geometry.order.index(place[1])
        if b:
            return solutions[place[0], self.geometry.order[b - 1]]
        return solutions[self.learner.order[a - 1], place[1]] if a else None


# -- one fold

# A search on some of the samples has as many of every class, if there are.
LEAST_OF_A_CLASS = 20


@dataclass(frozen=True)
class SplittableSamples:
    """Samples that can be split: a table, Views, or a list of square kernel matrices."""

    X: Any
    y: AnyArray
    weight: AnyArray | None

    def part(self, rows: Indices, columns: Indices) -> SplittableSamples:
        """Return some of the samples; of kernel matrices only the columns of those they are compared with."""
        if isinstance(self.X, list):
            X: Any = [K[np.ix_(rows, columns)] for K in self.X]
        else:
            X = _safe_indexing(self.X, rows)
        return SplittableSamples(X, self.y[rows], None if self.weight is None else self.weight[rows])

    def at_most(
        self, size: int, groups: Any = None, *, by_class: bool = True
    ) -> tuple[SplittableSamples, Any]:
        """Return about so many of the samples, spread evenly over their targets, and the groups they belong to.

        Of every class there are a few, so that no fold lacks one for this reason alone.
        """
        n = len(self.y)
        if n <= size:
            return self, groups
        _, codes = np.unique(self.y, return_inverse=True, axis=0)
        codes = codes.reshape(n)
        rows = representative_rows(codes, np.arange(n), size)
        if by_class:
            few = max(1, min(LEAST_OF_A_CLASS, size // (codes.max() + 1)))
            rare = np.flatnonzero(np.bincount(codes[rows], minlength=codes.max() + 1) < few)
            some = [representative_rows(codes, np.flatnonzero(codes == c), few) for c in rare]
            rows = np.sort(np.concatenate([rows[~np.isin(codes[rows], rare)], *some]))
        return self.part(rows, rows), None if groups is None else np.asarray(groups)[rows]


@dataclass(frozen=True)
class SearchFold:
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


def split(samples: SplittableSamples, cv: Any, groups: Any, classifier: bool = True) -> list[SearchFold]:
    """Return the folds of a number, a splitter or an iterable of pairs; None is 5 folds.

    Those of a ``classifier`` are stratified, and each has to have two classes to learn from.
    """
    X = samples.X[0] if isinstance(samples.X, list) else samples.X
    pairs = check_cv(cv, samples.y, classifier=classifier).split(X, samples.y, groups)
    rows = np.arange(len(samples.y))  # pairs may be masks
    folds = [SearchFold(number, rows[train], rows[test]) for number, (train, test) in enumerate(pairs)]
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
class FoldSearch:
    """What is the same in every fold: kind and parameters of the model, the grid for M kernels, the score."""

    kind: type[MKLModel]
    params: dict[str, Any]
    grid: Callable[[int], ParameterGrid]
    score: Score
    done: Callable[[int], None]

    def run(
        self, samples: SplittableSamples, fold: SearchFold, stop: Event
    ) -> tuple[ParameterGrid, list[CandidateRow]]:
        """Fit and score all candidates of one fold; raises KeyboardInterrupt when told to stop before."""
        seen, unseen = samples.part(fold.train, fold.train), samples.part(fold.test, fold.train)
        reader = self.kind(**self.params)
        data = reader._validate(seen.X, seen.y, seen.weight)
        grid = self.grid(len(data.kernels))
        candidates = {place: self.kind(**self.params | parts) for place, parts in grid.all_parts().items()}
        for place, candidate in candidates.items():
            candidate._copy_metadata(reader)
            if grid.is_edge(place):  # the others are made of the same parts
                candidate._check_parameters()
                candidate._check_parts(data)
        outcomes = self._fit(candidates, grid, data, stop)
        values = decision_values(list(candidates.values()), unseen.X)
        rows = []
        for (place, candidate), known in zip(candidates.items(), values, strict=True):
            answering = KnownDecisions(candidate, unseen.X, known)
            score = self.score(answering, unseen.X, unseen.y, unseen.weight)
            rows.append(CandidateRow(place, fold.number, score=score, **outcomes[place]))
        return grid, rows

    def _fit(
        self, candidates: dict[Place, MKLModel], grid: ParameterGrid, data: TrainingData, stop: Event
    ) -> dict[Place, dict[str, Any]]:
        """Solve the candidates in turn on the same stored kernels, each from its neighbour."""
        models = list(candidates.values())
        task = models[0]._build_grams(data, models)
        solutions: dict[Place, list[WarmStart]] = {}
        outcomes = {}
        for place, candidate in candidates.items():
            began = time.perf_counter()
            results = candidate._solve(task, grid.start(place, solutions), stop)
            if stop.is_set():
                raise KeyboardInterrupt
            candidate._set_fitted(task, results)
            solutions[place] = [result.warm_start for result in results]
            outcomes[place] = _outcome(candidate, results) | {"seconds": time.perf_counter() - began}
            self.done(len(candidates))
        return outcomes


def _outcome(candidate: MKLModel, solved: list[FitResult]) -> dict[str, Any]:
    worst = max((s.result for s in solved), key=lambda result: result.certificate.relative_gap)
    return {
        "relative_gap": candidate.duality_gap_,
        "machines": sum(s.result.n_iter for s in solved),
        "active_kernels": int(np.atleast_2d(candidate.kernel_weights_).any(axis=0).sum()),
        "trouble": None if worst.stopped == "converged" else stop_reason(worst.stopped, worst.n_iter),
    }


# -- scores and results


def scorer_of(scoring: Any, kind: type[MKLModel]) -> Score:
    """Return the score a parameter stands for, if decision values or predictions are all it needs.

    Weights are passed on where the scorer takes them.
    """
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError(
            f"scoring must be one scorer, which picks the best parameters; got {scoring!r}: name one of them."
        )
    if scoring is None and is_classifier(kind()):
        # The accuracy, without checking labels that are known to be valid in every fold and candidate.
        return lambda model, X, y, weight: accuracy(model.predict(X), y, weight)
    scorer = check_scoring(kind(), scoring=scoring)
    needs = getattr(scorer, "_response_method", "predict")
    if "predict_proba" in needs and "decision_function" not in needs:  # a name, or several to choose from
        raise ValueError(
            f"scoring={scoring!r} needs probabilities, so a calibration of every candidate; a search scores "
            "decision values or predictions, such as 'accuracy', 'balanced_accuracy' or 'roc_auc'."
        )
    takes_weights = _takes_weights(scorer)

    def score(model: Any, X: Any, y: AnyArray, weight: AnyArray | None) -> float:
        weights = {"sample_weight": weight} if takes_weights and weight is not None else {}
        return float(scorer(model, X, y, **weights))

    return score


def _takes_weights(scorer: Any) -> bool:
    if hasattr(
        scorer, "_accept_sample_weight"
    ):  # one of scikit-learn's, around a function that may or may not
        return bool(scorer._accept_sample_weight())
    return "sample_weight" in signature(scorer).parameters


@dataclass(frozen=True)
class CandidateRow:
    """What became of one candidate in one fold; ``trouble`` says why it stopped above the tolerance."""

    place: Place
    fold: int
    score: float
    relative_gap: float
    machines: int
    seconds: float
    active_kernels: int
    trouble: str | None


def tidy_columns(grid: ParameterGrid, rows: list[CandidateRow]) -> dict[str, AnyArray]:
    """Return the rows as columns: the parameters by name, then what was measured."""
    rows = sorted(rows, key=lambda row: (row.place, row.fold))
    params = [grid.params(row.place) for row in rows]
    measured = ("fold", "score", "relative_gap", "machines", "seconds", "active_kernels")
    columns = {name: _column([values[name] for values in params]) for name in params[0]}
    return columns | {name: np.array([getattr(row, name) for row in rows]) for name in measured}


def mean_scores(grid: ParameterGrid, rows: list[CandidateRow]) -> Matrix:
    """Return the mean score over the folds for every place of the grid."""
    rows = sorted(rows, key=lambda row: (row.place, row.fold))
    scores = np.array([row.score for row in rows]).reshape(*grid.shape, -1)
    return np.asarray(scores.mean(axis=2))


def simplest_of_the_best(grid: ParameterGrid, scores: Matrix) -> Place:
    """Return the place of the highest score; of equal ones the simplest, which is visited first."""
    if np.isnan(scores).all():
        raise ValueError(
            "No candidate has a score that is a number in every fold; look at the scorer and at the folds."
        )
    # Scores that differ by less are equal: the same numbers were added in another order.
    best = np.isclose(scores, np.nanmax(scores), rtol=1e-10, atol=1e-10)
    return next(place for place in grid.places() if best[place])


def warn_of_open_fits(grid: ParameterGrid, rows: list[CandidateRow], tol: float) -> None:
    """Say once for all fits of a search which certificates did not reach the tolerance."""
    still_open = [row for row in rows if row.trouble is not None]
    if not still_open:
        return
    worst = max(still_open, key=lambda row: row.relative_gap)
    where = [f"{name}={value}" for name, value in grid.params(worst.place).items()] + [f"fold {worst.fold}"]
    warn_outside(
        f"Stopped at a relative duality gap of {worst.relative_gap:.2e}, above tol={tol:.2e}, in the worst "
        f"({', '.join(where)}) of {len(still_open)} such fits among the {len(rows)} of the search: "
        f"{worst.trouble}.",
        ConvergenceWarning,
    )


def _column(values: list[Any]) -> AnyArray:
    """Return values as an array with one entry each, whatever they are."""
    if all(isinstance(value, Real) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
