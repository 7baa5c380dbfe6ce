"""p = 1: the machine of Crammer and Singer and its simplex MKL, beside a conic solver."""

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_iris
from tests.multiclass.problems import encloses

from kernelweave import KernelBank, ObscureClassifier, presets
from kernelweave.gram import DenseGrams
from kernelweave.kernels import Gaussian, Linear
from kernelweave.multiclass import OnlineBatch
from kernelweave.multiclass.crammer_singer import CrammerSinger, solve_on_simplex


def random_features(seed, n=30, n_kernels=4, n_classes=3):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    lines = np.eye(n_classes)[y]
    Phis = [rng.normal(size=(n, n_classes)) + (lines if m < 2 else 0.0) for m in range(n_kernels)]
    return Phis, y, rng.uniform(0.5, 1.5, n)


def conic_optimum(Phis, y, C, weight):
    """The primal of [Orabona10, Eq. (8)] with p = 1, in explicit features."""
    n, E = len(y), np.eye(y.max() + 1)[y]
    W = [cp.Variable((Phi.shape[1], E.shape[1])) for Phi in Phis]
    f = sum(Phi @ w for Phi, w in zip(Phis, W, strict=True))
    losses = cp.max(f + (1.0 - E), axis=1) - cp.sum(cp.multiply(E, f), axis=1)
    size = sum(cp.norm(w, "fro") for w in W)
    objective = 0.5 / (C * n) * cp.square(size) + cp.sum(cp.multiply(weight, losses)) / n
    return cp.Problem(cp.Minimize(objective)).solve(solver="CLARABEL")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_the_bounds_enclose_the_conic_optimum(seed, C):
    Phis, y, weight = random_features(seed)
    found = solve_on_simplex(DenseGrams([P @ P.T for P in Phis]), y, 3, C, weight, 1e-5)
    optimum = conic_optimum(Phis, y, C, weight)
    assert found.stopped == "converged"
    assert found.certificate.relative_gap <= 1e-5
    assert encloses(found.certificate, optimum)
    assert found.certificate.upper == pytest.approx(optimum, rel=2e-5)
    for record in found.history:
        assert encloses(record.certificate, optimum)


def test_the_model_attains_the_upper_bound():
    Phis, y, weight = random_features(5)
    Ks = [P @ P.T for P in Phis]
    found = solve_on_simplex(DenseGrams(Ks), y, 3, 2.0, weight, 1e-4)
    f = sum(eta * K for eta, K in zip(found.eta, Ks, strict=True)) @ found.coef
    own = f[np.arange(30), y]
    rivals = np.where(np.eye(3, dtype=bool)[y], -np.inf, f).max(axis=1)
    loss = np.mean(weight * np.maximum(0.0, 1.0 + rivals - own))
    norms = [eta * np.sqrt(np.vdot(found.coef, K @ found.coef)) for eta, K in zip(found.eta, Ks, strict=True)]
    np.testing.assert_allclose(found.norms, norms, atol=1e-10)
    value = 0.5 / (2.0 * 30) * sum(norms) ** 2 + loss
    assert found.certificate.lower <= value <= found.certificate.upper * (1 + 1e-9)
    assert found.eta.sum() == pytest.approx(1.0)


def test_the_machine_is_that_of_one_kernel():
    Phis, y, weight = random_features(7, n_kernels=1)
    inner = CrammerSinger(C=3.0, n_classes=3).solve(Phis[0] @ Phis[0].T, y, weight, tol=1e-6)
    assert inner.relative_gap <= 1e-6
    optimum = conic_optimum(Phis, y, 3.0, weight) * 3.0 * 30
    assert inner.dual <= optimum * (1 + 1e-7)
    assert optimum * (1 - 1e-7) <= inner.primal
    np.testing.assert_allclose(inner.coef.sum(axis=1), 0.0, atol=1e-10)
    assert (inner.coef[np.arange(30), y] <= 3.0 * weight + 1e-10).all()


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


BANK = KernelBank([Linear(), Gaussian(), Gaussian(width=0.3)])


def test_the_estimator_solves_it_and_is_near_the_limit_of_p(iris):
    X, y = iris
    model = ObscureClassifier(BANK, p=1.0, C=10.0).fit(X, y)
    assert model.duality_gap_ <= 1e-3
    assert model.score(X, y) > 0.95
    assert set(model.predict(X)) == set(y)
    assert model.kernel_weights_.sum() == pytest.approx(1.0)
    near = ObscureClassifier(BANK, p=1.02, C=10.0).fit(X, y)
    # ‖·‖₂,ₚ falls with p, by at most M^(1 − 1/p): so do the optima, by at most its square.
    assert near.bounds_.lower <= model.bounds_.upper
    assert model.bounds_.lower <= near.bounds_.upper * 3 ** (2 * (1 - 1 / 1.02))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    parts = model._kernel_parts(X)
    np.testing.assert_allclose(parts.sum(axis=2), model.decision_function(X), atol=1e-8)


def test_given_kernels_give_the_same_as_their_bank(iris):
    X, y = iris
    Ks = list(BANK.fit(X).grams())
    by_bank = ObscureClassifier(BANK, p=1.0, solver=None).fit(X, y)
    given = ObscureClassifier("precomputed", p=1.0).fit(Ks, y)
    np.testing.assert_allclose(given.kernel_weights_, by_bank.kernel_weights_, atol=1e-6)
    assert given.objective_ == pytest.approx(by_bank.objective_, rel=1e-6)


def test_the_preset_takes_the_certified_solver():
    assert presets.obscure(p=1.0).solver is None
    assert isinstance(presets.obscure().solver, OnlineBatch)
    assert presets.obscure().p == ObscureClassifier().p


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver": OnlineBatch()}, "p=1 is solved in the dual"),
        ({"checkpoint": "file"}, "p=1 takes no checkpoint"),
    ],
)
def test_what_p_1_cannot_use_is_refused(iris, params, message):
    with pytest.raises(ValueError, match=message):
        ObscureClassifier(BANK, p=1.0, **params).fit(*iris)


def test_streams_and_partitions_need_p_above_1(iris):
    X, y = iris
    with pytest.raises(ValueError, match="partial_fit needs p above 1"):
        ObscureClassifier(BANK, p=1.0).partial_fit(X, y, classes=np.unique(y))


def test_two_classes_and_weights_of_zero(iris):
    X, y = iris
    few = y != "setosa"
    weight = np.where(np.arange(100) < 90, 1.0, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ObscureClassifier(BANK, p=1.0, C=10.0).fit(X[few], y[few], sample_weight=weight)
    assert model.decision_function(X[few]).shape == (100,)
    assert not np.isin(np.arange(90, 100), model.support_).any()
