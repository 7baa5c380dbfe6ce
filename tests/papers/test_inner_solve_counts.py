"""How many inner solves the second-order steps need: a promise that does not depend on the clock."""

import numpy as np
import pytest
from tests.datasets.data import load_or_skip

from kernelweave import KernelBank, MKLClassifier
from kernelweave.geometry import BoxSimplex, Simplex
from kernelweave.learners import Hinge


def problem(name):
    if name == "synthetic":
        rng = np.random.default_rng(0)
        X = rng.normal(size=(538, 8))
        return X, np.where(X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.7 * rng.normal(size=538) > 0, 1.0, -1.0)
    data = load_or_skip(name)
    X, y = data.X, data.y
    chosen = np.random.default_rng(0).permutation(len(y))[: int(0.7 * len(y))]
    return (X[chosen] - X[chosen].mean(axis=0)) / X[chosen].std(axis=0), y[chosen]


@pytest.mark.parametrize("name", ["synthetic", "diabetes", "ionosphere", "heart"])
@pytest.mark.parametrize("geometry", [Simplex(), BoxSimplex(nu=0.3)], ids=["simplex", "box"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_fifteen_inner_solves_are_enough_for_three_digits(name, geometry, C):
    X, y = problem(name)
    model = MKLClassifier(KernelBank.per_feature(), learner=Hinge(C=C), geometry=geometry, tol=1e-3)
    model.fit(X, y)
    assert model.duality_gap_ <= 1e-3
    assert model.n_iter_ <= 15
