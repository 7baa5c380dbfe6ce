"""The cross-validated search over the learner's and the geometry's parameter, on shared kernels."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, ClassVar, Self

from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight, _num_samples

from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix
from kernelweave.estimators.base import forget, learnt
from kernelweave.estimators.candidate import Candidate, scorer_of
from kernelweave.estimators.folds import Fold, Samples, Search, as_kernels, split
from kernelweave.estimators.frame import tidy
from kernelweave.estimators.grid import Axis, Grid, axis
from kernelweave.estimators.inputs import check_input, is_precomputed
from kernelweave.estimators.interrupt import interruptible
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.results import (
    Row,
    mean_scores,
    simplest_of_the_best,
    tidy_columns,
    warn_of_open_fits,
)
from kernelweave.gram.memory import budget


class SearchedModel(MKLModel):
    """A model whose learner's and geometry's parameter are chosen by cross-validation.

    Subclasses name the ``model`` that is fitted at last and the ``candidate`` that stands for it in folds.
    """

    model: ClassVar[type[MKLModel]]
    candidate: ClassVar[type[Candidate]]

    def __init__(
        self,
        bank: Any,
        *,
        learner_param: str | None,
        learner_values: Any,
        geometry_param: str | None,
        geometry_values: Any,
        cv: Any,
        scoring: Any,
        refit: bool,
        **model: Any,
    ) -> None:
        super().__init__(bank, **model)
        self.learner_param = learner_param
        self.learner_values = learner_values
        self.geometry_param = geometry_param
        self.geometry_values = geometry_values
        self.cv = cv
        self.scoring = scoring
        self.refit = refit

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Search the grid, then fit the best model to all samples; ``groups`` are for the splitter."""
        self._check_parameters()
        forget(self)
        samples, learner = self._samples(X, y, sample_weight)
        folds = split(samples, self.cv, groups, is_classifier(self))
        grid, rows = self._run(samples, folds, learner)
        self.n_splits_ = len(folds)
        self._keep_results(grid, rows)
        warn_of_open_fits(grid, rows, self.tol)
        if self.refit:
            best = self.model(**self._model_params() | grid.parts(self.best_index_))
            self.best_estimator_ = clone(best).fit(X, y, sample_weight)
            self.__dict__.update(learnt(self.best_estimator_))
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the best model on new samples, by ``scoring``."""
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        return scorer_of(self.scoring, self.candidate)(self, X, y, sample_weight)

    def frame(self) -> Any:
        """Return ``cv_results_`` as a tidy pandas frame: one row per candidate and fold."""
        if not hasattr(self, "cv_results_"):
            raise NotFittedError("There are no results yet: call fit first.")
        return tidy(self.cv_results_)

    def _samples(self, X: Any, y: Any, sample_weight: Any) -> tuple[Samples, Axis]:
        """Check the samples, make them ready to be split, and say what to vary of the learner."""
        table = check_input(self, X, reset=True)
        if is_precomputed(self.bank):
            table = as_kernels(table)
        n = len(table[0]) if isinstance(table, list) else _num_samples(table)
        columns, weight, _ = self._columns(y, sample_weight, n)
        targets = self._split_targets(y, columns)
        own = _own_values(self.part("learner"), columns, weight)
        learner = axis("learner", self.part("learner"), self.learner_param, self.learner_values, own)
        given = None if sample_weight is None else _check_sample_weight(sample_weight, columns)
        return Samples(table, targets, given), learner

    @abstractmethod
    def _split_targets(self, y: Any, columns: Matrix) -> AnyArray:
        """Return y as it is handed to the candidates of every fold."""

    def _run(self, samples: Samples, folds: list[Fold], learner: Axis) -> tuple[Grid, list[Row]]:
        """Run the folds, side by side if asked to: the threads and the memory are shared out among them."""
        n_jobs = effective_n_jobs(self.n_jobs)
        together = min(n_jobs, len(folds))
        params = self._model_params() | {"n_jobs": n_jobs // together, "verbose": 0}
        if "probability" in params:
            params["probability"] = False
        if together > 1:
            params["memory_limit"] = budget(self.memory_limit) / together
        # The limit on BLAS is the process's, so it is set once: folds on threads would undo each other's.
        with count_bar(self.verbose, "search") as bar, blas_threads(1):
            search = Search(
                kind=self.candidate,
                params=params,
                grid=partial(self._grid, learner),
                score=scorer_of(self.scoring, self.candidate),
                done=lambda count: bar(count * len(folds)),
            )
            results = interruptible([partial(search.run, samples, fold) for fold in folds], together)
        return results[0][0], [row for _, rows in results for row in rows]

    def _grid(self, learner: Axis, n_kernels: int) -> Grid:
        part = self.part("geometry")
        own = _own_values(part, n_kernels)
        return Grid(learner, axis("geometry", part, self.geometry_param, self.geometry_values, own))

    def _model_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model._get_param_names()}

    def _keep_results(self, grid: Grid, rows: list[Row]) -> None:
        self.learner_values_, self.geometry_values_ = grid.learner.values, grid.geometry.values
        self.cv_results_ = tidy_columns(grid, rows)
        self.mean_score_ = mean_scores(grid, rows)
        self.best_index_ = simplest_of_the_best(grid, self.mean_score_)
        self.best_score_ = float(self.mean_score_[self.best_index_])
        self.best_params_ = grid.params(self.best_index_)

    def _require_fit(self, attribute: str | None = None) -> None:
        if hasattr(self, "cv_results_") and not hasattr(self, "best_estimator_"):
            raise NotFittedError(
                "The search has found the best parameters, but refit=False leaves no model to predict with; "
                f"use refit=True, or {self.model.__name__} with best_params_."
            )
        super()._require_fit(attribute)


def _own_values(part: Any, *about: Any) -> tuple[Any, ...]:
    """Return the values a part would try, of the parameter it varies, if it has one."""
    return () if getattr(part, "tunable", None) is None else part.grid(*about)
