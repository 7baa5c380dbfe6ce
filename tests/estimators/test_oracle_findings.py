"""What an independent check of all estimators found, and must not come back."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_iris

from kernelweave import (
    KernelBank,
    MKLClusterer,
    ObscureClassifier,
    SampleAdaptiveMKLClassifier,
    SemiSupervisedMKLClassifier,
)
from kernelweave.kernels import Gaussian
from kernelweave.privileged.svm_2k_problem import SVM2KPrices, solve_two_views
from kernelweave.solvers import Pegasos


def test_the_mean_of_iterates_stays_finite_when_steps_are_huge():
    X, y = load_iris(return_X_y=True)
    bank = KernelBank([Gaussian(scale=s) for s in (0.5, 2.0)])
    model = ObscureClassifier(bank, C=1e4, p=1.5, solver=Pegasos(epochs=4), random_state=0).fit(X, y)
    assert np.isfinite(model.dual_coef_).all()
    assert np.isfinite(model.kernel_weights_).all()
    assert 0.0 <= model.bounds_.lower <= model.bounds_.upper <= 1.0
    assert model.score(X, y) > 0.6


@pytest.mark.filterwarnings("ignore:Stopped")
def test_a_column_that_never_changes_is_no_obstacle_to_weak_labels():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), np.zeros(40)])
    y = np.where(X[:, 0] > 0, 1, 0)
    X[:, 0] += 3.0 * (2 * y - 1)
    given = np.where(np.arange(40) < 12, y, -1)
    bank = KernelBank.per_feature(widths=[1.0], degrees=[1])
    model = SemiSupervisedMKLClassifier(bank).fit(X, given)
    assert (model.predict(X) == y).mean() > 0.9
    clusters = MKLClusterer(bank).fit(X).labels_
    assert max((clusters == y).mean(), (clusters != y).mean()) > 0.9


def test_traces_of_kernels_that_are_not_centred_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="needs centre=True"):
        SampleAdaptiveMKLClassifier(centre=False, unit_trace=True).fit(X, y)


@pytest.mark.parametrize(("C", "C_b", "D"), [(1e4, 1.0, 1.0), (1.0, 2e3, 1.0), (1e3, 1.0, 1e3)])
def test_two_views_whose_prices_differ_by_orders_of_magnitude_are_solved(C, C_b, D):
    rng = np.random.default_rng(0)
    n, epsilon = 24, 0.1
    views = rng.normal(size=(n, 4)), rng.normal(size=(n, 3))
    y = np.where(views[0][:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    Ks = [np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) for X in views]
    prices = SVM2KPrices(np.full(n, C), np.full(n, C_b), np.full(n, D), epsilon)
    machine = solve_two_views(*Ks, y, prices, tol=1e-6)

    u, b = [cp.Variable(n) for _ in Ks], cp.Variable(2)
    f = [K @ v + b[k] for k, (K, v) in enumerate(zip(Ks, u, strict=True))]
    roots = [np.linalg.cholesky(K + 1e-12 * np.eye(n)) for K in Ks]
    norms = sum(0.5 * cp.sum_squares(L.T @ v) for L, v in zip(roots, u, strict=True))
    losses = C * cp.sum(cp.pos(1 - cp.multiply(y, f[0]))) + C_b * cp.sum(cp.pos(1 - cp.multiply(y, f[1])))
    apart = D * cp.sum(cp.pos(cp.abs(f[0] - f[1]) - epsilon))
    scale = 1.0 / max(C, C_b, D)
    optimum = cp.Problem(cp.Minimize(scale * (norms + losses + apart))).solve(solver=cp.CLARABEL) / scale
    assert machine.certificate.relative_gap <= 1e-6
    assert machine.certificate.lower <= optimum * (1 + 1e-5)
    assert optimum * (1 - 1e-5) <= machine.certificate.upper
