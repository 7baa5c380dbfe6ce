"""Sample weights reach every step of a method, not only its last machine."""

import numpy as np
import pytest

from kernelweave import (
    FisherMKLClassifier,
    KernelBank,
    ObscureClassifier,
)
from kernelweave.estimators import discriminating
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners.threshold import fewest_errors
from kernelweave.solvers import DualAscent

BANK = KernelBank([Linear(), Gaussian(gamma=0.3)])


def samples(classes=2, n=50):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 3))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=n), np.linspace(-0.5, 0.5, classes - 1))
    return X, y, rng.integers(1, 5, size=n)


def test_the_joint_discriminant_counts_weights_as_repeated_samples():
    X, y, weight = samples(3)
    model = FisherMKLClassifier(BANK, reg=0.1, multiclass="joint", tol=1e-9)
    weighted = model.fit(X, y, sample_weight=weight)
    axes, values = weighted.transform(X), weighted.decision_function(X)
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(abs(axes), abs(repeated.transform(X)), atol=1e-4)  # axes have no sign
    np.testing.assert_allclose(values, repeated.decision_function(X), atol=1e-4)


def test_a_cut_counts_errors_by_their_weight(monkeypatch):
    values, above = np.array([0.0, 1.0, 2.0, 3.0]), np.array([False, True, False, True])
    assert 0.0 <= fewest_errors(values, above, np.array([1.0, 5.0, 1.0, 1.0]), 1.5) < 1.0
    assert 2.0 <= fewest_errors(values, above, np.array([1.0, 1.0, 5.0, 1.0]), 0.5) < 3.0
    told = []

    def watched(values, above, weight, near):
        told.append(weight)
        return fewest_errors(values, above, weight, near)

    monkeypatch.setattr(discriminating, "fewest_errors", watched)
    X, y, weight = samples()
    FisherMKLClassifier(BANK, threshold="leave_one_out").fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(told, [weight])


@pytest.mark.parametrize("p", [1.3, 2.0])
def test_a_stream_after_a_fit_knows_the_lengths_of_its_vectors(p):
    X, y, _ = samples(3)
    model = ObscureClassifier(BANK, p=p, solver=DualAscent(tol=1e-2), random_state=0).fit(X, y)
    q = p / (p - 1.0)
    theta = np.zeros((3, len(y)))
    theta[:, model.support_] = q * model.dual_coef_
    expected = [np.trace(theta @ K @ theta.T) for K in BANK.fit(X).grams()]
    np.testing.assert_allclose(model._new_stream(X).s, expected, rtol=1e-6)
