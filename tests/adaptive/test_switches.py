"""Switches: the 0/1 programs against HiGHS and enumeration, the alternation's certificates and descent."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.linear_model import LinearRegression
from tests.reference.adaptive import adaptive_optimum
from tests.reference.problems import random_problem

from kernelweave.adaptive.local_grams import weighted_locally
from kernelweave.adaptive.switches import (
    SwitchRule,
    best_patterns,
    contributions,
    distinct_patterns,
    fewest_kernels,
    label_association,
    learn_switches,
)
from kernelweave.geometry import LpBall, Simplex
from kernelweave.gram import DenseGrams
from kernelweave.learners import Hinge, NuHinge, SquaredHinge
from kernelweave.learners.margins import ScaledMargins
from kernelweave.solvers import Newton, Problem

SETS = [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0))]


def random_programs(seed, count):
    """Programs with ties (whole numbers), tight and impossible demands, and every kind of prior."""
    rng = np.random.default_rng(seed)
    n_kernels = int(rng.integers(1, 9))
    integers = rng.random() < 0.5
    gains = (
        rng.integers(-3, 4, (count, n_kernels)).astype(float)
        if integers
        else rng.normal(size=(count, n_kernels))
    )
    prior = np.ones(n_kernels, dtype=bool) if rng.random() < 0.4 else rng.random(n_kernels) < 0.6
    reached = (gains * (rng.random(gains.shape) < 0.6)).sum(
        axis=1
    )  # of some pattern: often only just feasible
    needed = reached + rng.choice([0.0, 0.0, -1.0, 2.0], count)
    max_flips = int(rng.choice([0, n_kernels, rng.integers(0, n_kernels + 1)]))
    return gains, needed, prior, max_flips


def mip_optimum(a, r, prior, max_flips):
    """Return the least number of kernels by HiGHS, or None where nothing is feasible."""
    sign = np.where(prior, -1.0, 1.0)
    constraints = [
        LinearConstraint(a[None], r, np.inf),
        LinearConstraint(sign[None], -np.inf, max_flips - prior.sum()),
    ]
    answer = milp(np.ones(a.size), integrality=np.ones(a.size), bounds=Bounds(0, 1), constraints=constraints)
    return None if answer.x is None else round(answer.fun)


@pytest.mark.parametrize("seed", range(100))
def test_the_sorted_solution_is_the_mip_optimum(seed):
    gains, needed, prior, max_flips = random_programs(seed, 20)
    switches, feasible = fewest_kernels(gains, needed, prior, max_flips)
    for i in range(20):
        optimum = mip_optimum(gains[i], needed[i], prior, max_flips)
        assert feasible[i] == (optimum is not None)
        if optimum is not None:
            h = switches[i]
            assert h.sum() == optimum
            assert gains[i] @ h >= needed[i] - 1e-8
            assert (h != prior).sum() <= max_flips


def test_the_programs_of_that_test_are_of_every_kind():
    kinds = [random_programs(seed, 20) for seed in range(100)]
    feasible = np.concatenate([fewest_kernels(*kind)[1] for kind in kinds])
    assert 200 < feasible.sum() < 1800
    assert {m0 == 0 for *_, m0 in kinds} == {m0 == g.shape[1] for g, *_, m0 in kinds} == {True, False}
    assert {bool(prior.all()) for _, _, prior, _ in kinds} == {True, False}


@pytest.mark.parametrize("seed", range(40))
def test_kernels_a_sample_does_not_have_stay_off_and_the_rest_is_optimal(seed, rng):
    gains, needed, prior, max_flips = random_programs(seed, 10)
    available = np.random.default_rng(seed).random(gains.shape) < 0.7
    switches, feasible = fewest_kernels(gains, needed, prior, max_flips, available)
    assert not (switches & ~available).any()
    for i in range(10):
        start = prior & available[i]
        sizes = [
            sum(h)
            for h in product([0, 1], repeat=gains.shape[1])
            if not (np.array(h, bool) & ~available[i]).any()
            and (np.array(h, bool) != start).sum() <= max_flips
            and gains[i] @ np.array(h) >= needed[i] - 1e-9
        ]
        assert feasible[i] == bool(sizes)
        if sizes:
            assert switches[i].sum() == min(sizes)


def test_of_equal_solutions_the_one_with_the_largest_margin_is_taken():
    switches, _ = fewest_kernels(np.array([[1.0, -2.0, 0.5]]), np.array([0.0]), np.ones(3, bool), 1)
    assert switches.tolist() == [[True, False, True]]


def test_without_flips_the_prior_stays_whether_it_is_feasible_or_not():
    prior = np.array([True, False])
    switches, feasible = fewest_kernels(np.array([[1.0, 5.0], [-1.0, 5.0]]), np.zeros(2), prior, 0)
    assert feasible.tolist() == [True, False]
    assert switches.tolist() == [[True, False]] * 2


def centred(K):
    P = np.eye(len(K)) - 1.0 / len(K)
    return P @ K @ P


def problem(seed, learner=None, geometry=None, n=40, M=6):
    Ks, y = random_problem(seed, n, M)
    Ks = [centred(K) for K in Ks]
    stack = DenseGrams(Ks).packed("float64")
    return Ks, y, Problem(stack, y, learner or Hinge(C=2.0), geometry or Simplex(), np.ones(n))


def everything(n=40, M=6):
    return np.ones((n, M), dtype=bool)


def rule(max_flips=2, scale_margins=False, available=None, **params):
    available = everything() if available is None else available
    return SwitchRule(everything(), max_flips, available, scale_margins, **params)


@pytest.mark.parametrize(("geometry", "oracle"), SETS, ids=["simplex", "l2"])
@pytest.mark.parametrize(("learner", "degree"), [(Hinge(C=2.0), 1), (SquaredHinge(C=2.0), 2)])
@pytest.mark.parametrize("scaled", [False, True])
def test_for_given_switches_and_margins_the_bounds_enclose_the_conic_optimum(
    rng, geometry, oracle, learner, degree, scaled
):
    Ks, y, p = problem(1, learner, geometry)
    switches = rng.random((40, 6)) < 0.7
    switches[:, 0] = True
    margins = rng.uniform(0.2, 1.0, 40) if scaled else np.ones(40)
    optimum = adaptive_optimum(Ks, y, 2.0, oracle, switches, margins, degree)
    for tol in (1e-1, 1e-6):
        result = Newton(tol=tol).solve(
            weighted_locally(p.grams, switches.T.astype(float)), y, ScaledMargins(learner, margins), geometry
        )
        slack = 1e-6 * optimum
        assert result.certificate.lower <= optimum + slack
        assert optimum <= result.certificate.upper + slack
        assert result.certificate.relative_gap <= tol


def test_sample_weights_are_prices_with_scaled_margins_too(rng):
    Ks, y, p = problem(2)
    switches, margins, weight = (
        rng.random((40, 6)) < 0.8,
        rng.uniform(0.3, 1.0, 40),
        rng.uniform(0.5, 2.0, 40),
    )
    optimum = adaptive_optimum(Ks, y, 2.0 * weight, ("simplex",), switches, margins)
    learner = ScaledMargins(Hinge(C=2.0), margins)
    stack = weighted_locally(p.grams, switches.T.astype(float))
    result = Newton(tol=1e-6).solve(stack, y, learner, Simplex(), weight=weight)
    assert result.certificate.upper == pytest.approx(optimum, rel=3e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learner", [Hinge(C=2.0), SquaredHinge(C=2.0), NuHinge(nu=0.4)], ids=repr)
def test_with_margins_of_one_the_objective_never_rises_and_the_rounds_end(seed, learner):
    *_, p = problem(seed, learner, LpBall(2.0))
    learnt = learn_switches(p, Newton(tol=1e-6), rule())
    objectives = np.array([r.certificate.upper for r in learnt.rounds])
    assert (np.diff(objectives) <= 1e-6 * np.abs(objectives[:-1])).all()
    assert objectives[-1] < 0.95 * objectives[0] or objectives[0] < 0
    assert learnt.stopped == "converged"
    assert learnt.result.certificate.upper == objectives.min()


@pytest.mark.parametrize("seed", range(4))
def test_the_present_switches_are_always_feasible(seed):
    _, y, p = problem(seed)
    switches, solver = everything(), Newton(tol=1e-4)
    for _ in range(4):
        grams = weighted_locally(p.grams, switches.T.astype(float))
        result = solver.solve(grams, y, p.learner, p.geometry)
        g, b = contributions(result, grams), float(result.inner.intercept)
        f = (switches * g).sum(axis=1) + b
        slack = np.maximum(0.0, 1.0 - y * f)
        switches, feasible = fewest_kernels(y[:, None] * g, 1.0 - slack - y * b, everything(), 2)
        assert feasible.all()


def test_without_slacks_many_programs_would_be_infeasible():
    _, y, p = problem(0)
    grams = weighted_locally(p.grams, everything().T.astype(float))
    result = Newton(tol=1e-4).solve(grams, y, p.learner, p.geometry)
    g, b = contributions(result, grams), float(result.inner.intercept)
    assert not fewest_kernels(y[:, None] * g, 1.0 - y * b, everything(), 2)[1].all()


def test_contributions_are_what_every_kernel_adds():
    Ks, _, p = problem(3)
    switches = np.random.default_rng(0).random((40, 6)) < 0.6
    grams = weighted_locally(p.grams, switches.T.astype(float))
    result = Newton(tol=1e-4).run(Problem(grams, p.y, p.learner, p.geometry))
    g = contributions(result, grams)
    for i in range(5):
        for m in range(6):
            total = sum(result.inner.coef[j] * switches[j, m] * Ks[m][j, i] for j in range(40))
            assert g[i, m] == pytest.approx(result.eta[m] * total, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("geometry", [Simplex(), LpBall(2.0)], ids=repr)
def test_margins_are_shares_of_the_norms_of_the_kernels_and_none_is_zero(seed, geometry):
    *_, p = problem(seed, geometry=geometry)
    learnt = learn_switches(p, Newton(tol=1e-5), rule(max_flips=6, scale_margins=True))
    assert (learnt.margins > 0.0).all()
    assert (learnt.margins <= 1.0 + 1e-12).all()
    assert len(learnt.rounds) <= 30
    assert learnt.result.certificate.upper == min(r.certificate.upper for r in learnt.rounds)


def test_margins_are_those_of_the_round_before(rng):
    *_, p = problem(0, geometry=LpBall(2.0))
    first = learn_switches(p, Newton(tol=1e-6), rule(scale_margins=True, max_rounds=1))
    second = learn_switches(p, Newton(tol=1e-6), rule(scale_margins=True, max_rounds=2))
    assert (first.margins == 1.0).all()
    eta, v = first.result.eta, first.result.inner.coef
    norms = eta * np.sqrt([v @ p.grams.combine(np.eye(6)[m]) @ v for m in range(6)])
    assert second.margins == pytest.approx(second.switches @ norms / norms.sum())


@pytest.mark.parametrize("scale_margins", [False, True])
def test_every_sample_keeps_a_kernel_with_weight(scale_margins):
    *_, p = problem(0)
    learnt = learn_switches(p, Newton(tol=1e-5), rule(max_flips=6, scale_margins=scale_margins))
    again = learn_switches(p, Newton(tol=1e-5), SwitchRule(learnt.switches, 0, everything(), False))
    assert (learnt.switches & (again.result.eta > 0)).any(axis=1).mean() > 0.9
    assert learnt.switches.any(axis=1).all()


def test_forced_masks_are_respected(rng):
    available = rng.random((40, 6)) < 0.6
    available[:, 1] = True
    *_, p = problem(0, geometry=LpBall(2.0))
    learnt = learn_switches(p, Newton(tol=1e-5), rule(available=available))
    assert not (learnt.switches & ~available).any()
    assert ((~learnt.switches & available).sum(axis=1) <= 2).all()
    assert (~learnt.switches & available).any()


def test_a_prior_may_be_left_in_both_directions():
    prior = everything()
    prior[:, 2:] = False
    *_, p = problem(5, geometry=LpBall(2.0))
    learnt = learn_switches(p, Newton(tol=1e-5), SwitchRule(prior, 1, everything()))
    flips = learnt.switches != prior
    assert flips.sum(axis=1).max() == 1
    assert (flips & ~prior).any() or (flips & prior).any()


def test_patterns_are_the_distinct_rows_and_the_most_frequent_comes_first(rng):
    switches = rng.random((50, 3)) < 0.4
    patterns, counts = distinct_patterns(switches)
    assert len({row.tobytes() for row in patterns}) == len(patterns)
    assert (np.diff(counts) <= 0).all()
    assert [(switches == pattern).all(axis=1).sum() for pattern in patterns] == counts.tolist()
    assert counts.sum() == 50


@pytest.mark.parametrize("signed", [True, False])
def test_a_sample_takes_the_pattern_with_the_largest_score_in_every_batch(rng, signed):
    patterns = rng.random((4001, 3)) < 0.5  # more than two batches of 1000 rows
    g = rng.normal(size=(2500, 3))
    values, chosen = best_patterns(g, 0.3, patterns, signed=signed)
    for i in range(0, 2500, 250):
        scores = np.array([0.3 + sum(g[i, m] for m in range(3) if h[m]) for h in patterns])
        best = np.argmax(np.abs(scores) > np.abs(scores).max() - 1e-12) if signed else np.argmax(scores)
        assert values[i] == pytest.approx(scores[best])
        assert np.array_equal(patterns[chosen[i]], patterns[best])


def test_the_association_is_the_adjusted_share_of_variance_of_a_linear_fit(rng):
    y = np.where(rng.random(80) < 0.4, 1.0, -1.0)
    switches = np.column_stack(
        [(rng.random(80) < 0.5) ^ (rng.random(80) < 0.3) & (y > 0), rng.random((80, 2)) < 0.8]
    )
    fit = LinearRegression().fit(switches, y)
    expected = 1.0 - (1.0 - fit.score(switches, y)) * 79 / 76
    assert label_association(switches, y) == pytest.approx(max(0.0, expected))
    constant = np.column_stack([switches, np.ones(80, dtype=bool), switches[:, :1]])
    assert label_association(constant, y) == pytest.approx(max(0.0, expected))
    assert label_association(np.column_stack([y > 0, switches]), y) == pytest.approx(1.0)
    assert label_association(np.ones((80, 2), dtype=bool), y) == 0.0
