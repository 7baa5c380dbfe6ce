"""EasyMKL and the heuristics against what their papers define."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestCentroid
from sklearn.svm import SVC
from tests.reference.cones import factor
from tests.reference.conic import conic_optimum
from tests.reference.problems import imbalanced_problem, random_problem

from kernelweave import (
    EasyMKLClassifier,
    FHeuristicClassifier,
    MKLClassifier,
    PWMKClassifier,
    alignment,
)
from kernelweave.geometry import LpBall, Point
from kernelweave.learners import MarginDistribution

POLISHED = {"eps_abs": 1e-11, "eps_rel": 1e-11, "max_iter": 200_000, "polishing": True}


def komd(K, y, lam):
    """gamma of (1 - lam) g'YKYg + lam g'g over distributions on both classes, by a quadratic program."""
    gamma = cp.Variable(len(y), nonneg=True)
    Q = (1.0 - lam) * np.outer(y, y) * K + lam * np.eye(len(y))
    sums = [cp.sum(gamma[y > 0]) == 1, cp.sum(gamma[y < 0]) == 1]
    cp.Problem(cp.Minimize(cp.quad_form(gamma, cp.psd_wrap(Q))), sums).solve(solver=cp.OSQP, **POLISHED)
    return gamma.value


@pytest.mark.parametrize("lam", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_easy_mkl_is_its_published_problem(seed, lam):
    Ks, y = random_problem(seed, n=50, M=6)
    gamma = komd(sum(Ks), y, lam)
    distances = np.array([(gamma * y) @ K @ (gamma * y) for K in Ks])
    eta = distances / distances.sum()
    fitted = EasyMKLClassifier("precomputed", lam=lam, tol=1e-10).fit(Ks, y)
    np.testing.assert_allclose(fitted.kernel_weights_, eta, atol=1e-6)
    # Second step: the same on the weighted sum, with the threshold in the middle of the weighted class means.
    K = sum(e * K for e, K in zip(eta, Ks, strict=True))
    gamma = komd(K, y, lam)
    f = K @ (gamma * y)
    expected = f - 0.5 * gamma @ f
    ours = fitted.decision_function(Ks)
    unit = 0.5 * (gamma * y) @ f  # half the distance of the means
    np.testing.assert_allclose(ours * unit, expected, atol=1e-6)


def test_easy_mkl_before_its_relaxation_is_the_l2_ball():
    Ks, y = random_problem(3, n=40, M=5)
    lam = 0.3
    gamma, lengths, d = cp.Variable(40, nonneg=True), cp.Variable(5), cp.Variable(5)
    v = cp.multiply(y, gamma)
    sums = [cp.sum(gamma[y > 0]) == 1, cp.sum(gamma[y < 0]) == 1, cp.square(lengths) <= d]
    cones = [cp.norm(factor(K).T @ v) <= lengths[m] for m, K in enumerate(Ks)]
    objective = (1.0 - lam) * cp.norm(d) + lam * cp.sum_squares(gamma)
    value = cp.Problem(cp.Minimize(objective), sums + cones).solve(solver=cp.CLARABEL)
    exact = MKLClassifier(
        "precomputed", learner=MarginDistribution(lam=lam), geometry=LpBall(2.0), tol=1e-7
    ).fit(Ks, y)
    assert -2.0 * (1.0 - lam) * exact.objective_ == pytest.approx(value, rel=1e-5)


def test_even_distributions_are_the_classifier_of_the_class_means(rng):
    X = rng.normal(size=(50, 3)) + np.where(np.arange(50) < 15, 1.0, 0.0)[:, None]
    y = np.where(np.arange(50) < 15, 1.0, -1.0)
    K = X @ X.T
    fitted = MKLClassifier(
        "precomputed", learner=MarginDistribution(lam=1 - 1e-9), geometry=Point([1.0]), tol=1e-9
    ).fit([K], y)
    Z = rng.normal(size=(200, 3))
    expected = NearestCentroid().fit(X, y).predict(Z)
    np.testing.assert_array_equal(fitted.predict([Z @ X.T]), expected)


def test_without_a_penalty_it_is_the_hard_margin():
    Ks, y = random_problem(4, n=40, M=1)
    K = Ks[0] + 0.05 * np.eye(40)
    found = MarginDistribution(lam=0.0).solve(K, y, tol=1e-10)
    svc = SVC(C=1e8, kernel="precomputed", tol=1e-9).fit(K, y)
    values = (K @ found.coef + found.intercept) / found.margin
    np.testing.assert_allclose(values, svc.decision_function(K), atol=1e-4)


def test_the_threshold_stays_in_the_middle_when_a_class_is_rare():
    Ks, y = imbalanced_problem(0, n=60, M=3)
    for lam in (0.0, 0.1, 0.99):
        found = MarginDistribution(lam=lam).solve(sum(Ks), y, tol=1e-10)
        f = sum(Ks) @ found.coef
        gamma = np.abs(found.coef)
        assert found.intercept == pytest.approx(-0.5 * gamma @ f, rel=1e-5)


def test_weighted_samples_have_the_bounds_of_their_own_problem(rng):
    Ks, y = random_problem(2, n=40, M=3)
    weight = rng.uniform(0.2, 3.0, 40)
    optimum = conic_optimum([sum(Ks)], y, ("distribution", 0.25 / weight), ("point", [1.0])).value
    found = MarginDistribution(lam=0.2).solve(sum(Ks), y, weight, tol=1e-8)
    slack = 1e-7 * abs(optimum)
    assert found.dual - slack <= optimum <= found.primal + slack
    assert found.primal == pytest.approx(optimum, rel=1e-6)


def test_f_heuristic_weighs_by_alignment():
    Ks, y = random_problem(8, n=50, M=6)
    each = np.array([alignment(K, y) for K in Ks])
    fitted = FHeuristicClassifier("precomputed").fit(Ks, y)
    np.testing.assert_allclose(fitted.kernel_weights_, each / each.sum(), atol=1e-10)


@pytest.mark.parametrize("delta", [0.0, 0.4, 1.0])
def test_pwmk_weighs_by_accuracy(delta):
    Ks, y = random_problem(9, n=60, M=4)
    folds = StratifiedKFold(3)
    each = np.array(
        [
            accuracy_score(y, cross_val_predict(SVC(kernel="precomputed", tol=1e-8), K, y, cv=folds))
            for K in Ks
        ]
    )
    fitted = PWMKClassifier("precomputed", delta=delta, cv=3, tol=1e-8).fit(Ks, y)
    np.testing.assert_allclose(fitted.kernel_accuracies_, each, atol=1e-12)
    above = each - delta * each.min()
    np.testing.assert_allclose(fitted.kernel_weights_, above / above.sum(), atol=1e-12)


def test_kernels_of_equal_accuracy_count_the_same_even_at_delta_one():
    Ks, y = random_problem(9, n=40, M=1)
    fitted = PWMKClassifier("precomputed", delta=1.0, cv=2).fit([Ks[0], Ks[0].copy()], y)
    np.testing.assert_allclose(fitted.kernel_weights_, [0.5, 0.5])


def weighted_samples():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] + 0.7 * rng.normal(size=50) > 0).astype(int)
    return [X @ X.T, np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))], y, rng.integers(1, 5, size=50)


def test_accuracies_of_kernels_are_weighted():
    Ks, y, weight = weighted_samples()
    hits, folds = np.empty((2, 50)), StratifiedKFold(5)
    for m, K in enumerate(Ks):
        for train, test in folds.split(K, y):
            svc = SVC(kernel="precomputed", tol=1e-8)
            svc.fit(K[np.ix_(train, train)], y[train], sample_weight=weight[train])
            hits[m, test] = svc.predict(K[np.ix_(test, train)]) == y[test]
    model = PWMKClassifier("precomputed", tol=1e-8).fit(Ks, y, sample_weight=weight)
    np.testing.assert_allclose(model.kernel_accuracies_, hits @ weight / weight.sum())
    assert abs(model.kernel_accuracies_ - hits.mean(axis=1)).max() > 1e-3


def test_easy_mkl_weighs_kernels_by_the_weighted_problem():
    Ks, y, weight = weighted_samples()
    model = EasyMKLClassifier("precomputed", lam=0.3).fit(Ks, y, sample_weight=weight)
    signs = np.where(y == 1, 1.0, -1.0)
    gamma = cp.Variable(50, nonneg=True)
    both = cp.psd_wrap(sum(Ks) * np.outer(signs, signs) + 1e-10 * np.eye(50))
    value = 0.7 * cp.quad_form(gamma, both) + 0.3 * cp.sum(cp.multiply(1.0 / weight, cp.square(gamma)))
    cp.Problem(cp.Minimize(value), [cp.sum(gamma[y == c]) == 1 for c in (0, 1)]).solve(solver=cp.CLARABEL)
    energies = np.array([(gamma.value * signs) @ K @ (gamma.value * signs) for K in Ks])
    np.testing.assert_allclose(model.kernel_weights_, energies / energies.sum(), atol=1e-4)
