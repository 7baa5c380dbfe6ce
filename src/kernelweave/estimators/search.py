"""The cross-validated search over the learner's and the geometry's parameter, on shared kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _check_sample_weight, _num_samples

from kernelweave._threads import blas_threads
from kernelweave.estimators.base import forget, learnt
from kernelweave.estimators.calibration import require_enough
from kernelweave.estimators.candidate import scorer_of
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.folds import Fold, Samples, Search, as_kernels, split
from kernelweave.estimators.frame import tidy
from kernelweave.estimators.grid import Axis, Grid, axis
from kernelweave.estimators.inputs import check_input, is_precomputed
from kernelweave.estimators.interrupt import interruptible
from kernelweave.estimators.progress import count_bar
from kernelweave.estimators.results import (
    Row,
    mean_scores,
    simplest_of_the_best,
    tidy_columns,
    warn_of_open_fits,
)
from kernelweave.estimators.targets import encode_labels, sample_weights, signs
from kernelweave.geometry import BoxSimplex
from kernelweave.gram.memory import budget


class MKLClassifierCV(MKLClassifier):
    r"""`MKLClassifier` with C and the geometry's parameter chosen by cross-validation.

    .. math:: \max_{C, \theta} \; \frac1k \sum_{\text{folds}} \text{score}(\text{model}_{C, \theta})

    In every fold the bank is fitted to the training samples and the Gram matrices are stored once for all
    candidates; each candidate starts from its solved neighbours on the grid; the decision values of all of
    them on the held-out samples come from one pass over the kernels.

    Parameters
    ----------
    bank, learner, solver, tol, max_iter, class_weight, multiclass, probability, dtype, memory_limit,
    random_state : as for `MKLClassifier`
        With ``probability`` only the final model is calibrated.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``BoxSimplex()``, from the average kernel to the simplex.
    learner_param : str or None, default=None
        The parameter of the learner to search; None is its natural one: C, or nu for `NuHinge`.
    learner_values : sequence or None, default=None
        Its values; None is 0.01 to 100 in powers of ten, or shares of the largest legal nu.
    geometry_param : str or None, default=None
        The parameter of the geometry to search; None is its natural one: theta, p or v (nu where the
        `BoxSimplex` was given by nu), and nothing for `Simplex` and `Uniform`.
    geometry_values : sequence or None, default=None
        Its values; None takes the geometry's own: θ in equal ratios from the smallest legal one, 1/M, to 1.
    cv : int, splitter, iterable of (train, test) or None, default=None
        The folds; None is 5 stratified ones.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn's that needs decision values or predictions; None is the accuracy.
    refit : bool, default=True
        Fit `MKLClassifier` with the best parameters to all samples; False leaves nothing to predict with.
    n_jobs : int or None, default=None
        Folds to run side by side, on threads; those left over work inside the folds. None is 1, −1 is all.
    verbose : int, default=0
        1 shows a bar over all candidates and folds with the time left.

    Attributes
    ----------
    best_params_ : dict, as for ``set_params`` of `MKLClassifier`
    best_score_ : float, the mean score of the best candidate over the folds
    best_index_ : tuple (i, j), the place of the best candidate in ``mean_score_``
    best_estimator_ : MKLClassifier fitted to all samples; with ``refit`` only
    mean_score_ : array of shape (learner values, geometry values)
    learner_values_, geometry_values_ : tuples, the axes of ``mean_score_``; (None,) where nothing is varied
    cv_results_ : dict of columns, one row per candidate and fold: the parameters, ``fold``, ``score``,
        ``relative_gap``, ``machines``, ``seconds``, ``active_kernels``; `frame` makes a table of it
    n_splits_ : int
    kernel_weights_, certificate_, ... : all that `MKLClassifier` learns, of ``best_estimator_``

    Notes
    -----
    Equal scores go to the simpler model: the smaller C (the larger nu), then the more even weights (smaller θ
    or v, larger p); values of any other parameter count from first to last as given. Held-out samples count
    by ``sample_weight`` where the scorer takes weights, else once each. Ctrl-C before the last candidate is
    done raises KeyboardInterrupt.
    Differs from the paper: it is in none; the scores are those of fits from scratch, up to ``tol``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import KernelBank, MKLClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> search = MKLClassifierCV(KernelBank.per_view(views=views), geometry_values=[1 / 3, 0.6, 1.0], cv=3)
    >>> search.fit(X / X.std(axis=0), y).mean_score_.shape
    (5, 3)
    >>> sorted(search.best_params_)
    ['geometry__theta', 'learner__C']
    >>> search.duality_gap_ < 1e-4
    True

    """

    defaults: ClassVar[dict[str, Callable[[], Any]]] = MKLClassifier.defaults | {"geometry": BoxSimplex}

    def __init__(
        self,
        bank: Any = None,
        *,
        learner: Any = None,
        geometry: Any = None,
        learner_param: str | None = None,
        learner_values: Any = None,
        geometry_param: str | None = None,
        geometry_values: Any = None,
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        class_weight: Any = None,
        multiclass: str = "per_class",
        probability: bool = False,
        dtype: str = "auto",
        memory_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            bank,
            learner=learner,
            geometry=geometry,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            class_weight=class_weight,
            multiclass=multiclass,
            probability=probability,
            dtype=dtype,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
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
        folds = split(samples, self.cv, groups)
        grid, rows = self._run(samples, folds, learner)
        self.n_splits_ = len(folds)
        self._keep_results(grid, rows)
        warn_of_open_fits(grid, rows, self.tol)
        if self.refit:
            best = MKLClassifier(**self._model_params() | grid.parts(self.best_index_))
            self.best_estimator_ = clone(best).fit(X, y, sample_weight)
            self.__dict__.update(learnt(self.best_estimator_))
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the best model on new samples, by ``scoring``."""
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        return scorer_of(self.scoring)(self, X, y, sample_weight)

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
        classes, index = encode_labels(y, n)
        if self.probability:
            require_enough(classes[index])
        weight = sample_weights(sample_weight, self.class_weight, classes, index)
        own = _own_values(self.part("learner"), signs(index, classes.size), weight)
        learner = axis("learner", self.part("learner"), self.learner_param, self.learner_values, own)
        given = None if sample_weight is None else _check_sample_weight(sample_weight, index)
        return Samples(table, classes[index], given), learner

    def _run(self, samples: Samples, folds: list[Fold], learner: Axis) -> tuple[Grid, list[Row]]:
        """Run the folds, side by side if asked to: the threads and the memory are shared out among them."""
        n_jobs = effective_n_jobs(self.n_jobs)
        together = min(n_jobs, len(folds))
        params = self._model_params() | {"n_jobs": n_jobs // together, "probability": False, "verbose": 0}
        if together > 1:
            params["memory_limit"] = budget(self.memory_limit) / together
        # The limit on BLAS is the process's, so it is set once: folds on threads would undo each other's.
        with count_bar(self.verbose, "search") as bar, blas_threads(1):
            search = Search(
                params=params,
                grid=partial(self._grid, learner),
                score=scorer_of(self.scoring),
                done=lambda count: bar(count * len(folds)),
            )
            results = interruptible([partial(search.run, samples, fold) for fold in folds], together)
        return results[0][0], [row for _, rows in results for row in rows]

    def _grid(self, learner: Axis, n_kernels: int) -> Grid:
        part = self.part("geometry")
        own = _own_values(part, n_kernels)
        return Grid(learner, axis("geometry", part, self.geometry_param, self.geometry_values, own))

    def _model_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in MKLClassifier._get_param_names()}

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
                "use refit=True, or MKLClassifier with best_params_."
            )
        super()._require_fit(attribute)


def _own_values(part: Any, *about: Any) -> tuple[Any, ...]:
    """Return the values a part would try, of the parameter it varies, if it has one."""
    return () if getattr(part, "tunable", None) is None else part.grid(*about)
