"""C from the leave-one-out error of ridge regression: the closed form against fits without each sample."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from kernelweave import KernelBank, Landmarks, MKLClassifier, MKLClassifierCV
from kernelweave.kernels import Linear
from kernelweave.learners import Hinge
from kernelweave.learners.leave_one_out import RIDGES, leave_one_out_cost, leave_one_out_errors


def prediction_without(K, Y, i, ridge):
    """Return the prediction for sample i of a ridge regression with intercept on the others."""
    others = np.delete(np.arange(len(K)), i)
    n = others.size
    A = np.block([[K[np.ix_(others, others)] + ridge * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), 0.0]])
    solution = np.linalg.solve(A, np.vstack([Y[others], np.zeros((1, Y.shape[1]))]))
    return K[i, others] @ solution[:-1] + solution[-1]


@pytest.mark.parametrize("columns", [1, 3])
def test_the_closed_form_is_that_of_fits_without_each_sample(columns, rng):
    X, Y = rng.normal(size=(18, 4)), np.sign(rng.normal(size=(18, columns)))
    P = np.eye(18) - 1 / 18
    K, weight = P @ X @ X.T @ P, rng.uniform(0.5, 2.0, 18)
    for ridge in (0.01, 1.0, 30.0):
        left = np.array([prediction_without(K, Y, i, ridge) for i in range(18)])
        expected = weight @ ((Y - left) ** 2).mean(axis=1) / weight.sum()
        found = leave_one_out_errors(K, Y, weight, np.array([ridge]))[0]
        assert found == pytest.approx(expected, rel=1e-8)


def test_C_is_in_the_units_of_the_kernel_and_falls_with_noise(rng):
    X = rng.normal(size=(80, 3))
    K, weight = X @ X.T, np.ones(80)
    clear, noise = np.sign(X[:, 0]), np.sign(rng.normal(size=80))
    variance = np.trace(K) / 80 - K.mean()
    assert leave_one_out_cost(K, noise, weight) * variance == pytest.approx(0.3)
    assert leave_one_out_cost(K, clear, weight) > leave_one_out_cost(K, noise, weight)
    assert leave_one_out_cost(10 * K + 3, clear, weight) == pytest.approx(
        leave_one_out_cost(K, clear, weight) / 10
    )
    assert leave_one_out_cost(np.ones((80, 80)), clear, weight) == 3.0
    assert RIDGES.size == 13


def test_a_model_takes_the_C_of_its_mean_kernel():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    bank = KernelBank.prepared()
    K = sum(bank.fit(X).grams()) / 2
    C = leave_one_out_cost(K, np.where(y == 2, 1.0, -1.0), np.ones(100))
    model, named = (MKLClassifier(bank, learner=Hinge(C=c), tol=1e-8).fit(X, y) for c in ("loo", C))
    np.testing.assert_allclose(model.decision_function(X), named.decision_function(X), atol=1e-6)
    other = MKLClassifier(bank, learner=Hinge(C=10 * C), tol=1e-8).fit(X, y)
    assert np.abs(other.decision_function(X) - named.decision_function(X)).max() > 1e-2


def test_features_know_no_kernel_and_take_the_usual_C(rng):
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(int)
    parts = {"features": Landmarks(20), "random_state": 0}
    model = MKLClassifier(**parts).fit(X, y)
    named = MKLClassifier(KernelBank.prepared(), learner=Hinge(C=3.0), **parts).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), named.decision_function(X), atol=1e-3)


def test_C_is_loo_or_a_number(rng):
    X, y = rng.normal(size=(20, 2)), np.arange(20) % 2
    bank = KernelBank([Linear()])
    with pytest.raises(ValueError, match="C must be a finite number above 0; got 'cv'"):
        MKLClassifier(bank, learner=Hinge(C="cv")).fit(X, y)
    search = MKLClassifierCV(bank, learner=Hinge(C="loo"), learner_values=[1.0, 2.0], cv=2).fit(X, y)
    assert search.best_params_["learner__C"] in (1.0, 2.0)
