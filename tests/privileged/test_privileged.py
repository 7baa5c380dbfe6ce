"""SVM+ and SVM-2K as estimators: metadata routing, pipelines, labels, missing rows, errors."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import SVM2K, KernelBank, SVMPlusClassifier, Views
from kernelweave.geometry import LpBall
from kernelweave.kernels import Gaussian, Linear
from kernelweave.privileged import storage, svm_plus
from kernelweave.privileged.svm_2k_problem import TwoViews

BANK = KernelBank([Linear(), Gaussian(width=0.7)])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(90, 3))
    X = np.column_stack([Z[:, 0] + rng.normal(size=90), rng.normal(size=90)])
    return X, np.where(Z[:, 0] > 0, "yes", "no"), Z


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    return X, np.where(np.where(X[:, 0] < 0, X[:, 1] > 0, (X**2).sum(axis=1) > 1.5), "yes", "no")


def test_privileged_features_reach_the_last_step_of_a_routed_pipeline(data):
    X, y, Z = data
    with config_context(enable_metadata_routing=True):
        model = SVMPlusClassifier(kernel=Linear(), C=0.1, lam=0.01).set_fit_request(privileged=True)
        pipe = make_pipeline(StandardScaler(), model)
        pipe.fit(X, y, privileged=Z)
        routed = cross_val_score(pipe, X, y, cv=3, params={"privileged": Z})
    alone = SVMPlusClassifier(kernel=Linear(), C=0.1, lam=0.01)
    alone.fit(StandardScaler().fit_transform(X), y, privileged=Z)
    np.testing.assert_allclose(pipe[-1].dual_coef_, alone.dual_coef_)
    without = clone(alone).fit(StandardScaler().fit_transform(X), y)
    assert not np.allclose(without.intercept_, alone.intercept_)
    assert routed.min() > 0.5


def test_cross_validation_without_routing_cuts_privileged_rows_too(data):
    X, y, Z = data
    scores = cross_val_score(SVMPlusClassifier(lam=0.1), X, y, cv=3, params={"privileged": Z})
    assert scores.shape == (3,)
    search = GridSearchCV(SVMPlusClassifier(), {"lam": [0.1, 1.0], "kernel__scale": [0.5, 1.0]}, cv=2)
    search.fit(X, y, privileged=Z)
    assert set(search.best_params_) == {"lam", "kernel__scale"}


def test_labels_probabilities_pickles_and_the_learnt_kernel(data):
    X, y, Z = data
    bank = KernelBank([Linear(), Gaussian(), Gaussian(scale=4.0)])
    model = SVMPlusClassifier(
        kernel=bank,
        privileged_kernel=KernelBank([Linear(), Gaussian()]),
        geometry=LpBall(2.0),
        probability=True,
    ).fit(X, y, privileged=Z)
    assert set(model.predict(X)) == {"yes", "no"}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.kernel_weights_.shape == (3,)
    assert model.privileged_weights_.shape == (2,)
    assert len(model.privileged_names_) == 2
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    f = model.combined_kernel(X)[:, model.support_] @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(f, model.decision_function(X), atol=1e-10)


def test_beyond_two_classes_there_is_one_classifier_per_class(data):
    X, _, Z = data
    labels = np.digitize(Z[:, 0], [-0.5, 0.5])
    model = SVMPlusClassifier(lam=0.1, n_jobs=2).fit(X, labels, privileged=Z)
    assert model.decision_function(X).shape == (90, 3)
    assert model.slack_.shape == (3, 90)
    assert len(model.certificates_) == 3
    one = SVMPlusClassifier(lam=0.1).fit(X, labels == 1, privileged=Z)
    np.testing.assert_allclose(model.decision_function(X)[:, 1], one.decision_function(X), atol=1e-8)


def test_slacks_allow_every_training_sample_its_margin(data):
    X, y, Z = data
    model = SVMPlusClassifier(kernel=Linear(), lam=0.1).fit(X, y, privileged=Z)
    margins = np.where(y == "yes", 1.0, -1.0) * model.decision_function(X)
    assert (model.slack_[0] >= 0.0).all()
    assert (margins >= 1.0 - model.slack_[0] - 1e-9).all()


def test_frames_and_views_name_the_privileged_columns(data):
    X, y, Z = data
    frame = pd.DataFrame(Z, columns=["a", "b", "c"])
    bank = KernelBank([("ab", Linear()), ("c", Gaussian())], views={"ab": ["a", "b"], "c": ["c"]})
    named = SVMPlusClassifier(privileged_kernel=bank).fit(X, y, privileged=frame)
    views = Views({"ab": Z[:, :2], "c": Z[:, 2:]})
    by_views = SVMPlusClassifier(privileged_kernel=KernelBank([("ab", Linear()), ("c", Gaussian())]))
    by_views.fit(X, y, privileged=views)
    np.testing.assert_allclose(named.dual_coef_, by_views.dual_coef_)
    frame.iloc[::2] = np.nan
    part = SVMPlusClassifier(privileged_kernel=bank).fit(X, y, privileged=frame)
    assert not np.allclose(part.intercept_, named.intercept_)


def test_class_weights_are_sample_weights(data):
    X, y, Z = data
    by_class = SVMPlusClassifier(class_weight={"yes": 3.0, "no": 1.0}).fit(X, y, privileged=Z)
    weight = np.where(y == "yes", 3.0, 1.0)
    by_sample = SVMPlusClassifier().fit(X, y, privileged=Z, sample_weight=weight)
    np.testing.assert_allclose(by_class.dual_coef_, by_sample.dual_coef_)
    plain = SVMPlusClassifier().fit(X, y, privileged=Z)
    assert abs(plain.objective_ - by_class.objective_) > 1.0


def with_nan(Z):
    Z = Z.copy()
    Z[3, 1] = np.nan
    return Z


@pytest.mark.parametrize(
    ("params", "privileged", "message"),
    [
        ({}, lambda Z: Z[:-1], "X has 90 samples but privileged has 89 rows"),
        ({}, with_nan, "1 row\\(s\\) of privileged are partly NaN, the first is row 3"),
        ({}, lambda Z: np.where(Z > 2, np.inf, Z), "privileged contains infinity"),
        ({}, lambda Z: Z[:, 0], "Expected 2D array"),
        ({"privileged_kernel": "precomputed"}, lambda Z: Z, "kernel matrix of shape \\(90, 90\\)"),
        ({"C": 0.0}, None, "C must be a number above 0"),
        ({"lam": -1.0}, None, "lam must be a number above 0"),
        ({"method": "newton"}, None, "method must be 'auto' or 'interior' or 'smo'"),
    ],
)
def test_bad_input_is_named_in_one_sentence(data, params, privileged, message):
    X, y, Z = data
    with pytest.raises(ValueError, match=message):
        SVMPlusClassifier(**params).fit(X, y, privileged=Z if privileged is None else privileged(Z))


@pytest.mark.parametrize("kernel", ["rbf", Gaussian, 3])
def test_what_is_no_kernel_is_said_to_be_none(data, kernel):
    X, y, Z = data
    with pytest.raises(TypeError, match="kernel must be a kernel such as Gaussian"):
        SVMPlusClassifier(kernel=kernel).fit(X, y, privileged=Z)
    with pytest.raises(TypeError, match="privileged_kernel must be a kernel such as Gaussian"):
        SVMPlusClassifier(privileged_kernel=kernel).fit(X, y, privileged=Z)


def test_constant_privileged_features_and_constant_samples_are_legal(data):
    X, y, Z = data
    for teacher in (np.zeros_like(Z), np.ones_like(Z)):
        model = SVMPlusClassifier(privileged_kernel=Linear()).fit(X, y, privileged=teacher)
        assert np.ptp(model.slack_) < 1e-6
    SVMPlusClassifier().fit(np.zeros_like(X), y, privileged=Z)


def test_two_views_come_as_views_columns_or_matrices(data):
    X, y, Z = data
    both = np.hstack([X, Z])
    columns = SVM2K(KernelBank.per_view([Gaussian()], views={"x": [0, 1], "z": [2, 3, 4]})).fit(both, y)
    views = SVM2K(KernelBank.per_view([Gaussian()])).fit(Views({"x": X, "z": Z}), y)
    np.testing.assert_allclose(
        columns.decision_function(both), views.decision_function(Views({"x": X, "z": Z}))
    )
    np.testing.assert_allclose(
        columns.decision_function(both), columns.view_decisions(both).mean(axis=1), atol=1e-12
    )
    grams = np.stack([X @ X.T, Z @ Z.T], axis=2)
    assert cross_val_score(SVM2K("precomputed"), grams, y, cv=3).min() > 0.5
    labels = np.digitize(Z[:, 0], [-0.5, 0.5])
    three = SVM2K(KernelBank.per_view([Gaussian()])).fit(Views({"x": X, "z": Z}), labels)
    assert three.view_decisions(Views({"x": X, "z": Z})).shape == (90, 3, 2)


def test_two_views_mean_two_kernels(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="SVM2K takes two kernels, one per view; the bank has 1"):
        SVM2K(KernelBank([Linear()])).fit(X, y)
    with pytest.raises(ValueError, match="epsilon must be a number of at least 0"):
        SVM2K(epsilon=-0.1).fit(X, y)


def test_svm_2k_warns_why_it_stopped(table, monkeypatch):
    with pytest.warns(ConvergenceWarning, match="max_iter=2 is reached"):
        SVM2K(BANK, max_iter=2, tol=1e-8).fit(*table)
    evaluate, calls = TwoViews.evaluate, []

    def interrupted(self, x):
        calls.append(x)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return evaluate(self, x)

    monkeypatch.setattr(TwoViews, "evaluate", interrupted)
    for method in ("smo", "interior"):
        calls.clear()
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model = SVM2K(BANK, tol=1e-8, method=method).fit(*table)
        assert np.isfinite(model.decision_function(table[0])).all()


def test_svm_2k_shows_its_progress(table, capsys):
    SVM2K(BANK, verbose=2).fit(*table)
    assert "step" in capsys.readouterr().out


def test_privileged_views_may_miss_samples(table):
    X, y = table
    Z = np.column_stack([X + 0.1, X**2])
    Z[::5] = np.nan
    views = Views({"a": Z[:, :2], "b": Z[:, 2:]})
    bank = KernelBank([Gaussian(width=1.0)])
    both = KernelBank.per_view([Linear()])
    named = SVMPlusClassifier(kernel=bank, privileged_kernel=both).fit(X, y, privileged=views)
    slices = KernelBank.per_view([Linear()], views={"a": [0, 1], "b": [2, 3]})
    same = SVMPlusClassifier(kernel=bank, privileged_kernel=slices).fit(X, y, privileged=Z)
    np.testing.assert_allclose(named.decision_function(X), same.decision_function(X), atol=1e-9)
    partly = Views({"a": Z[:, :2], "b": np.nan_to_num(Z[:, 2:])})
    with pytest.raises(ValueError, match=r"10 row.s. of privileged are partly NaN, the first is row 0"):
        SVMPlusClassifier().fit(X, y, privileged=partly)


def test_slacks_are_those_of_their_class(table):
    X, _ = table
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    model = SVMPlusClassifier(lam=0.1).fit(X, labels, privileged=X**2)
    signed = np.where(labels == np.arange(3)[:, None], 1.0, -1.0) * model.decision_function(X).T
    assert (signed >= 1.0 - model.slack_ - 1e-6).all()


def test_a_privileged_kernel_is_checked_even_where_it_is_not_used(table):
    with pytest.raises((TypeError, ValueError), match="privileged_kernel"):
        SVMPlusClassifier(privileged_kernel="bogus").fit(*table)
    with pytest.raises(ValueError, match="privileged must be a kernel matrix"):
        SVMPlusClassifier(privileged_kernel="precomputed").fit(*table, privileged=[])


@pytest.mark.parametrize(
    ("model", "matrices"),
    [
        (SVMPlusClassifier(memory_limit=4e9), 2),
        (SVMPlusClassifier(memory_limit=4e9, method="interior"), 8),
        (SVM2K(memory_limit=4e9), 2),
    ],
    ids=["SVM+", "SVM+ by interior point", "SVM-2K"],
)
def test_what_does_not_fit_is_said_before_memory_is_taken(model, matrices, monkeypatch):
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    y = X[:, 0] > 0
    params = {"privileged": X} if isinstance(model, SVMPlusClassifier) else {}

    def stored(*args):
        raise AssertionError("kernels are stored before there is known to be room")

    for module in (svm_plus, storage):
        monkeypatch.setattr(module, "store", stored)
    needed = (
        f"{matrices} matrices of 20000 × 20000 numbers need {3.2 * matrices:.3g} GB, but 4 GB may be used"
    )
    with pytest.raises(MemoryError, match=needed):
        model.fit(X, y, **params)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("model", [SVM2K(), SVMPlusClassifier()], ids=["SVM-2K", "SVM+"])
def test_no_default_ends_short_of_its_tolerance_on_toy_sets(model, load):
    X, y = load(return_X_y=True)
    half = X.shape[1] // 2
    params = {"privileged": X[:, half:]} if isinstance(model, SVMPlusClassifier) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        clone(model).fit(X, y, **params)
