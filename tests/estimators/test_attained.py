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
