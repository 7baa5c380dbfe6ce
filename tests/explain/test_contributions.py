"""Contributions add up to the decision value, whatever the model."""

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import KernelBank, Views
from kernelweave.explain import contributions
from kernelweave.kernels import Centering, Gaussian, Linear

pytestmark = pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
TWO = np.where(X[:, 0] + X[:, 2] > 0, "yes", "no")
THREE = np.digitize(X[:, 0] + X[:, 2], [-0.7, 0.7])
BANK = KernelBank.per_view([Linear(), Gaussian()], views={"a": [0, 1], "b": [2, 3]}, scaling=Centering())
NEW = rng.normal(size=(15, 4))
MODELS = [
    kw.MKLClassifier(BANK),
    kw.MKLClassifier(BANK, multiclass="shared"),
    kw.MKLClassifierCV(BANK, learner_values=[1.0], geometry_values=[1.0], cv=2),
    kw.FisherMKLClassifier(BANK),
    kw.AlignedMKLClassifier(BANK),
    kw.EasyMKLClassifier(BANK),
    kw.FHeuristicClassifier(BANK),
    kw.PWMKClassifier(BANK, cv=2),
    kw.LPBetaClassifier(BANK, cv=2),
    kw.LocalizedMKLClassifier(BANK, n_init=1, tol=1e-3, random_state=0),
    kw.SampleAdaptiveMKLClassifier(BANK, switching="fewest", fallback=False, max_rounds=20),
    kw.ObscureClassifier(BANK, random_state=0),
    kw.SemiSupervisedMKLClassifier(BANK, max_rounds=2),
    kw.SVMPlusClassifier(kernel=BANK),
    make_pipeline(StandardScaler(), kw.MKLClassifier(BANK)),
    GridSearchCV(kw.MKLClassifier(BANK), {"learner__C": [1.0, 3.0]}, cv=2),
]


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_they_add_up_to_the_decision_function(model, y):
    found = contributions(model.fit(X, y), NEW)
    np.testing.assert_allclose(found.decision, model.decision_function(NEW), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.by_view().decision, found.decision, rtol=0, atol=1e-9)
    assert found.views == ("a", "a", "b", "b")
    assert found.values.shape[-1] == 4


def test_they_add_up_for_regression_novelty_and_several_tables():
    found = contributions(kw.MKLRegressor(BANK).fit(X, X[:, 0]), NEW)
    np.testing.assert_allclose(found.decision, kw.MKLRegressor(BANK).fit(X, X[:, 0]).predict(NEW), atol=1e-9)
    one = kw.OneClassMKL(BANK).fit(X)
    np.testing.assert_allclose(contributions(one, NEW).decision, one.decision_function(NEW), atol=1e-9)
    views = Views({"left": X[:, :2], "right": X[:, 2:]})
    two = kw.MKLClassifier(KernelBank.per_view()).fit(views, TWO)
    found = contributions(two, views)
    np.testing.assert_allclose(found.decision, two.decision_function(views), atol=1e-9)
    assert found.views == ("left", "right")


def test_a_contribution_is_the_sum_over_the_support_written_out():
    model = kw.MKLClassifier(KernelBank([Linear(), Gaussian(gamma=0.5)])).fit(X, TWO)
    found = contributions(model, NEW)
    S, v, eta = X[model.support_], model.dual_coef_[0], model.kernel_weights_
    squared = ((NEW[:, None] - S[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found.values[:, 0], eta[0] * (NEW @ S.T) @ v, atol=1e-9)
    np.testing.assert_allclose(found.values[:, 1], eta[1] * np.exp(-0.5 * squared) @ v, atol=1e-9)


def test_a_view_of_noise_matters_less():
    r = np.random.default_rng(1)
    Z = r.normal(size=(200, 4))
    model = kw.MKLClassifier(BANK).fit(Z, Z[:, 0] > 0)
    importance = contributions(model, Z).by_view().importance()
    assert importance["a"] > 5 * importance["b"]


PAIR = KernelBank.per_view(views={"a": [0, 1], "b": [2, 3]})


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_they_add_up_where_each_view_has_an_svm_of_its_own(y):
    model = kw.SVM2K(PAIR).fit(X, y)
    found = contributions(model, NEW)
    np.testing.assert_allclose(found.decision, model.decision_function(NEW), rtol=0, atol=1e-9)
    parts = found.values if found.values.ndim == 3 else found.values[:, None]
    views = model.view_decisions(NEW).reshape(len(NEW), -1, 2)
    np.testing.assert_allclose(parts, 0.5 * (views - model.intercept_), rtol=0, atol=1e-9)


@pytest.mark.parametrize("features", [None, kw.RandomFourier(20)], ids=["kernels", "features"])
def test_they_add_up_after_a_fit_and_in_the_stream_that_goes_on_from_it(features):
    model = kw.ObscureClassifier(KernelBank([Gaussian(), Linear()]), features=features, random_state=0)
    if features is not None:
        model.set_params(bank=KernelBank.per_view([Gaussian()], views={"a": [0, 1], "b": [2, 3]}))
    model.fit(X, THREE)
    before = contributions(model, NEW)
    np.testing.assert_allclose(before.decision, model.decision_function(NEW), rtol=0, atol=1e-9)
    for rows in (slice(0, 30), slice(30, 60)):
        model.partial_fit(X[rows], THREE[rows])
    found = contributions(model, NEW)
    np.testing.assert_allclose(found.decision, model.decision_function(NEW), rtol=0, atol=1e-9)
    assert np.abs(found.values - before.values).max() > 1e-3


@pytest.mark.parametrize("model", [kw.MultiInstanceMKLClassifier(PAIR), StandardScaler()])
def test_a_decision_that_is_no_such_sum_is_refused(model):
    with pytest.raises(TypeError, match=r"kernel machine|not a sum over kernels"):
        contributions(model.fit(X, TWO), NEW)


def test_rows_may_be_lists_of_any_length():
    wide = rng.normal(size=(30, 12))  # more columns than rows are checked
    model = kw.MKLClassifier(KernelBank([Linear(), Gaussian()])).fit(wide, TWO[:30])
    found = contributions(model, wide.tolist())
    np.testing.assert_allclose(found.decision, model.decision_function(wide), atol=1e-9)
