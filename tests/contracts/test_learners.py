"""What every learner promises, by table."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC, NuSVC
from tests.contracts.perturbed import perturbed
from tests.contracts.target_cases import BINARY, CASES, for_columns, ids, optimum, samples, solved
from tests.reference import loops
from tests.reference.problems import random_problem

import kernelweave.learners as learners
from kernelweave.geometry import Simplex
from kernelweave.learners import (
    Hinge,
    Learner,
    NuHinge,
    OneClass,
    OneVsRest,
    SquaredHinge,
    UnbiasedSquaredHinge,
)
from kernelweave.solvers import Problem
from kernelweave.solvers.certificate import robust_primal

ALL = BINARY + CASES
each_learner = pytest.mark.parametrize(("learner", "oracle", "targets"), ALL, ids=ids(ALL))
each_classifier = pytest.mark.parametrize(("learner", "oracle", "targets"), BINARY, ids=ids(BINARY))
# The primal value by a naive loop.
NAIVE = {
    "hinge": loops.hinge_primal,
    "squared": loops.squared_hinge_primal,
    "nu": loops.nu_primal,
    "distribution": loops.margin_distribution_primal,
}


def worst_primal(learner, f, error, coef, y):
    """Return the primal value at worst if K v is f up to the error, and the solution it is of."""
    inner, primal = robust_primal(Problem(None, y, learner, Simplex()), f, error, coef)
    return primal, inner


@pytest.fixture(params=[0, 1, 2])
def problem(request):
    Ks, y = random_problem(request.param, n=40, M=4)
    return sum(Ks) / 4, y


def test_every_learner_has_a_row():
    exported = {getattr(learners, name) for name in learners.__all__} - {Learner, OneVsRest}
    classes = {c for c in exported if hasattr(c, "solve")}
    # The one without intercept has its own table: tests/learners/test_unbiased.py.
    assert classes == {type(case[0]) for case in ALL} | {UnbiasedSquaredHinge}


@each_classifier
def test_its_grid_is_legal_and_runs_from_smooth_to_close(problem, learner, oracle, targets):
    K, y = problem
    weight, rare = np.linspace(0.5, 1.5, y.size), np.where(np.arange(y.size) < 4, 1.0, -1.0)
    losses = []
    for value in learner.grid(np.column_stack([y, rare]), weight):
        variant = type(learner)(**learner.get_params() | {learner.tunable: value})
        for column in (y, rare):
            variant.check(column, weight)
        inner = variant.solve(K, y, tol=1e-6)
        losses.append(np.maximum(0.0, 1.0 - y * (K @ inner.coef + inner.intercept) / inner.margin).sum())
    assert (np.diff(losses) < 1e-4).all()


@each_classifier
def test_the_primal_value_is_that_of_a_naive_loop(problem, learner, oracle, targets):
    K, y = problem
    inner = learner.solve(K, y, tol=1e-2)
    naive = NAIVE[oracle[0]](K, inner.coef, y, oracle[1])
    assert inner.primal == pytest.approx(naive.value, rel=1e-9)
    assert inner.quadratic == pytest.approx(inner.coef @ K @ inner.coef, rel=1e-9)


@pytest.fixture(params=[0, 1])
def any_problem(request):
    """A kernel, and targets by name."""
    Ks, targets = samples(request.param)
    return np.ascontiguousarray(sum(Ks) / 4), targets


@each_learner
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_the_two_bounds_enclose_the_optimum(any_problem, learner, oracle, targets, tol):
    K, y = any_problem[0], any_problem[1][targets]
    best = optimum(K, y, oracle, targets)
    inner = solved(learner, K, y, tol=tol)
    assert inner.dual <= best + 1e-8 * abs(best)
    assert best <= inner.primal + 1e-8 * abs(best)
    assert inner.relative_gap <= tol
    assert inner.primal - inner.dual == pytest.approx(inner.gap)


@each_learner
@pytest.mark.parametrize("size", [1e-6, 1e-2, 1.0])
def test_moved_decision_values_cost_no_more_than_the_growth(any_problem, learner, oracle, targets, size, rng):
    K, y = any_problem[0], any_problem[1][targets]
    learner = for_columns(learner, y)
    v = learner.solve(K, y, tol=1e-4).coef
    inner = learner.measure(K @ v, v, y)
    for way in [-y, np.sign(v), -np.sign(v), *rng.normal(size=(20, *y.shape))]:
        moved = learner.measure(K @ v + size * way, v, y)
        allowed = inner.primal_growth(size * np.abs(way)) + 1e-12 * abs(inner.primal)
        assert moved.primal <= inner.primal + allowed


@each_learner
@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.2])
def test_no_rounding_of_the_kernel_lifts_the_optimum_above_the_worst(
    any_problem, learner, oracle, targets, size, rng
):
    K, y = any_problem[0], any_problem[1][targets]
    learner = for_columns(learner, y)
    starts = [learner.solve(K, y, tol=1e-6).coef]
    if (learner, oracle, targets) in BINARY:
        starts += [learner.solve(K, y, tol=1e-1).coef, np.zeros(y.size)]
    for v in starts:
        worst = worst_primal(learner, K @ v, size * np.abs(K) @ np.abs(v), v, y)[0]
        if not learner.decreases_with_margin:  # else larger coefficients may be better at their worst
            assert worst >= learner.measure(K @ v, v, y).primal
        for K_true in perturbed(K, size, rng):
            assert learner.solve(K_true, y, tol=1e-6).dual <= worst + 1e-9 * abs(worst)


@each_learner
def test_float32_kernels_are_solved_as_well(any_problem, learner, oracle, targets):
    K, y = any_problem[0], any_problem[1][targets]
    inner = solved(learner, K.astype(np.float32), y, tol=1e-5)
    rel = 1e-4 if (learner, oracle, targets) in BINARY else 1e-3
    assert inner.primal == pytest.approx(optimum(K, y, oracle, targets), rel=rel)


@each_learner
def test_weights_count_samples(any_problem, learner, oracle, targets):
    K, y = any_problem[0], any_problem[1][targets]
    weight = np.where(np.arange(len(y)) < 6, 2.0, 1.0)
    twice = np.concatenate([np.arange(len(y)), np.arange(6)])
    weighted = solved(learner, K, y, weight, tol=1e-9)
    repeated = solved(learner, np.ascontiguousarray(K[np.ix_(twice, twice)]), y[twice], tol=1e-9)
    assert weighted.dual == pytest.approx(repeated.dual, rel=1e-6)
    if (learner, oracle, targets) in CASES:
        np.testing.assert_allclose(weighted.intercept, repeated.intercept, atol=1e-3 * np.abs(K).max())


@each_learner
def test_samples_of_weight_zero_are_absent(any_problem, learner, oracle, targets):
    K, y = any_problem[0], any_problem[1][targets]
    keep = np.arange(len(y)) >= 5
    without = solved(learner, np.ascontiguousarray(K[np.ix_(keep, keep)]), y[keep], tol=1e-9)
    zeroed = solved(learner, K, y, keep.astype(float), tol=1e-9)
    assert zeroed.dual == pytest.approx(without.dual, rel=1e-6)
    assert not zeroed.coef[~keep].any()


@each_learner
def test_energies_are_minus_the_slope_of_the_optimal_value(any_problem, learner, oracle, targets, rng):
    K, y = any_problem[0], any_problem[1][targets]
    A = rng.normal(size=(len(y), 3))
    step, direction = 1e-4, A @ A.T / len(y)
    ahead, behind = (solved(learner, K + s * step * direction, y, tol=1e-12).dual for s in (1, -1))
    v = solved(learner, K, y, tol=1e-12).coef
    assert (ahead - behind) / (2 * step) == pytest.approx(-0.5 * np.vdot(v, direction @ v), rel=1e-2)


@each_learner
def test_the_curvature_is_the_slope_of_the_energies(any_problem, learner, oracle, targets, rng):
    K, y = any_problem[0], any_problem[1][targets]
    if learner == OneClass(nu=1.0):
        pytest.skip("its coefficients are fixed: there is nothing to bend")
    D = [(lambda A: A @ A.T / len(y))(rng.normal(size=(len(y), 3))) for _ in range(3)]
    inner = solved(learner, K, y, tol=1e-13)
    matvecs = np.stack([d @ inner.coef for d in D])
    H = inner.curvature(K, matvecs)
    unseen = np.where(inner.needed_matvecs, matvecs, np.nan)  # it looks nowhere else, nor do the energies
    np.testing.assert_array_equal(inner.curvature(K, unseen), H)
    assert inner.needed_matvecs[inner.coef != 0.0].all()
    assert np.linalg.eigvalsh(H).min() >= -1e-10 * np.trace(H)
    step, finite = 1e-6, np.empty((3, 3))
    for j, d in enumerate(D):
        sides = [solved(learner, K + s * step * d, y, tol=1e-13).coef for s in (1, -1)]
        h = [np.array([0.5 * np.sum(v * (e @ v)) for e in D]) for v in sides]
        finite[:, j] = -(h[0] - h[1]) / (2 * step)
    np.testing.assert_allclose(H, finite, rtol=2e-2, atol=2e-3 * np.abs(H).max())


def test_the_growth_is_reached_where_every_sample_pays():
    y = np.tile([1.0, -1.0], 10)
    inner = Hinge(C=3.0).measure(np.zeros(20), np.zeros(20), y)
    moved = Hinge(C=3.0).measure(-0.1 * y, np.zeros(20), y)
    assert moved.primal - inner.primal == pytest.approx(inner.primal_growth(np.full(20, 0.1)))
    free = replace(inner, coef=-0.5 * y, gradient_bound=0.0)  # nobody pays: ½ v'Kv alone grows
    assert free.primal_growth(np.full(20, 0.1)) == pytest.approx(0.5 * 20 * 0.5 * 0.1)


def test_the_worst_is_known_where_margins_are():
    y = np.tile([1.0, -1.0], 5)
    v, reach = 0.2 * y, np.linspace(0.0, 0.01, 10)
    easy = worst_primal(Hinge(C=1e6), 3.0 * y, reach, v, y)[0]  # nobody pays
    assert easy == pytest.approx(0.5 * (0.2 * 30.0 + 0.2 * reach.sum()))
    hard = worst_primal(Hinge(C=1e6), y, np.full(10, 0.01), v, y)[
        0
    ]  # all would pay, and larger ones need not
    assert hard == pytest.approx(0.5 * (2.0 + 0.2 * 0.1) / 0.99**2)
    soft = worst_primal(Hinge(C=1e-6), y, np.full(10, 0.01), v, y)[0]
    assert soft == pytest.approx(0.5 * (2.0 + 0.2 * 0.1) + 1e-6 * 0.1)


@pytest.mark.parametrize("learner", [Hinge(1.0), Hinge(1e4), SquaredHinge(10.0)], ids=repr)
@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.2])
def test_the_solution_pays_no_more_than_the_worst_with_the_intercept_it_has(problem, learner, size, rng):
    K, y = problem
    v = learner.solve(K, y, tol=1e-4).coef
    worst, inner = worst_primal(learner, K @ v, size * np.abs(K) @ np.abs(v), v, y)
    scale = inner.coef @ v / (v @ v)
    np.testing.assert_allclose(inner.coef, scale * v)
    assert scale >= 1.0

    def paid(f):
        short = np.maximum(0.0, 1.0 - y * (f + inner.intercept))
        return learner.C * np.sum(short**learner.degree) / learner.degree

    for K_true in (K, *perturbed(K, size, rng)):
        f = K_true @ inner.coef
        assert 0.5 * inner.coef @ f + paid(f) <= worst * (1 + 1e-9)
    # The worst of all: v'Kv as large and every margin as small as it may be.
    f, error = K @ inner.coef, size * np.abs(K) @ np.abs(inner.coef)
    quadratic = inner.coef @ f + np.abs(inner.coef) @ error
    assert 0.5 * quadratic + paid(f - y * error) == pytest.approx(worst, rel=1e-9)


@pytest.mark.parametrize("C", [1e2, 1e6])
def test_at_hard_margins_errors_cost_their_share_and_no_more(C, rng):
    Ks, y = random_problem(0, n=40, M=4)
    K = sum(Ks) / 4 + np.eye(40)  # separable
    inner = Hinge(C).solve(K, y, tol=1e-8)
    reach = np.full(40, 1e-4)
    worst = worst_primal(Hinge(C), K @ inner.coef, reach, inner.coef, y)[0]
    assert 0.0 <= worst / inner.primal - 1.0 <= 1e-3
    assert Hinge(C).measure(K @ inner.coef, inner.coef, y).primal_growth(reach) >= 0.5 * C * 1e-4 * 40


@each_classifier
def test_a_warm_start_changes_nothing_but_the_way(problem, learner, oracle, targets):
    K, y = problem
    cold = learner.solve(K, y, tol=1e-9)
    warm = learner.solve(K, y, warm=learner.solve(1.3 * K + 0.1 * np.eye(len(y)), y).coef, tol=1e-9)
    assert warm.dual == pytest.approx(cold.dual, rel=1e-7)


@each_classifier
def test_a_warm_start_from_another_problem_is_made_feasible(problem, learner, oracle, targets, rng):
    K, y = problem
    wild = 50.0 * rng.normal(size=y.size)
    assert learner.solve(K, y, warm=wild, tol=1e-8).dual == pytest.approx(
        learner.solve(K, y, tol=1e-8).dual, rel=1e-6
    )


def test_hinge_is_scikit_learns_svc(problem):
    K, y = problem
    for C in (0.1, 1.0, 100.0):
        inner = Hinge(C=C).solve(K, y, tol=1e-10)
        svc = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K, y)
        np.testing.assert_allclose(K @ inner.coef + inner.intercept, svc.decision_function(K), atol=1e-4)


def test_nu_hinge_is_scikit_learns_nu_svc_up_to_the_margin(problem):
    K, y = problem
    inner = NuHinge(nu=0.4).solve(K, y, tol=1e-10)
    svc = NuSVC(nu=0.4, kernel="precomputed", tol=1e-9).fit(K, y)
    values = (K @ inner.coef + inner.intercept) / inner.margin
    np.testing.assert_allclose(values, svc.decision_function(K), atol=1e-3)


def test_nu_beyond_the_smaller_class_names_the_largest_legal_nu():
    y = np.where(np.arange(20) < 4, 1.0, -1.0)
    with pytest.raises(ValueError, match=r"nu=0.5.*at most 0\.4"):
        NuHinge(nu=0.5).solve(np.eye(20), y)


@pytest.mark.parametrize("C", [0.0, -1.0, np.inf, np.nan, "1"])
@pytest.mark.parametrize("learner", [Hinge, SquaredHinge])
def test_illegal_costs_are_named(learner, C):
    with pytest.raises(ValueError, match="C must be a finite number above 0; got"):
        learner(C=C).solve(np.eye(2), np.array([1.0, -1.0]))


def test_several_columns_add_up():
    Ks, y = random_problem(3, n=30, M=3)
    K = sum(Ks)
    Y = np.column_stack([y, -y, np.where(np.arange(30) < 10, 1.0, -1.0)])
    joint = learners.OneVsRest(Hinge()).solve(K, Y, tol=1e-8)
    single = [Hinge().solve(K, column, tol=1e-8) for column in Y.T]
    assert joint.primal == pytest.approx(sum(m.primal for m in single))
    assert joint.dual == pytest.approx(sum(m.dual for m in single))
    matvecs = np.stack([k @ joint.coef for k in Ks])
    expected = sum(m.curvature(K, matvecs[:, :, c]) for c, m in enumerate(single))
    np.testing.assert_allclose(joint.curvature(K, matvecs), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(30, 36))
def test_a_start_much_too_large_leaves_a_feasible_end(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(loc=(2.0, 0.0, 0.0), size=(20, 3))
    y = np.where(X[:, 0] - 2 + 0.3 > 0, 1.0, -1.0)
    K, learner = X @ X.T, Hinge(C=1e6)
    far = learner.solve(1e-6 * K, y, tol=1e-3)
    inner = learner.solve(1e6 * K, y, warm=far.coef, tol=1e-6)
    cold = learner.solve(1e6 * K, y, tol=1e-6)
    assert abs(inner.coef.sum()) <= 1e-11 * np.abs(inner.coef).sum()
    assert inner.dual <= cold.primal * (1 + 1e-9)
    assert cold.dual <= inner.primal * (1 + 1e-9)
