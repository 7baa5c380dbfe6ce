"""Data that the tests of this room share."""

import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    X.setflags(write=False)
    return X, y
