"""FisherMKLClassifier: what it refuses, and what sample weights mean to it."""

import numpy as np
import pytest

from kernelweave import FisherMKLClassifier, KernelBank, path
from kernelweave.estimators import fisher
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners.fisher import fewest_errors

BANK = KernelBank([Linear(), Gaussian(gamma=0.3)])


def samples(classes=2, n=50):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(n, 3))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=n), np.linspace(-0.5, 0.5, classes - 1))
    return X, y, rng.integers(1, 5, size=n)


def test_the_joint_discriminant_says_that_it_cuts_no_axis():
    X, y, _ = samples(3)
    model = FisherMKLClassifier(BANK, multiclass="joint", threshold="zero")
    with pytest.raises(ValueError, match=r"leave threshold at 'midpoint'.*got threshold='zero'"):
        model.fit(X, y)
    model.fit(X, y > 0)  # two classes have an axis
    model.set_params(threshold="midpoint").fit(X, y)


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

    monkeypatch.setattr(fisher, "fewest_errors", watched)
    X, y, weight = samples()
    FisherMKLClassifier(BANK, threshold="leave_one_out").fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(told, [weight])


def test_a_path_varies_the_norm_and_the_ridge_and_nothing_else():
    X, y, _ = samples()
    for param in ("p", "reg"):
        walk = path(FisherMKLClassifier(BANK), X, y, param=param, values=[1.5, 2.0])
        assert [getattr(model, param) for model in walk.models] == [1.5, 2.0]
    with pytest.raises(ValueError, match=r"begin with p or reg; got 'geometry__p'"):
        path(FisherMKLClassifier(BANK), X, y, param="geometry__p", values=[2.0])
