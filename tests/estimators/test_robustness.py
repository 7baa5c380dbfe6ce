"""Precision, interrupts, threads, refits: what must hold whatever happens around a fit."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from tests.estimators.banks import as_views, per_view
from tests.estimators.interrupts import interrupt_the_first_wait
from tests.reference.conic import conic_optimum
from tests.reference.problems import random_problem
from threadpoolctl import threadpool_info

from kernelweave import KernelBank, MKLClassifier
from kernelweave.geometry import LpBall
from kernelweave.kernels import Linear, Polynomial
from kernelweave.learners import Hinge, NuHinge, SquaredHinge
from kernelweave.solvers.problem import Walk


@pytest.mark.parametrize("dtype", ["auto", "float32"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_float32_storage_certifies_the_kernels_as_given(dtype, C, monkeypatch):
    monkeypatch.setattr("kernelweave.gram.choose.SMALL", 0)
    Ks, y = random_problem(0, n=60, M=6)
    optimum = conic_optimum(Ks, y, ("hinge", C), ("simplex",)).value
    model = MKLClassifier("precomputed", learner=Hinge(C=C), tol=1e-4, dtype=dtype).fit(Ks, y)
    assert model.certificate_.lower <= optimum * (1 + 1e-8)
    assert optimum <= model.certificate_.upper * (1 + 1e-8)
    assert model.duality_gap_ <= 1e-4
    assert model.history_[-1].certificate == model.certificate_


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_roundings_that_conspire_do_not_fool_the_certificate(C, monkeypatch):
    """Repeated rows make whole blocks of entries round alike: their errors add up instead of cancelling."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(700, 2)).astype(float)
    y = rng.integers(0, 2, size=700)
    bank = KernelBank([Linear(), Polynomial(degree=2, gamma=1e-3)])
    fits = {}
    for dtype in ("float32", "float64"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fits[dtype] = (
                MKLClassifier(bank, learner=Hinge(C=C), tol=1e-4, dtype=dtype).fit(X, y).certificate_
            )
    exact = MKLClassifier(bank, learner=Hinge(C=C), tol=1e-7, dtype="float64").fit(X, y).certificate_
    for certificate in fits.values():
        assert certificate.lower <= exact.upper * (1 + 1e-12)
        assert exact.lower <= certificate.upper * (1 + 1e-12)


def test_float32_that_rounding_keeps_open_goes_on_in_float64(monkeypatch):
    monkeypatch.setattr("kernelweave.gram.choose.SMALL", 0)
    monkeypatch.setattr("kernelweave.gram.choose.FLOAT32_TOL", 0.0)
    Ks, y = random_problem(0, n=60, M=6)
    model = MKLClassifier("precomputed", learner=Hinge(C=1e4), tol=1e-9).fit(Ks, y)
    assert model.duality_gap_ <= 1e-9
    assert model.n_iter_ == len(model.history_)


def test_an_interrupt_ends_every_class_with_what_it_has(monkeypatch):
    X, y = load_iris(return_X_y=True)
    seen = []

    def interrupt(self, eta, inner_tol=None):
        seen.append(1)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return visit(self, eta, inner_tol)

    visit = Walk.visit
    monkeypatch.setattr(Walk, "visit", interrupt)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MKLClassifier(tol=1e-8).fit(X, y)
    assert [len(h) for h in model.history_] == [2, 1, 1]
    assert model.predict(X).shape == (150,)


def test_a_fit_on_threads_is_interrupted_in_every_thread(monkeypatch):
    X, y = load_iris(return_X_y=True)
    calls = interrupt_the_first_wait(monkeypatch)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = MKLClassifier(tol=1e-9, dtype="float64", n_jobs=2).fit(X, y)
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
        bank__scales=[1.0], solver__max_iter=5, geometry=LpBall(), geometry__p=1.5
    )
    assert (model.bank.scales, model.solver.max_iter, model.geometry.p) == ([1.0], 5, 1.5)


def test_numpy_numbers_are_numbers(cancer):
    X, y = cancer
    grid = {"learner__C": np.array([1, 10]), "tol": [np.float32(1e-3)]}
    GridSearchCV(MKLClassifier(per_view()), grid, cv=2, error_score="raise").fit(X, y)


@pytest.mark.parametrize("learner", [NuHinge(nu=0.5), SquaredHinge(C=1.0)])
def test_the_reported_certificate_is_drawn_from_the_kernels_as_given(learner):
    """Two blocks of identical entries: in float32 every rounding points the same way."""
    i = np.arange(600)
    y, z = np.where(i % 2 == 0, 1, -1), np.where(i // 2 % 2 == 0, 1.0, -1.0)
    K = 1e4 * np.outer(z, z) + np.outer(y, y) / 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        stored = MKLClassifier("precomputed", learner=learner, dtype="float32").fit([K], y).certificate_
        exact = MKLClassifier("precomputed", learner=learner, dtype="float64").fit([K], y).certificate_
    assert stored.lower <= exact.upper + 1e-9 * abs(exact.upper)
    assert exact.lower <= stored.upper + 1e-9 * abs(exact.upper)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_centring_removes_is_given_back_to_the_intercept(cancer, dtype):
    X, y = cancer
    X = X / 6.0 + 1.0  # far from the origin, so that centring moves every decision value
    model = MKLClassifier(KernelBank([Polynomial(degree=2)]), dtype=dtype, tol=1e-5).fit(X, y)
    coef = np.zeros(len(y))
    coef[model.support_] = model.dual_coef_[0]
    free = (np.abs(coef) > 1e-3) & (np.abs(coef) < 1.0 - 1e-3)
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    assert free.sum() >= 2
    np.testing.assert_allclose(margins[free], 1.0, atol=0.05)
