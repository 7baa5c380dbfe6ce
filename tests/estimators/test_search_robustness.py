"""Searches that are interrupted, run on threads, end early, or are asked for what cannot be."""

import builtins
import io
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import KFold, StratifiedKFold
from tests.estimators.banks import VIEWS, per_view
from tests.estimators.interrupts import interrupt_the_first_wait
from tests.reference.problems import random_problem
from threadpoolctl import threadpool_info

from kernelweave import KernelBank, Landmarks, MKLClassifierCV, MKLRegressorCV, batches
from kernelweave.estimators import progress
from kernelweave.estimators.grid_search import FoldSearch
from kernelweave.estimators.progress import interruptible
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.kernels import Gaussian
from kernelweave.learners import NuHinge
from kernelweave.solvers.problem import OuterState

SMALL = {"learner_values": [0.5, 5.0], "geometry_values": [0.3, 1.0], "cv": 2, "tol": 1e-3}


def small(**params):
    return MKLClassifierCV(per_view(), **SMALL | params)


def test_folds_on_threads_find_the_same(cancer):
    X, y = cancer
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    alone, together = (small(cv=3, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(alone.cv_results_["score"], together.cv_results_["score"])
    np.testing.assert_array_equal(alone.cv_results_["machines"], together.cv_results_["machines"])
    np.testing.assert_array_equal(alone.kernel_weights_, together.kernel_weights_)
    assert before == [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_threads_and_memory_are_shared_out_among_the_folds(cancer, monkeypatch):
    X, y = cancer
    seen = []

    def spy(self, samples, fold, stop):
        seen.append((self.params["n_jobs"], self.params["memory_limit"]))
        return run(self, samples, fold, stop)

    run = FoldSearch.run
    monkeypatch.setattr(FoldSearch, "run", spy)
    small(n_jobs=5, memory_limit=1e9, refit=False).fit(X, y)
    assert seen == [(2, 5e8), (2, 5e8)]
    seen.clear()
    small(n_jobs=1, refit=False).fit(X, y)
    assert seen == [(1, None), (1, None)]


@pytest.fixture
def rounded(monkeypatch):
    """Whether the kernels of each problem that is solved are rounded, in turn."""
    seen, init = [], OuterState.__init__

    def spy(self, problem, *args, **kwargs):
        seen.append(problem.grams.is_rounded)
        init(self, problem, *args, **kwargs)

    monkeypatch.setattr(OuterState, "__init__", spy)
    return seen


def test_a_search_holds_few_kernels_of_few_samples_in_float64(cancer, rounded):
    small(refit=False).fit(*cancer)
    assert rounded == [False] * 8


def test_a_search_on_kernels_in_float32_is_certified(cancer, rounded, in_float32):
    assert (small(refit=False).fit(*cancer).cv_results_["relative_gap"] <= 1e-3).all()
    assert rounded == [True] * 8


@pytest.mark.parametrize("when", [1, 4, 9])
def test_an_interrupt_ends_the_search_at_once(cancer, monkeypatch, when):
    X, y = cancer
    evaluated = []

    def interrupted(self, eta, inner_tol=None):
        evaluated.append(1)
        if len(evaluated) == when:
            raise KeyboardInterrupt
        return evaluate(self, eta, inner_tol)

    evaluate = OuterState.evaluate
    monkeypatch.setattr(OuterState, "evaluate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small().fit(X, y)
    assert len(evaluated) == when


def test_an_interrupt_ends_the_folds_on_all_threads(cancer, monkeypatch):
    X, y = cancer
    calls = interrupt_the_first_wait(monkeypatch)
    search = small(cv=3, n_jobs=2, tol=1e-7)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert calls == [3, 3]
    assert not hasattr(search, "cv_results_")


def test_a_fold_that_fails_stops_the_others_and_its_error_is_raised():
    def waits(stop):
        assert stop.wait(10.0)
        raise KeyboardInterrupt

    def fails(stop):
        raise ValueError("a bad fold")

    with pytest.raises(ValueError, match="a bad fold"):
        interruptible([waits, fails], 2)


def test_open_certificates_are_told_once(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning) as told:
        search = small(tol=1e-9, max_iter=1, refit=False).fit(X, y)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert "of 8 such fits among the 8 of the search" in str(told[0].message)
    assert "max_iter=1" in str(told[0].message)
    assert search.cv_results_["relative_gap"].max() > 1e-9


def test_without_refit_there_are_results_but_no_predictions(cancer):
    X, y = cancer
    search = small().fit(X, y)
    search.set_params(refit=False).fit(X, y)
    assert set(search.best_params_) == {"learner__C", "geometry__theta"}
    for name in ("best_estimator_", "kernel_weights_", "bank_"):
        assert not hasattr(search, name)
    for method in (search.predict, search.decision_function, search.combined_kernel):
        with pytest.raises(NotFittedError, match="refit=False"):
            method(X)
    with pytest.raises(NotFittedError):
        small().predict(X)
    with pytest.raises(NotFittedError):
        small().frame()


def test_a_frame_without_pandas_says_what_to_install(cancer, monkeypatch):
    search = small().fit(*cancer)
    load = builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match=r"pip install 'kernelweave\[io\]'"):
        search.frame()


def test_it_clones_and_pickles_and_leaves_its_parameters_alone(cancer):
    X, y = cancer
    search = small(geometry=BoxSimplex(theta=0.7)).fit(X, y)
    assert search.geometry == BoxSimplex(theta=0.7)
    assert search.learner is None
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.decision_function(X), search.decision_function(X))
    assert not hasattr(clone(search), "best_params_")
    reached = MKLClassifierCV().set_params(learner__tol=1e-5, geometry__nu=0.5)
    assert (reached.learner.tol, reached.geometry.nu) == (1e-5, 0.5)


def test_a_bar_counts_all_candidates_of_all_folds(cancer, monkeypatch):
    screen = io.StringIO()
    real = progress.Progress
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(progress, "Progress", lambda *args, **kwargs: real(*args, **kwargs, console=console))
    small(verbose=2, refit=False).fit(*cancer)
    assert "8/8" in screen.getvalue()


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"geometry_values": [0.5, 0.01]}, ValueError, r"theta >= 1/6"),
        ({"geometry_values": []}, ValueError, "geometry_values must have at least one value"),
        ({"geometry_values": 0.5}, TypeError, "geometry_values must be a sequence"),
        ({"learner_values": "many"}, TypeError, "learner_values must be a sequence"),
        ({"learner_values": [0.0]}, ValueError, "C must be a finite number above 0"),
        ({"geometry": Simplex()}, ValueError, "Simplex has no parameter that is varied"),
        ({"geometry_param": "zeta"}, ValueError, "BoxSimplex has no parameter 'zeta'"),
        ({"geometry_param": "nu", "geometry_values": None}, ValueError, "needs geometry_values"),
        ({"learner": NuHinge(), "learner_values": [0.99]}, ValueError, "nu must be above 0 and at most"),
        ({"scoring": "neg_log_loss"}, ValueError, "needs probabilities"),
        ({"scoring": ["accuracy", "f1"]}, ValueError, "one scorer"),
        ({"scoring": "acuracy"}, ValueError, "acuracy"),
        ({"scoring": lambda model, X, y: float("nan")}, ValueError, "No candidate has a score"),  # noqa: ARG005
        ({"cv": []}, ValueError, "no fold"),
        ({"cv": KFold(2), "by": "label"}, ValueError, "fold 0 are of 1 class only"),
        ({"geometry": "simplex"}, TypeError, "geometry must be"),
        ({"tol": 0.0}, ValueError, "tol"),
    ],
)
def test_mistakes_are_named(cancer, params, error, message):
    X, y = cancer
    if params.pop("by", None):
        order = np.argsort(y.to_numpy(), kind="stable")
        half = order[np.r_[0:40, -40:0]]
        X, y = X.iloc[half], y.iloc[half]
    with pytest.raises(error, match=message):
        small(**params).fit(X, y)


def test_kernel_matrices_that_cannot_be_split_are_named():
    Ks, y = random_problem(0, n=30, M=2)
    search = MKLClassifierCV("precomputed", learner_values=[1.0])
    with pytest.raises(ValueError, match="Kernel 1"):
        search.fit([Ks[0], Ks[1][:20]], y)
    with pytest.raises(ValueError, match="labels"):
        search.fit(Ks, y[:20])


def test_calibration_needs_enough_samples_before_any_work(cancer, monkeypatch):
    X, y = cancer
    few = np.r_[np.flatnonzero(y == 0)[:3], np.flatnonzero(y == 1)[:30]]
    monkeypatch.setattr(KernelBank, "fit", lambda *_: pytest.fail("the bank was fitted"))
    with pytest.raises(ValueError, match="smallest class has 3"):
        small(probability=True).fit(X.iloc[few], y.iloc[few])


def test_odd_but_legal_input_works(cancer):
    X, y = cancer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = MKLClassifierCV(KernelBank([Gaussian()]), cv=2, tol=1e-3).fit(X, y)
        assert one.geometry_values_ == (1.0,)
        twice = small(learner_values=[1.0, 1.0], geometry_values=[0.5, 0.5]).fit(X, y)
        assert twice.best_index_ == (0, 0)
        views = KernelBank.per_view(Gaussian(), views=VIEWS)
        own = MKLClassifierCV(views, geometry=LpBall(), cv=2, tol=1e-3, refit=False).fit(X, y)
    assert own.geometry_values_ == (np.inf, 4.0, 2.0, 4 / 3, 1.0)
    assert own.mean_score_.shape == (5, 5)


def test_the_same_search_gives_the_same_answer(cancer):
    X, y = cancer
    folds = StratifiedKFold(2, shuffle=True, random_state=1)
    first, second = (small(cv=folds).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.mean_score_, second.mean_score_)
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)


@pytest.mark.parametrize("kind", [MKLClassifierCV, MKLRegressorCV])
def test_targets_labelled_in_another_order_are_refused_before_any_fold(kind, monkeypatch):
    X = pd.DataFrame({"a": np.arange(30.0) % 7, "b": np.arange(30.0) % 4}, index=[f"p{k}" for k in range(30)])
    y = pd.Series(np.arange(30) % 2, index=X.index)
    search = kind(
        KernelBank([Gaussian(width=1.0), Gaussian(width=9.0)]),
        **SMALL | {"geometry_values": [0.6, 1.0]},
        refit=False,
    )
    search.fit(X, y)
    monkeypatch.setattr(FoldSearch, "run", None)
    with pytest.raises(ValueError, match="labelled in another order than those of X"):
        search.fit(X, y.sort_values())


@pytest.mark.parametrize("kind", [MKLClassifierCV, MKLRegressorCV])
def test_batches_and_streams_cannot_be_searched(kind, rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    for search in (kind(), kind(features=Landmarks(5))):
        with pytest.raises(ValueError, match=r"^MKL\w+CV splits .* with features= and .*; got Batches\.$"):
            search.fit(batches(X, y, size=10))
        with pytest.raises(AttributeError, match=r"splits .* one table.* with features= .* no partial_fit"):
            search.partial_fit(X, y, classes=[0, 1])
        assert not hasattr(search, "partial_fit")
