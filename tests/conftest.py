"""Fixtures every test may use."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, y = X.iloc[:160], y.iloc[:160]
    return (X - X.mean()) / X.std(), y
