"""How many machines the second-order steps need: a promise that does not depend on the clock."""

import os
from pathlib import Path

import numpy as np
import pytest

from kernelweave import KernelBank, MKLClassifier
from kernelweave.geometry import BoxSimplex, Simplex
from kernelweave.learners import Hinge

DATA = Path(os.environ.get("KERNELWEAVE_DATA", Path(__file__).parents[3] / "shared" / "data"))


def problem(name):
    if name == "synthetic":
        rng = np.random.default_rng(0)
        X = rng.normal(size=(538, 8))
        return X, np.where(X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.7 * rng.normal(size=538) > 0, 1.0, -1.0)
    file = DATA / f"{name}.npz"
    if not file.exists():
        pytest.skip(f"{file.name} is not in {DATA}; set KERNELWEAVE_DATA to its folder")
    content = np.load(file)
    X, y = content["X"].astype(float), content["y"]
    X = X[:, X.std(axis=0) > 0.0]
    chosen = np.random.default_rng(0).permutation(len(y))[: int(0.7 * len(y))]
    return (X[chosen] - X[chosen].mean(axis=0)) / X[chosen].std(axis=0), y[chosen]


@pytest.mark.parametrize("name", ["synthetic", "diabetes", "ionosphere", "heart"])
@pytest.mark.parametrize("geometry", [Simplex(), BoxSimplex(nu=0.3)], ids=["simplex", "box"])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_fifteen_machines_are_enough_for_three_digits(name, geometry, C):
    X, y = problem(name)
    model = MKLClassifier(KernelBank.per_feature(), learner=Hinge(C=C), geometry=geometry, tol=1e-3)
    model.fit(X, y)
    assert model.duality_gap_ <= 1e-3
    assert model.n_iter_ <= 15
