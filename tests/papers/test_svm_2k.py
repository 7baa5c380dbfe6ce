"""SVM-2K against a conic solver, and at its limits."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.svm import SVC
from tests.reference.conic import assert_encloses
from tests.reference.privileged import svm_2k_optimum
from tests.reference.problems import random_problem

from kernelweave import SVM2K
from kernelweave.privileged.svm_2k_problem import SVM2KPrices, TwoViews
from kernelweave.privileged.svm_2k_solver import METHODS, TwoViewSolver


def fit(K_a, K_b, y, **params):
    return SVM2K("precomputed", **{"tol": 1e-6} | params).fit([K_a, K_b], y)


@pytest.mark.parametrize("views", [(0, 2), (0, 1), (1, 5)], ids=["both full", "one low", "both low"])
@pytest.mark.parametrize(
    ("C", "D", "epsilon"), [(1.0, 1.0, 0.0), (0.1, 10.0, 0.1), (10.0, 0.01, 0.5), (100.0, 100.0, 0.0)]
)
@pytest.mark.parametrize("method", METHODS)
def test_the_certificate_encloses_the_conic_optimum(views, C, D, epsilon, method):
    Ks, y = random_problem(0, n=50, M=8)
    K_a, K_b = (Ks[m] for m in views)
    optimum = svm_2k_optimum(K_a, K_b, y, C, 2.0 * C, D, epsilon)
    model = fit(K_a, K_b, y, C=C, C_b=2.0 * C, D=D, epsilon=epsilon, method=method)
    assert_encloses(model.certificate_, optimum, 1e-7)
    assert model.duality_gap_ <= 1e-6


def awkward_views(seed, n=40):
    """Two views with every fourth sample twice, the second of low rank, and labels that no view can explain."""
    rng = np.random.default_rng([seed, 20])
    X, Z = rng.normal(size=(n, 4)), rng.normal(size=(n, 3))
    X[::4], Z[::4] = X[1::4], Z[1::4]
    y = np.where(X[:, 0] + Z[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2)), Z @ Z.T, y


@pytest.mark.filterwarnings("ignore:Stopped at a relative duality gap")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("seed", range(3))
def test_duplicates_and_low_rank_are_enclosed_at_any_price(seed, C, method):
    K_a, K_b, y = awkward_views(seed)
    D = C * 10.0 ** (seed - 1)
    optimum = svm_2k_optimum(K_a, K_b, y, C, C, D, 0.1)
    model = fit(K_a, K_b, y, C=C, D=D, method=method, tol=1e-5)
    assert model.certificate_.lower <= optimum * (1 + 2e-7)
    assert optimum <= model.certificate_.upper * (1 + 2e-7)
    if method == "auto":
        assert model.duality_gap_ <= 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_intercepts_are_the_best_there_are(seed):
    """Against the same loss as a linear program in the two intercepts, at values of no classifier."""
    rng = np.random.default_rng(seed)
    n = 30
    y, f = np.where(rng.random(n) < 0.4, 1.0, -1.0), 2.0 * rng.normal(size=(2, n))
    prices = SVM2KPrices(rng.random(n), 3.0 * rng.random(n), 2.0 * rng.random(n), 0.3)
    views = TwoViews(np.eye(n), np.eye(n), y, prices)
    b = cp.Variable(2)
    loss = prices.margin_a @ cp.pos(1 - cp.multiply(y, f[0] + b[0]))
    loss += prices.margin_b @ cp.pos(1 - cp.multiply(y, f[1] + b[1]))
    loss += prices.disagreement @ cp.pos(cp.abs(f[0] - f[1] + b[0] - b[1]) - 0.3)
    optimum = cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
    assert views._loss(f, views._best_intercepts(f)) == pytest.approx(optimum, rel=1e-7)


def test_auto_goes_on_by_interior_point_where_smo_runs_out_of_steps():
    K_a, K_b, y = awkward_views(0)
    prices = SVM2KPrices(np.full(40, 100.0), np.full(40, 100.0), np.full(40, 100.0), 0.1)
    views, few = TwoViews(K_a, K_b, y, prices), 0.01
    stopped = TwoViewSolver(1e-6, smo_steps=few, max_dense=10).solve(views)
    followed = TwoViewSolver(1e-6, smo_steps=few).solve(views)
    assert stopped.relative_gap <= 1e-6  # beyond max_dense SMO may take as long as it needs
    assert followed.relative_gap <= 1e-6
    assert followed.steps > 5
    assert abs(followed.certificate.upper - stopped.certificate.upper) <= 2e-6 * stopped.certificate.upper


@pytest.mark.parametrize(("method", "rounds"), [("smo", (1, 2)), ("interior", (1, 3, 5))])
def test_bounds_hold_however_early_it_stops(method, rounds):
    Ks, y = random_problem(1, n=50, M=4)
    optimum = svm_2k_optimum(Ks[0], Ks[2], y, 1.0, 1.0, 1.0, 0.1)
    for steps in rounds:
        with pytest.warns(UserWarning, match="Stopped at a relative duality gap of"):
            model = fit(Ks[0], Ks[2], y, max_iter=steps, method=method)
        assert model.certificate_.lower <= optimum <= model.certificate_.upper


def test_the_printed_form_without_eta_nonnegative_would_make_epsilon_a_constant():
    """With eta free the objective is that of epsilon = 0 less D n epsilon: epsilon would do nothing."""
    Ks, y = random_problem(2, n=40, M=4)
    at_zero = fit(Ks[0], Ks[2], y, epsilon=0.0)
    wide = fit(Ks[0], Ks[2], y, epsilon=0.5)
    printed = at_zero.objective_ - 40 * 0.5
    assert wide.objective_ > printed + 1.0
    a, b = (model.decision_function([Ks[0], Ks[2]]) for model in (wide, at_zero))
    assert np.abs(a - b).max() > 0.01


def test_without_a_price_on_disagreement_it_is_two_classifiers():
    Ks, y = random_problem(3, n=50, M=4)
    model = fit(Ks[0], Ks[2], y, D=1e-9, C=2.0, tol=1e-7)
    values = model.view_decisions([Ks[0], Ks[2]])
    for view, K in enumerate((Ks[0], Ks[2])):
        svc = SVC(C=2.0, kernel="precomputed", tol=1e-10).fit(K, y)
        np.testing.assert_allclose(values[:, view], svc.decision_function(K), atol=5e-3)


def test_a_high_price_makes_the_views_agree():
    Ks, y = random_problem(4, n=50, M=4)
    apart = []
    for D in (1e-3, 0.1, 1e3):
        a, b = fit(Ks[0], Ks[2], y, D=D, epsilon=0.0).view_decisions([Ks[0], Ks[2]]).T
        apart.append(np.abs(a - b).sum())
    assert apart[0] > apart[1] > apart[2]
    assert apart[2] < 0.1 * apart[0]


def test_the_same_view_twice_is_one_classifier():
    Ks, y = random_problem(5, n=50, M=1)
    twice = fit(Ks[0], Ks[0], y, C=1.0, tol=1e-7)
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-10).fit(Ks[0], y)
    np.testing.assert_allclose(
        twice.decision_function([Ks[0], Ks[0]]), svc.decision_function(Ks[0]), atol=5e-3
    )


def test_weights_are_repetitions():
    Ks, y = random_problem(6, n=40, M=4)
    weight = np.random.default_rng(0).integers(0, 3, 40).astype(float)
    weight[:4] = 1.0
    repeated = np.repeat(np.arange(40), weight.astype(int))
    inside = np.ix_(repeated, repeated)
    weighted = SVM2K("precomputed", tol=1e-7).fit([Ks[0], Ks[2]], y, sample_weight=weight)
    longer = fit(Ks[0][inside], Ks[2][inside], y[repeated], tol=1e-7)
    assert weighted.objective_ == pytest.approx(longer.objective_, rel=1e-6)


@pytest.mark.parametrize(("C", "C_b", "D"), [(1e4, 1.0, 1.0), (1.0, 2e3, 1.0), (1e3, 1.0, 1e3)])
@pytest.mark.parametrize("method", ["auto", "interior"])
def test_prices_may_differ_by_orders_of_magnitude(C, C_b, D, method):
    rng = np.random.default_rng(0)
    n, epsilon = 24, 0.1
    views = rng.normal(size=(n, 4)), rng.normal(size=(n, 3))
    y = np.where(views[0][:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    Ks = [np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2)) for X in views]
    prices = SVM2KPrices(np.full(n, C), np.full(n, C_b), np.full(n, D), epsilon)
    solution = TwoViewSolver(tol=1e-6, method=method).solve(TwoViews(*Ks, y, prices))

    u, b = [cp.Variable(n) for _ in Ks], cp.Variable(2)
    f = [K @ v + b[k] for k, (K, v) in enumerate(zip(Ks, u, strict=True))]
    roots = [np.linalg.cholesky(K + 1e-12 * np.eye(n)) for K in Ks]
    norms = sum(0.5 * cp.sum_squares(L.T @ v) for L, v in zip(roots, u, strict=True))
    losses = C * cp.sum(cp.pos(1 - cp.multiply(y, f[0]))) + C_b * cp.sum(cp.pos(1 - cp.multiply(y, f[1])))
    apart = D * cp.sum(cp.pos(cp.abs(f[0] - f[1]) - epsilon))
    scale = 1.0 / max(C, C_b, D)
    optimum = cp.Problem(cp.Minimize(scale * (norms + losses + apart))).solve(solver=cp.CLARABEL) / scale
    assert solution.certificate.relative_gap <= 1e-6
    assert_encloses(solution.certificate, optimum, 1e-5)
