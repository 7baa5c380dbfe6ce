"""A kernel that is zero has no Nyström features, and no part in the model."""

import numpy as np
import pytest

from kernelweave import KernelBank, Nystroem, ObscureClassifier
from kernelweave.kernels import Gaussian, Linear
from kernelweave.solvers import DualAscent

COLUMNS = {"x": [0, 1, 2], "zeros": [3, 4]}


def samples(n=60):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, n)
    return np.hstack([rng.normal(size=(n, 3)) + y[:, None], np.zeros((n, 2))]), y


def bank(order):
    views = {name: COLUMNS[name.rstrip("23")] for name in order}
    kernels = {"x": Gaussian(gamma=0.2)}
    return KernelBank([(name, kernels.get(name, Linear())) for name in order], views=views)


WAYS = {
    "fit": lambda model, X, y: model.fit(X, y),
    "stream": lambda model, X, y: model.partial_fit(X, y, classes=[0, 1, 2]),
    "partitions": lambda model, X, y: model.fit_partitions([X[:30], X[30:]], [y[:30], y[30:]]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "order", [["x", "zeros"], ["zeros", "x"], ["zeros", "x", "zeros2", "zeros3"]], ids="-".join
)
def test_a_zero_kernel_changes_nothing_wherever_it_stands(way, order):
    X, y = samples()
    how = {"features": Nystroem(20), "solver": DualAscent(tol=1e-2), "random_state": 0}
    alone = WAYS[way](ObscureClassifier(bank(["x"]), **how), X, y)
    model = WAYS[way](ObscureClassifier(bank(order), **how), X, y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-8)
    place = order.index("x")
    np.testing.assert_allclose(model.kernel_norms_[place], alone.kernel_norms_[0], rtol=1e-8)
    assert (np.delete(model.kernel_norms_, place) == 0.0).all()
