"""Decision values that are known, or found for several models in one pass over the kernels."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import get_scorer

from kernelweave import KernelBank, MKLClassifier, MKLRegressor, OneClassMKL
from kernelweave.estimators import base
from kernelweave.estimators.base import KnownDecisions, accuracy, decision_values
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import Hinge

BANK = KernelBank([Linear(), Gaussian()])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["one", "two", "three"])[y]


def test_scorers_ask_known_values_and_everything_else_the_model(iris, monkeypatch):
    X, y = iris
    weight = np.random.default_rng(0).random(len(y))
    model = MKLClassifier(BANK).fit(X, y)
    values, said = model.decision_function(X), model.predict(X)
    score, balanced = model.score(X, y, weight), get_scorer("balanced_accuracy")(model, X, y)
    monkeypatch.setattr(base, "scores", lambda *_: pytest.fail("the kernels were read"))
    known = KnownDecisions(model, X, values)
    assert known.classes_ is model.classes_
    np.testing.assert_array_equal(known.decision_function(X), values)
    np.testing.assert_array_equal(known.predict(X), said)
    assert known.score(X, y, weight) == score
    assert get_scorer("balanced_accuracy")(known, X, y) == balanced


@pytest.mark.parametrize("kind", [MKLRegressor, OneClassMKL])
def test_other_models_predict_from_known_values_too(iris, kind):
    X = iris[0]
    model = kind(BANK).fit(X, X[:, 0])
    known = KnownDecisions(model, X, model._values(X))
    np.testing.assert_array_equal(known.predict(X), model.predict(X))


def test_other_samples_are_the_models_to_answer_for(iris):
    X, y = iris
    model = MKLClassifier(BANK).fit(X, y)
    known = KnownDecisions(model, X, np.zeros((150, 3)))
    np.testing.assert_array_equal(known.decision_function(X[:5]), model.decision_function(X[:5]))
    np.testing.assert_array_equal(known.predict(X[:5]), model.predict(X[:5]))
    assert known.score(X[:5], y[:5]) == model.score(X[:5], y[:5])


def test_models_that_share_a_bank_are_asked_in_one_pass(iris):
    X, y = iris
    models = [MKLClassifier(BANK, learner=Hinge(C=C)).fit(X[::2], y[::2]) for C in (0.1, 10.0)]
    models[1].bank_ = models[0].bank_
    for model, values in zip(models, decision_values(models, X), strict=True):
        np.testing.assert_allclose(values, model.decision_function(X), atol=1e-12)


def test_accuracy_counts_weights_and_is_nan_without_any():
    said, y = np.array(["a", "b", "a"]), np.array(["a", "a", "a"])
    assert accuracy(said, y) == pytest.approx(2 / 3)
    assert accuracy(said, y, np.array([1.0, 3.0, 0.0])) == pytest.approx(1 / 4)
    assert np.isnan(accuracy(said, y, np.zeros(3)))
