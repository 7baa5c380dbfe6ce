"""LocalizedMKLClassifier: predictions from the definition, gating features, errors."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernelweave import KernelBank, LocalizedMKLClassifier, Views
from kernelweave.adaptive.gating import Sigmoid, Softmax
from kernelweave.kernels import Gaussian, Linear

BANK = KernelBank([Linear(), Gaussian(width=0.7)])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(70, 2))
    return X, np.where(np.where(X[:, 0] < 0, X[:, 1] > 0, (X**2).sum(axis=1) > 1.5), "yes", "no")


def model(**params):
    return LocalizedMKLClassifier(BANK, **{"random_state": 0, "n_restarts": 1, "tol": 1e-3} | params)


@pytest.mark.parametrize("gating", [None, Softmax(), Sigmoid(), "softmax", "sigmoid"], ids=repr)
def test_decisions_follow_from_the_definition(data, gating):
    X, y = data
    fitted = model(gating=gating).fit(X, y)
    new = np.random.default_rng(2).normal(size=(10, 2))
    eta, trained = fitted.local_weights(new), fitted.local_weights(X)
    np.testing.assert_allclose(trained, fitted.local_weights_)
    kernels = [new @ X.T, np.exp(-((new[:, None] - X) ** 2).sum(axis=2) / (2 * 0.7**2))]
    K = sum(np.outer(eta[:, m], trained[:, m]) * kernels[m] for m in range(2))
    f = K[:, fitted.support_] @ fitted.dual_coef_[0] + fitted.intercept_
    np.testing.assert_allclose(fitted.decision_function(new), f, atol=1e-9)
    np.testing.assert_allclose(fitted.combined_kernel(new), K, atol=1e-9)
    np.testing.assert_allclose(fitted.combined_kernel(X, X), fitted.combined_kernel(X), atol=1e-9)
    assert set(fitted.predict(new)) <= {"yes", "no"}
    if gating in (None, "softmax"):
        assert eta.sum(axis=1) == pytest.approx(np.ones(10))


def test_the_gating_finds_where_each_kernel_is_right(data):
    X, y = data
    fitted = model().fit(X, y)
    linear = fitted.local_weights(np.array([[-2.0, 0.0], [2.0, 0.0]]))[:, 0]
    assert linear[0] > linear[1] + 0.2
    assert fitted.score(X, y) > 0.85


def test_a_gating_may_look_at_some_features_only(data):
    X, y = data
    fitted = model(gating=Softmax(features=[0])).fit(X, y)
    assert fitted.gating_.shape == (2, 2)
    moved = X + np.array([0.0, 5.0])
    np.testing.assert_allclose(fitted.local_weights(moved), fitted.local_weights(X))
    views = Views({"a": X[:, :1], "b": X[:, 1:]})
    named = LocalizedMKLClassifier(KernelBank.per_view(), gating=Softmax(features="a"), n_restarts=0)
    np.testing.assert_array_equal(named.fit(views, y).gating_.shape, (2, 2))
    with pytest.raises(ValueError, match="names of views"):
        named.set_params(gating__features="c").fit(views, y)


def test_more_classes_have_a_gating_each(data):
    X, _ = data
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    fitted = model().fit(X, y)
    assert fitted.gating_.shape == (3, 2, 3)
    assert fitted.local_weights(X).shape == (3, 70, 2)
    assert fitted.kernel_weights_.shape == (3, 2)
    assert fitted.score(X, y) > 0.8


def test_the_same_seed_gives_the_same_and_it_can_be_pickled(data):
    X, y = data
    one, two = model().fit(X, y), model().fit(X, y)
    np.testing.assert_array_equal(one.gating_, two.gating_)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(one)).decision_function(X), one.decision_function(X)
    )


def test_weights_of_zero_leave_samples_out(data):
    X, y = data
    weight = np.where(np.arange(70) < 60, 1.0, 0.0)
    assert model().fit(X, y, sample_weight=weight).support_.max() < 60


def test_too_few_steps_warn(data):
    with pytest.warns(ConvergenceWarning, match="still changed after 1 steps"):
        model(max_iter=1).fit(*data)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (dict(bank="precomputed"), ValueError, "gates by the inputs"),
        (dict(gating="linear"), ValueError, "'softmax' or 'sigmoid'"),
        (dict(gating=Softmax), TypeError, "gating must be a Gating"),
        (dict(n_restarts=-1), ValueError, "n_restarts"),
        (dict(gating=Softmax(features=[7])), ValueError, "out of range"),
    ],
)
def test_wrong_parameters_are_named(data, params, error, message):
    with pytest.raises(error, match=message):
        model().set_params(**params).fit(*data)
