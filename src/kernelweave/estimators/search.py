"""Estimators that search a parameter of the learner and one of the geometry by cross-validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, _num_samples

from kernelweave._threads import blas_threads, threads_for
from kernelweave._typing import AnyArray, Matrix
from kernelweave.bank import KernelBank
from kernelweave.bank.prepared import PreparedBank
from kernelweave.estimators.averaged_search import (
    Average,
    Candidate,
    HeldOutSearch,
    average,
    candidate_weights,
    candidates,
    union_bank,
)
from kernelweave.estimators.base import fitted_attributes, reset, wants_probability
from kernelweave.estimators.calibration import require_enough
from kernelweave.estimators.class_targets import indicators, is_multilabel
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.frame import tidy
from kernelweave.estimators.grid_search import (
    CandidateRow,
    FoldSearch,
    ParameterAxis,
    ParameterGrid,
    SearchFold,
    SplittableSamples,
    as_kernels,
    mean_scores,
    parameter_axis,
    scorer_of,
    simplest_of_the_best,
    split,
    tidy_columns,
    warn_of_open_fits,
)
from kernelweave.estimators.held_out_loss import log_probabilities
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.progress import count_bar, interruptible
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.training import warn_outside
from kernelweave.estimators.validation import check_count, check_input, is_precomputed, require_same_rows
from kernelweave.geometry import BoxSimplex, Point
from kernelweave.gram.memory import budget
from kernelweave.learners import Hinge
from kernelweave.views.batches import Batches

# Folds of the search that averages candidates; fewer where a class has fewer samples.
N_FOLDS = 5
# So many values of C its progress bar counts on.
USUAL_COSTS = 4


class SearchedModel(MKLModel):
    """A model whose learner's and geometry's parameter are chosen by cross-validation.

    Subclasses name the ``model`` that is fitted in every fold and to all samples at last.
    """

    model: ClassVar[type[MKLModel]]
    refits_on_resamples: ClassVar[bool] = False  # its best_estimator_ does

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
        search_samples: int | None,
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
        self.search_samples = search_samples

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Search the grid, then fit the best model to all samples; ``groups`` are for the splitter."""
        self._check_parameters()
        if isinstance(X, Batches) or hasattr(X, "to_delayed"):
            raise ValueError(f"{self._needs_one_table()}; got {type(X).__name__}.")
        require_same_rows(X, y)
        check_count("search_samples", self.search_samples, optional=True)
        reset(self)
        samples, learner = self._samples(X, y, sample_weight)
        by_number = self.cv is None or isinstance(self.cv, Integral) or hasattr(self.cv, "split")
        if self.search_samples is not None and by_number:  # pairs of indices speak of all samples
            samples, groups = samples.at_most(self.search_samples, groups, by_class=is_classifier(self))
        self.n_search_samples_ = len(samples.y)
        folds = split(samples, self._splitter(samples), groups, is_classifier(self))
        self.n_splits_ = len(folds)
        best = self._search(samples, folds, learner)
        if self.refit:
            self.best_estimator_ = clone(best).fit(X, y, sample_weight)
            self.__dict__.update(fitted_attributes(self.best_estimator_))
        return self

    def _splitter(self, samples: SplittableSamples) -> Any:  # noqa: ARG002 - for those whose folds depend on them
        """Return the folds, as ``cv`` names them."""
        return self.cv

    def _search(
        self, samples: SplittableSamples, folds: list[SearchFold], learner: ParameterAxis
    ) -> MKLModel:
        """Search the grid, keep its results, and return the best model, not fitted."""
        grid, rows = self._run(samples, folds, learner)
        self._keep_results(grid, rows)
        warn_of_open_fits(grid, rows, self.tol)
        return self.model(**self._model_params() | grid.parts(self.best_index_))

    @property
    def partial_fit(self) -> NoReturn:
        """Not there: a search cannot learn from a stream."""
        raise AttributeError(f"{self._needs_one_table()}; it has no partial_fit.")

    def _needs_one_table(self) -> str:
        return (
            f"{type(self).__name__} splits its samples into folds and needs them in one table: for batches and streams "
            f"use {self.model.__name__} with features= and parameters chosen on some of the samples"
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the best model on new samples, by ``scoring``."""
        if self.scoring is None:
            return float(super().score(X, y, sample_weight))
        return scorer_of(self.scoring, self.model)(self, X, y, sample_weight)

    def frame(self) -> Any:
        """Return ``cv_results_`` as a tidy pandas frame: one row per candidate and fold."""
        if not hasattr(self, "cv_results_"):
            raise NotFittedError("There are no results yet: call fit first.")
        return tidy(self.cv_results_)

    def _samples(self, X: Any, y: Any, sample_weight: Any) -> tuple[SplittableSamples, ParameterAxis]:
        """Check the samples, make them ready to be split, and say what to vary of the learner."""
        table = check_input(self, X, reset=True)
        if is_precomputed(self.bank):
            table = as_kernels(table)
        n = len(table[0]) if isinstance(table, list) else _num_samples(table)
        columns, weight, _ = self._encode_targets(y, sample_weight, n)
        targets = self._split_targets(y, columns)
        own = _own_values(self.part("learner"), columns, weight)
        learner = parameter_axis(
            "learner", self.part("learner"), self.learner_param, self.learner_values, own
        )
        given = None if sample_weight is None else _check_sample_weight(sample_weight, columns)
        return SplittableSamples(table, targets, given), learner

    @abstractmethod
    def _split_targets(self, y: Any, columns: Matrix) -> AnyArray:
        """Return y as it is handed to the candidates of every fold."""

    def _run(
        self, samples: SplittableSamples, folds: list[SearchFold], learner: ParameterAxis
    ) -> tuple[ParameterGrid, list[CandidateRow]]:
        """Run the folds, side by side if asked to: the threads and the memory are shared out among them."""
        n_jobs = threads_for(self.n_jobs)
        together = min(n_jobs, len(folds))
        params = self._model_params() | {"n_jobs": n_jobs // together, "verbose": 0, "features": None}
        if "probability" in params:
            params["probability"] = False
        if together > 1:
            params["memory_limit"] = budget(self.memory_limit) / together
        # The limit on BLAS is the process's, so it is set once: folds on threads would undo each other's.
        with count_bar(self.verbose, "search") as bar, blas_threads(1):
            search = FoldSearch(
                kind=self.model,
                params=params,
                grid=partial(self._grid, learner),
                score=scorer_of(self.scoring, self.model),
                done=lambda count: bar(count * len(folds)),
            )
            results = interruptible([partial(search.run, samples, fold) for fold in folds], together)
        return results[0][0], [row for _, rows in results for row in rows]

    def _grid(self, learner: ParameterAxis, n_kernels: int) -> ParameterGrid:
        part = self.part("geometry")
        own = _own_values(part, n_kernels)
        return ParameterGrid(
            learner, parameter_axis("geometry", part, self.geometry_param, self.geometry_values, own)
        )

    def _model_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model._get_param_names()}

    def _keep_results(self, grid: ParameterGrid, rows: list[CandidateRow]) -> None:
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


def has_probabilities(estimator: Any) -> bool:
    """Tell whether probabilities are on offer: of the search that averages candidates, or calibrated ones."""
    return estimator.averages or wants_probability(estimator)


class MKLClassifierCV(SearchedModel, MKLClassifier):
    r"""`MKLClassifier` with kernels, weights and C chosen by cross-validation; with probabilities.

    .. math:: K = \sum_c w_c K_c, \quad w_c \propto e^{-n \ell_c / 2}, \qquad
       \max_{C, \theta} \; \frac1k \sum_{\text{folds}} \text{score}(\text{model}_{C, \theta})

    With nothing named (first formula) eight candidate kernels are scored by their log loss ℓ on held-out samples
    and averaged: linear, Gaussian and Laplacian kernels of unit variance on the columns as z-scores, by rank, and
    in their own unit; columns that are no plain numbers are prepared in one way. In each candidate a view counts by
    its alignment with the labels over pairs of different samples. C is then chosen by the same loss, and one
    `MKLClassifier` is fitted to all samples, whose certificate is that of the averaged kernel.

    With a bank, learner, geometry, scoring or values named (second formula) a grid of C and the geometry's
    parameter is searched. In every fold the bank is fitted to the training samples and the Gram matrices are stored
    once for all candidates; each candidate starts from its solved neighbours on the grid; the decision values of
    all of them on the held-out samples come from one pass over the kernels.

    Parameters
    ----------
    bank : KernelBank, "precomputed" or None, default=None
        None is `KernelBank.prepared()`; that bank without kernels of its own counts as not named, so that it can
        name views of a table.
    learner, solver, tol, max_iter, class_weight, multiclass, probability, dtype, memory_limit, random_state : as for
        `MKLClassifier`
        With ``probability`` the final model is calibrated too, and probabilities are those of the calibration.
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``BoxSimplex()`` in a grid, from the average kernel to the simplex.
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
        The folds; None is 5 stratified ones. With nothing named they are drawn by ``random_state``, and fewer where
        a class has fewer samples.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn's that needs decision values or predictions; None is the accuracy.
    refit : bool, default=True
        Fit `MKLClassifier` with the best parameters to all samples; False leaves nothing to predict with.
    search_samples : int or None, default=3000
        About how many samples the search looks at: classes in proportion, but 20 of each at least where there are
        so many. The last fit is to all, at the same C. None, or folds given as pairs: the search sees all.
    features : Landmarks, RandomFourier or None, default=None
        For the last fit, as in `MKLClassifier`; the search has the kernels themselves.
    n_jobs : int or None, default=None
        Folds to run side by side, on threads; those left over work inside the folds. None is 1, −1 is all.
    verbose : int, default=0
        1 shows a bar over all candidates and folds with the time left.

    Attributes
    ----------
    candidate_weights_, candidate_losses_ : dicts of candidate to its share of the kernel, and to its held-out log
        loss at C = 3; with nothing named
    temperature_ : float, what decision values are multiplied by for probabilities; with nothing named
    best_params_ : dict, as for ``set_params`` of `MKLClassifier`
    best_score_ : float, the mean score of the best candidate over the folds
    best_index_ : tuple (i, j), the place of the best candidate in ``mean_score_``
    best_estimator_ : MKLClassifier fitted to all samples; with ``refit`` only
    mean_score_ : array of shape (learner values, geometry values)
    learner_values_, geometry_values_ : tuples, the axes of ``mean_score_``; (None,) where nothing is varied
    cv_results_ : dict of columns, one row per candidate and fold: the parameters, ``fold``, ``score``,
        ``relative_gap``, ``machines``, ``seconds``, ``active_kernels``; `frame` makes a table of it. With nothing
        named one row per candidate, and per C of their average: ``candidate``, ``learner__C``, ``log_loss``,
        ``temperature``, ``score``
    n_splits_ : int
    n_search_samples_ : int, how many samples the search looked at
    kernel_weights_, certificate_, ... : all that `MKLClassifier` learns, of ``best_estimator_``

    Notes
    -----
    From some thousands of samples on the search costs much the same whatever their number, and the last fit is a
    small part of it: raise ``search_samples`` where the scores of the best candidates are closer than their noise,
    about the root of score × (1 − score) / search_samples.
    Candidates with less than e⁻⁵ of the best one's weight are dropped. C goes from 3 up or down by half decades while
    the held-out loss falls. Probabilities are a softmax of the decision values (of two classes, of −f and f) times
    the temperature that had the least held-out loss; they cost no further fit.
    In a grid equal scores go to the simpler model: the smaller C (the larger nu), then the more even weights (smaller
    θ or v, larger p); values of any other parameter count from first to last as given. Held-out samples count
    by ``sample_weight`` where the scorer takes weights, else once each. Ctrl-C before the last candidate is
    done raises KeyboardInterrupt.
    Differs from the paper: it is in none; the scores are those of fits from scratch, up to ``tol``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer, load_wine
    >>> from kernelweave import KernelBank, MKLClassifierCV
    >>> model = MKLClassifierCV().fit(*load_wine(return_X_y=True))
    >>> sum(model.candidate_weights_.values()).__round__(6)
    1.0
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

    model = MKLClassifier
    defaults: ClassVar[dict[str, Callable[[], Any]]] = MKLClassifier.defaults | {"geometry": BoxSimplex}
    defaults_without_bank: ClassVar[dict[str, Callable[[], Any]]] = {"bank": KernelBank.prepared}

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
        search_samples: int | None = 3000,
        features: Any = None,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        class_weight: Any = None,
        multiclass: str = "shared",
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
            learner_param=learner_param,
            learner_values=learner_values,
            geometry_param=geometry_param,
            geometry_values=geometry_values,
            cv=cv,
            scoring=scoring,
            refit=refit,
            search_samples=search_samples,
            features=features,
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

    def _split_targets(self, y: Any, columns: Matrix) -> AnyArray:  # noqa: ARG002 - labels, not signs
        self.multilabel_ = is_multilabel(y)
        labels = indicators(y) if self.multilabel_ else np.asarray(y).ravel()
        if self.probability:
            require_enough(labels)
        return labels

    @property
    def averages(self) -> bool:
        """Whether candidates are averaged, as nothing else to search is named and there is one label per sample."""
        named = (self.learner, self.geometry, self.scoring, self.learner_param, self.geometry_param)
        values = (self.learner_values, self.geometry_values)
        unnamed = isinstance(bank := self.part("bank"), PreparedBank) and bank.is_default
        one_label = self.multiclass != "one_vs_one" and not getattr(self, "multilabel_", False)
        return unnamed and one_label and all(one is None for one in (*named, *values))

    def _splitter(self, samples: SplittableSamples) -> Any:
        if self.cv is not None or not self.averages:
            return self.cv
        _, counts = np.unique(samples.y, return_counts=True)
        seed = 0 if self.random_state is None else self.random_state
        return StratifiedKFold(int(np.clip(counts.min(), 2, N_FOLDS)), shuffle=True, random_state=seed)

    def _search(
        self, samples: SplittableSamples, folds: list[SearchFold], learner: ParameterAxis
    ) -> MKLModel:
        if not self.averages:
            return super()._search(samples, folds, learner)
        quiet = {"n_jobs": 1, "verbose": 0, "features": None, "probability": False}
        union = union_bank(candidates(), self.part("bank"))
        reader = self.model(**self._model_params() | quiet | {"bank": union})
        everything = reader._validate(samples.X, samples.y, samples.weight)
        every = [one for one in candidates() if one.is_of_its_own(everything.kernels)]
        found = self._average(reader, every, samples, folds)
        self._keep_average(every, found)
        kept = [one for one, weight in zip(every, found.weights, strict=True) if weight > 0.0]
        bank = union_bank(kept, self.part("bank"))
        each = candidate_weights(everything.kernels, every, everything.Y, everything.weight)
        known = dict(zip(everything.kernels.names, found.weights @ each, strict=True))
        reader.set_params(bank=bank)
        names = reader._validate(samples.X, samples.y, samples.weight).kernels.names
        weights = [float(known[name]) for name in names]
        best = {"bank": bank, "learner": Hinge(found.best.C), "geometry": Point(weights)}
        return self.model(**self._model_params() | best)

    def _average(
        self,
        reader: MKLClassifier,
        every: list[Candidate],
        samples: SplittableSamples,
        folds: list[SearchFold],
    ) -> Average:
        """Return what the folds say of the candidates and of C."""
        together = min(threads_for(self.n_jobs), len(folds))
        steps = len(folds) * (len(every) + USUAL_COSTS)
        with count_bar(self.verbose, "search") as bar:
            memory = budget(self.memory_limit)
            return average(HeldOutSearch(reader, every, samples, folds, memory, together, lambda: bar(steps)))

    def _keep_average(self, every: list[Candidate], found: Average) -> None:
        names = [one.name for one in every]
        losses = [one.loss for one in found.outcomes]
        self.candidate_weights_ = dict(zip(names, found.weights.tolist(), strict=True))
        self.candidate_losses_ = dict(zip(names, losses, strict=True))
        self.temperature_ = found.best.temperature
        self.best_params_ = {"learner__C": found.best.C}
        self.best_score_ = found.best.accuracy
        path = sorted(found.path, key=lambda one: one.C)
        rows = [*zip(names, found.outcomes, strict=True), *(("average", one) for one in path)]
        self.cv_results_ = {
            "candidate": np.array([name for name, _ in rows]),
            "learner__C": np.array([one.C for _, one in rows]),
            "log_loss": np.array([one.loss for _, one in rows]),
            "temperature": np.array([one.temperature for _, one in rows]),
            "score": np.array([one.accuracy for _, one in rows]),
        }
        if found.ends_at_edge:
            warn_outside(
                f"The search for C ends at C={found.best.C:g}, where the held-out log loss still falls; look at the "
                "data, or search C by learner_values.",
                UserWarning,
            )

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Return class probabilities: by the temperature of the search, or calibrated where ``probability`` asks."""
        if self.probability:
            return super().predict_proba(X)  # type: ignore[no-any-return]
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Matrix:
        """Return the logarithms of the class probabilities."""
        if self.probability:
            return np.asarray(np.log(self.predict_proba(X)))
        values = self.decision_function(X)
        return log_probabilities(values, self.temperature_)


class MKLRegressorCV(SearchedModel, MKLRegressor):
    r"""`MKLRegressor` with C and the geometry's parameter chosen by cross-validation.

    .. math:: \max_{C, \theta} \; \frac1k \sum_{\text{folds}} \text{score}(\text{model}_{C, \theta})

    Parameters
    ----------
    bank, learner, solver, tol, max_iter, multioutput, dtype, memory_limit, random_state : as for
        `MKLRegressor`
    geometry : geometry or None, default=None
        The set of kernel weights; None is ``BoxSimplex()``, from the average kernel to the simplex.
    learner_param, learner_values, geometry_param, geometry_values, refit, n_jobs, verbose : as for
        `MKLClassifierCV`
    cv : int, splitter, iterable of (train, test) or None, default=None
        The folds; None is 5 of them, in the order of the samples.
    scoring : str, callable or None, default=None
        A scorer of scikit-learn's for predictions; None is R².

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, mean_score_, learner_values_, geometry_values_,
    cv_results_, n_splits_ : as for `MKLClassifierCV`
    kernel_weights_, certificate_, ... : all that `MKLRegressor` learns, of ``best_estimator_``

    Notes
    -----
    Kernels are stored once per fold and every candidate starts from its solved neighbours, as in
    `MKLClassifierCV`. Equal scores go to the simpler model.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave import KernelBank, MKLRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bank = KernelBank.per_view(views={"body": [0, 1, 2, 3], "blood": slice(4, 10)})
    >>> search = MKLRegressorCV(bank, learner_values=[0.1, 1.0], geometry_values=[0.5, 1.0], cv=3)
    >>> search.fit(X / X.std(axis=0), (y - y.mean()) / y.std()).mean_score_.shape
    (2, 2)

    """

    model = MKLRegressor
    defaults: ClassVar[dict[str, Callable[[], Any]]] = MKLRegressor.defaults | {"geometry": BoxSimplex}

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
        search_samples: int | None = 3000,
        features: Any = None,
        solver: Any = None,
        tol: float = 1e-4,
        max_iter: int | None = None,
        multioutput: str = "shared",
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
            learner_param=learner_param,
            learner_values=learner_values,
            geometry_param=geometry_param,
            geometry_values=geometry_values,
            cv=cv,
            scoring=scoring,
            refit=refit,
            search_samples=search_samples,
            features=features,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            multioutput=multioutput,
            dtype=dtype,
            memory_limit=memory_limit,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )

    def _split_targets(self, y: Any, columns: Matrix) -> AnyArray:  # noqa: ARG002 - they were checked
        return columns[:, 0] if columns.shape[1] == 1 else columns
