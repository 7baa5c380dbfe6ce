"""LogDet metric learning against conic programs: metrics, both bounds, and proofs of infeasibility."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from tests.metric.metrics import bounds, itml, itml_plus, random_pairs
from tests.reference import metrics as oracle

from kernelweave.errors import InfeasibleError
from kernelweave.metric import BregmanProjections, pairs_from_labels
from kernelweave.metric.central_path import CentralPath
from kernelweave.metric.problem import distance_percentiles
from kernelweave.metric.projections import BestBounds, proves_infeasible

ORACLE = 1e-6  # what the conic solver's own optimum may be off by, relatively


def fit(given, tol=1e-9, max_iter=3000, rng=None, **options):
    return BregmanProjections(tol, max_iter, **options).solve(given, rng or np.random.default_rng(0))


def assert_optimal(result, optimum, M):
    assert result.stopped == "converged"
    assert_encloses(result, optimum)
    np.testing.assert_allclose(result.M, M, atol=1e-4 * np.abs(M).max())


def assert_encloses(result, optimum):
    slack = ORACLE * abs(optimum)
    for record in result.history:
        assert record.certificate.lower <= optimum + slack
        assert record.certificate.upper >= optimum - slack


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_itml_is_the_conic_optimum(seed, gamma):
    V, _, sign = random_pairs(seed)
    optimum, M = oracle.itml(V, sign, gamma, *bounds(V))
    assert_optimal(fit(itml(V, sign, gamma)), optimum, M)


class OneOrder:
    """Stands for a generator that always draws the same order."""

    def permutation(self, n):
        return np.random.default_rng(7).permutation(n)


def test_a_new_order_every_sweep_saves_most_of_the_sweeps():
    X, y = load_iris(return_X_y=True)
    ends, sign = pairs_from_labels(y, 150, random_state=0)
    V = (X / X.std(axis=0))[ends]
    given = itml(V[:, 0] - V[:, 1], sign.astype(float))
    shuffled = fit(given, tol=1e-3, max_unknowns=0)
    kept = fit(given, tol=1e-3, rng=OneOrder(), max_unknowns=0)
    assert shuffled.stopped == kept.stopped == "converged"
    assert 5 * shuffled.n_sweeps < kept.n_sweeps
    np.testing.assert_allclose(kept.certificate.upper, shuffled.certificate.upper, rtol=2e-3)


def test_itml_stays_close_to_any_prior(rng):
    V, _, sign = random_pairs(3)
    A = rng.normal(size=(4, 4))
    prior = A @ A.T + np.eye(4)
    optimum, M = oracle.itml(V, sign, 1.0, *bounds(V), prior=prior)
    assert_optimal(fit(itml(V, sign, prior=prior)), optimum, M)


@pytest.mark.parametrize(("gamma", "lam", "kappa"), [(0.1, 1.0, 1.0), (1.0, 0.5, 0.3), (1.0, 2.0, 5.0)])
def test_soft_itml_plus_is_the_conic_optimum(gamma, lam, kappa):
    V, W, sign = random_pairs(4)
    optimum, M, P = oracle.itml_plus(V, W, sign, gamma, lam, kappa, *bounds(V))
    result = fit(itml_plus(V, W, sign, gamma=gamma, lam=lam, kappa=kappa), tol=1e-8)
    assert_optimal(result, optimum, M)
    np.testing.assert_allclose(result.P, P, atol=1e-4 * np.abs(P).max())


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_hard_itml_plus_is_the_conic_optimum_and_the_limit_of_the_soft_form(seed):
    V, W, sign = random_pairs(seed, n=8)
    optimum, M, P = oracle.itml_plus(V, W, sign, 1.0, 1.0, None, *bounds(V))
    hard = fit(itml_plus(V, W, sign), tol=1e-8)
    assert_optimal(hard, optimum, M)
    np.testing.assert_allclose(hard.P, P, atol=1e-4 * np.abs(P).max())
    soft = fit(itml_plus(V, W, sign, kappa=1e3), tol=1e-6)
    assert_optimal(soft, optimum, M)


@pytest.mark.parametrize("kappa", [1.0, None])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_partial_itml_plus_is_the_conic_optimum(kappa, share):
    V, W, sign = random_pairs(1, n=10)
    has_privileged = np.arange(10) < 10 * share
    known = np.where(has_privileged[:, None], W, np.nan)
    optimum, M, _ = oracle.itml_plus(V, known, sign, 1.0, 1.0, kappa, *bounds(V))
    assert_optimal(
        fit(itml_plus(V, W, sign, kappa=kappa, has_privileged=has_privileged), tol=1e-10), optimum, M
    )


@pytest.mark.parametrize("newton_after", [1, 10])
@pytest.mark.parametrize(("gamma", "lam", "kappa"), [(0.1, 1.0, 1.0), (1.0, 0.5, 0.1), (10.0, 2.0, 10.0)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_newton_steps_end_at_the_conic_optimum(gamma, lam, kappa, share, newton_after):
    V, W, sign = random_pairs(5, n=40)
    has_privileged = np.arange(40) < 40 * share
    given = itml_plus(V, W, sign, gamma=gamma, lam=lam, kappa=kappa, has_privileged=has_privileged)
    known = np.where(has_privileged[:, None], W, np.nan)
    optimum, M, P = oracle.itml_plus(V, known, sign, gamma, lam, kappa, *bounds(V))
    result = fit(given, tol=1e-8, max_iter=newton_after + 3, newton_after=newton_after)
    assert_optimal(result, optimum, M)
    if share > 0.0:
        np.testing.assert_allclose(result.P, P, atol=1e-3 * np.abs(P).max())
    sweeps = fit(given, tol=1e-8, max_iter=newton_after + 3, max_unknowns=0)
    assert result.certificate.gap < sweeps.certificate.gap or sweeps.stopped == "converged"


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_newton_steps_keep_to_the_hard_form(seed):
    V, W, sign = random_pairs(seed, n=8)
    optimum, M, _ = oracle.itml_plus(V, W, sign, 1.0, 1.0, None, *bounds(V))
    result = fit(itml_plus(V, W, sign), tol=1e-7, newton_after=1)
    assert_optimal(result, optimum, M)


def test_a_newton_step_solves_the_linearised_equations(rng):
    """Against finite differences of the equations of the central path, by hand."""
    V, W, sign = random_pairs(6, n=12)
    has_privileged = np.arange(12) < 8
    given = itml_plus(V, W, sign, gamma=0.7, lam=0.4, kappa=0.8, has_privileged=has_privileged)
    state = given.initial_state()
    given.sweep(state, rng.permutation(12))
    path, mu, h = CentralPath(given, state), 0.05, 1e-6

    def equations(step):
        at = copy(path)
        at.M, at.P, at.a = path.M + step * d.M, path.P + step * d.P, path.a + step * d.a
        at.r, at.t = path.r + step * d.r, path.t + step * d.t
        p, s = (np.einsum("ij,jk,ik->i", U, K, U) for U, K in ((V, at.M), (W, at.P)))
        xi = np.where(has_privileged, s, 1.0 / (1.0 / given.goal - sign * at.a / 0.7))
        room = np.where(has_privileged, at.t, 0.0) - at.r
        in_M = np.eye(4) - np.linalg.inv(at.M) + (V.T * (at.a * sign)) @ V
        pull = np.where(has_privileged, 0.7 * (1.0 / given.goal - 1.0 / s) - at.a * sign, 0.0)
        in_P = 0.4 * (np.eye(3) - np.linalg.inv(at.P)) + (W.T * pull) @ W
        bought = (given.cap - at.a)[has_privileged] * at.t[has_privileged] - mu
        return np.concatenate([sign * (p - xi) - room, at.a * at.r - mu, bought, in_M.ravel(), in_P.ravel()])

    d = path.direction(mu)
    now, slope = equations(0.0), (equations(h) - equations(-h)) / (2.0 * h)
    np.testing.assert_allclose(now + slope, 0.0, atol=1e-5 * np.abs(now).max())


def test_metrics_of_the_hard_form_satisfy_every_constraint():
    V, W, sign = random_pairs(0, n=8)
    result = fit(itml_plus(V, W, sign), tol=1e-4)
    p, s = (np.einsum("ij,jk,ik->i", A, K, A) for A, K in ((V, result.M), (W, result.P)))
    assert (sign * (p - s)).max() <= 1e-12


def test_the_gap_bounds_the_divergence_from_the_optimal_metric():
    V, _, sign = random_pairs(2)
    _, M = oracle.itml(V, sign, 1.0, *bounds(V))
    for tol in (1e-1, 1e-2, 1e-3):
        result = fit(itml(V, sign), tol=tol)
        ratio = M @ np.linalg.inv(result.M)
        divergence = np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(M)
        assert 0.0 < divergence <= result.certificate.gap + 1e-6


def test_algorithm_6_stops_above_the_optimum_and_its_certificate_says_so():
    V, W, sign = random_pairs(4, n=8)
    optimum, M, _ = oracle.itml_plus(V, W, sign, 1.0, 1.0, None, *bounds(V))
    result = fit(itml_plus(V, W, sign), corrected=False, max_iter=100)
    assert result.stopped == "steady"
    assert_encloses(result, optimum)
    assert result.certificate.relative_gap > 0.01
    assert np.abs(result.M - M).max() > 0.01 * np.abs(M).max()
    # The metric is that of the multipliers, not the feasible one behind the upper bound.
    np.testing.assert_allclose(np.linalg.inv(result.M), np.eye(4) + (V.T * (result.a * sign)) @ V)
    longer = fit(itml_plus(V, W, sign), corrected=False, max_iter=100, resting_change=0.0)
    assert longer.n_sweeps > 2 * result.n_sweeps


def test_worse_multipliers_do_not_worsen_the_bounds(rng):
    V, _, sign = random_pairs(0)
    given = itml(V, sign)
    found, state = BestBounds(given, None, None), given.initial_state()
    for _ in range(5):
        given.sweep(state, rng.permutation(given.n_pairs))
    best = found.update(state, n_sweeps=5)
    assert found.update(given.initial_state(), n_sweeps=6) == best
    np.testing.assert_array_equal(found.result("max_iter", use_last=False).a, state.a)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_an_infeasible_hard_problem_is_named(seed):
    V, W, sign = random_pairs(seed, n=60, d=3, g=2)
    with pytest.raises(InfeasibleError, match=r"has no solution.*kappa"):
        fit(itml_plus(V, W, sign))


def test_a_proof_of_infeasibility_is_one():
    # One pair similar, one dissimilar, with the same differences: p <= s and p >= c s with c > 1.
    V, W = np.eye(2)[[0, 0, 1]], np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    sign = np.array([1.0, -1.0, 1.0])
    assert not proves_infeasible(itml_plus(V, W, sign), np.array([1.0, 1.0, 0.0]))
    only = itml_plus(V[:2, :1], W[:2, :1], sign[:2])
    assert proves_infeasible(only, np.array([2.0, 1.0]))  # 2 - 1 > 0 and -(2 - 4) > 0
    assert not proves_infeasible(only, np.array([1.0, 2.0]))  # 1 - 2 < 0
    assert not proves_infeasible(only, np.array([9.0, 1.0]))  # -(9 - 4) < 0
    assert not proves_infeasible(only, np.zeros(2))


def test_a_feasible_problem_is_never_called_infeasible():
    for seed in range(8):
        V, W, sign = random_pairs(seed, n=8, d=5, g=4)
        assert np.isfinite(fit(itml_plus(V, W, sign), tol=1e-3).certificate.upper)


def test_goals_met_by_the_prior_leave_it_alone(rng):
    V, _, sign = random_pairs(0)
    V = np.where(sign[:, None] > 0, 0.01, 100.0) * V / np.linalg.norm(V, axis=1, keepdims=True)
    for _ in range(5):
        A = rng.normal(size=(4, 4))
        prior = A @ A.T + np.eye(4)
        result = fit(replace(itml(V, sign, prior=prior), goal=np.where(sign > 0, 1.0, 2.0)))
        np.testing.assert_array_equal(result.M, prior)
        assert (result.certificate.upper, result.certificate.lower, result.n_sweeps) == (0.0, 0.0, 0)


def test_percentiles_are_those_of_all_squared_distances(rng):
    X, A = rng.normal(size=(200, 3)), rng.normal(size=(3, 3))
    metric = A @ A.T
    V = (X[:, None] - X)[np.triu_indices(200, 1)]
    expected = np.percentile(np.einsum("ij,jk,ik->i", V, metric, V), [3, 97])
    repeated = np.vstack([X, X[:100]])[rng.permutation(300)]
    for points in (X, repeated):
        found = distance_percentiles(points, metric, (3.0, 97.0))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_percentiles_of_many_points_do_not_depend_on_their_order(rng):
    X = rng.normal(size=(4500, 2))
    first = distance_percentiles(X, np.eye(2), (3.0, 97.0))
    assert first == distance_percentiles(X[rng.permutation(4500)], np.eye(2), (3.0, 97.0))
