"""Interrupts, threads, refits: what must hold whatever happens around a fit."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from tests.estimators.banks import as_views, per_view
from tests.estimators.interrupts import interrupt_the_first_wait
from threadpoolctl import threadpool_info

from kernelweave import (
    SVM2K,
    KernelBank,
    LocalizedMKLClassifier,
    MKLClassifier,
    SampleAdaptiveMKLClassifier,
    SVMPlusClassifier,
)
from kernelweave.geometry import LpBall
from kernelweave.kernels import Gaussian, Linear, UnitMean
from kernelweave.solvers.problem import OuterState

# That all kernels do no worse is an answer, not a fault.
pytestmark = pytest.mark.filterwarnings("ignore:The switches were left out")

BANK = KernelBank([Linear(), Gaussian(width=0.7)])


def test_an_interrupt_ends_every_class_with_what_it_has(monkeypatch):
    X, y = load_iris(return_X_y=True)
    seen = []

    def interrupt(self, eta, inner_tol=None):
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return evaluate(self, eta, inner_tol)

    evaluate = OuterState.evaluate
    monkeypatch.setattr(OuterState, "evaluate", interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MKLClassifier(KernelBank.distances(), multiclass="per_class", tol=1e-8).fit(X, y)
    assert [len(h) for h in model.history_] == [2, 1, 1]
    assert model.predict(X).shape == (150,)


def test_a_fit_on_threads_is_interrupted_in_every_thread(monkeypatch):
    X, y = load_iris(return_X_y=True)
    calls = interrupt_the_first_wait(monkeypatch)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MKLClassifier(multiclass="per_class", tol=1e-9, dtype="float64", n_jobs=2).fit(X, y)
    assert calls == [3, 3]
    assert [len(h) for h in model.history_] == [1, 1, 1]
    assert model.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_keeps_its_threads(n_jobs):
    X, y = load_iris(return_X_y=True)
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    MKLClassifier(n_jobs=n_jobs).fit(X, y)
    assert before == [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_nothing_of_an_earlier_fit_stays_behind(cancer):
    X, y = cancer
    model = MKLClassifier(KernelBank.per_view()).fit(X, y)
    assert hasattr(model, "feature_names_in_")
    model.fit(as_views(X), y)
    assert not hasattr(model, "feature_names_in_")
    model.set_params(probability=True).fit(X.to_numpy(), y)
    assert not hasattr(model, "feature_names_in_")


def test_calibration_passes_weights_under_metadata_routing(cancer):
    X, y = cancer
    with config_context(enable_metadata_routing=True):
        model = MKLClassifier(per_view(), probability=True).set_fit_request(sample_weight=True)
        model.fit(X, y, sample_weight=np.ones(len(y)))
    assert model.predict_proba(X).shape == (160, 2)


def test_every_part_left_at_its_default_can_be_reached():
    model = MKLClassifier().set_params(
        bank__scaling=UnitMean(), solver__max_iter=5, geometry=LpBall(), geometry__p=1.5
    )
    assert (model.bank.scaling, model.solver.max_iter, model.geometry.p) == (UnitMean(), 5, 1.5)


def test_numpy_numbers_are_numbers(cancer):
    X, y = cancer
    grid = {"learner__C": np.array([1, 10]), "tol": [np.float32(1e-3)]}
    GridSearchCV(MKLClassifier(per_view()), grid, cv=2, error_score="raise").fit(X, y)


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(BANK),
        SampleAdaptiveMKLClassifier(BANK),
        LocalizedMKLClassifier(BANK, n_init=1, tol=1e-2, random_state=0),
        SVMPlusClassifier(),
        SVM2K(BANK),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_refit_forgets_the_calibration(model, rng):
    X = rng.normal(size=(50, 2))
    y = np.where(np.where(X[:, 0] < 0, X[:, 1] > 0, (X**2).sum(axis=1) > 1.5), "yes", "no")
    model.set_params(probability=True).fit(X, y)
    assert hasattr(model, "calibration_")
    model.set_params(probability=False).fit(X, y)
    assert not hasattr(model, "calibration_")
