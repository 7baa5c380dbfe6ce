"""The upper bound of a certificate is attained by the model that is returned."""

import numpy as np
import pytest

from kernelweave import MKLClassifier
from kernelweave.geometry import LpBall, Simplex
from kernelweave.learners import Hinge, SquaredHinge

LOSSES = {Hinge: lambda lack: lack, SquaredHinge: lambda lack: 0.5 * lack**2}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("C", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("learner", [Hinge, SquaredHinge])
@pytest.mark.parametrize("geometry", [LpBall(2.0), Simplex()], ids=repr)
def test_the_model_is_as_good_as_its_bound(rng, dtype, C, learner, geometry):
    X = rng.normal(size=(150, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * rng.normal(size=150) > 0, 1.0, -1.0)
    grams = [np.exp(-((x - x[:, None]) ** 2) / width) for x in X.T for width in (0.1, 1.0, 10.0)]
    model = MKLClassifier("precomputed", learner=learner(C=C), geometry=geometry, tol=1e-2, dtype=dtype)
    model.fit(grams, y)
    K = np.tensordot(model.kernel_weights_, grams, axes=1)
    v = np.zeros(150)
    v[model.support_] = model.dual_coef_[0]
    lack = np.maximum(0.0, 1.0 - y * (K @ v + model.intercept_[0]))
    value = 0.5 * v @ K @ v + C * LOSSES[learner](lack).sum()
    assert value <= model.certificate_.upper * (1 + 1e-9)
    assert value >= model.certificate_.lower


def test_larger_coefficients_pay_where_prices_are_high(rng):
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    dear, cheap = (Hinge(C=C).solve(K, y, tol=1e-2) for C in (1e4, 0.1))
    assert dear.stretch > 1.0
    assert cheap.stretch == 1.0
    assert dear.relative_gap <= 1e-2


def test_unequal_prices_are_paid_by_the_intercept_that_is_returned():
    """A rounded kernel's best intercept may be off by its rounding, on the side where samples pay most."""
    K, y, C = np.array([[1.0, 0.3], [0.3, 0.7]]), np.array([1.0, -1.0]), 2500.0 * np.array([3.0, 0.25])
    for weights in ({"class_weight": {1.0: 3.0, -1.0: 0.25}}, {}):
        model = MKLClassifier(
            "precomputed", learner=Hinge(C=2500.0), geometry=LpBall(2.0), dtype="float32", **weights
        )
        model.fit([K], y, sample_weight=None if weights else [3.0, 0.25])
        v = np.zeros(2)
        v[model.support_] = model.dual_coef_[0]
        combined = model.kernel_weights_[0] * K
        lack = np.maximum(0.0, 1.0 - y * (combined @ v + model.intercept_[0]))
        assert 0.5 * v @ combined @ v + C @ lack <= model.certificate_.upper * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_classes_with_prices_far_apart_attain_the_bound_in_float32(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0.2, 1.0, -1.0)  # separable
    grams = [np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / width) for width in (1.0, 5.0, 20.0)]
    C = 10.0 ** rng.integers(0, 4) * np.where(y > 0, 10.0, 0.1)
    model = MKLClassifier("precomputed", learner=Hinge(C=1.0), geometry=LpBall(2.0), dtype="float32")
    model.fit(grams, y, sample_weight=C)
    K, v = np.tensordot(model.kernel_weights_, grams, axes=1), np.zeros(60)
    v[model.support_] = model.dual_coef_[0]
    lack = np.maximum(0.0, 1.0 - y * (K @ v + model.intercept_[0]))
    value = 0.5 * v @ K @ v + C @ lack
    assert model.certificate_.lower <= value <= model.certificate_.upper * (1 + 1e-9)
