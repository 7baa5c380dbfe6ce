"""The alternation of weights and switches: certificates, descent, guards."""

import numpy as np
import pytest
from tests.reference.adaptive import adaptive_optimum
from tests.reference.problems import random_problem

from kernelweave.adaptive.local_grams import localised
from kernelweave.adaptive.switch_descent import Rule, adapt, contributions
from kernelweave.adaptive.switches import fewest_kernels
from kernelweave.geometry import LpBall, Simplex
from kernelweave.gram import MatrixSource, PackedGrams
from kernelweave.learners import Hinge, NuHinge, SquaredHinge
from kernelweave.learners.margins import ScaledMargins
from kernelweave.solvers import Newton, Problem

SETS = [(Simplex(), ("simplex",)), (LpBall(2.0), ("lp", 2.0))]


def centred(K):
    P = np.eye(len(K)) - 1.0 / len(K)
    return P @ K @ P


def problem(seed, learner=None, geometry=None, n=40, M=6):
    Ks, y = random_problem(seed, n, M)
    Ks = [centred(K) for K in Ks]
    stack = PackedGrams.pack([MatrixSource(Ks)], M, n, "float64", centre=False)
    return Ks, y, Problem(stack, y, learner or Hinge(C=2.0), geometry or Simplex(), np.ones(n))


def everything(n=40, M=6):
    return np.ones((n, M), dtype=bool)


def rule(max_flips=2, scale_margins=False, available=None, **params):
    available = everything() if available is None else available
    return Rule(everything(), max_flips, available, scale_margins, **params)


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
            localised(p.bank, switches.T.astype(float)), y, ScaledMargins(learner, margins), geometry
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
    stack = localised(p.bank, switches.T.astype(float))
    result = Newton(tol=1e-6).solve(stack, y, learner, Simplex(), weight=weight)
    assert result.certificate.upper == pytest.approx(optimum, rel=3e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("learner", [Hinge(C=2.0), SquaredHinge(C=2.0), NuHinge(nu=0.4)], ids=repr)
def test_with_margins_of_one_the_objective_never_rises_and_the_rounds_end(seed, learner):
    *_, p = problem(seed, learner, LpBall(2.0))
    adapted = adapt(p, Newton(tol=1e-6), rule())
    objectives = np.array([r.certificate.upper for r in adapted.rounds])
    assert (np.diff(objectives) <= 1e-6 * np.abs(objectives[:-1])).all()
    assert objectives[-1] < 0.95 * objectives[0] or objectives[0] < 0
    assert adapted.stopped == "converged"
    assert adapted.result.certificate.upper == objectives.min()


@pytest.mark.parametrize("seed", range(4))
def test_the_present_switches_are_always_feasible(seed):
    _, y, p = problem(seed)
    switches, solver = everything(), Newton(tol=1e-4)
    for _ in range(4):
        grams = localised(p.bank, switches.T.astype(float))
        result = solver.solve(grams, y, p.learner, p.geometry)
        g, b = contributions(result, grams), float(result.machine.intercept)
        f = (switches * g).sum(axis=1) + b
        slack = np.maximum(0.0, 1.0 - y * f)
        found = fewest_kernels(y[:, None] * g, 1.0 - slack - y * b, everything(), 2)
        assert found.feasible.all()
        switches = found.switches


def test_without_slacks_many_programs_would_be_infeasible():
    _, y, p = problem(0)
    grams = localised(p.bank, everything().T.astype(float))
    result = Newton(tol=1e-4).solve(grams, y, p.learner, p.geometry)
    g, b = contributions(result, grams), float(result.machine.intercept)
    assert not fewest_kernels(y[:, None] * g, 1.0 - y * b, everything(), 2).feasible.all()


def test_contributions_are_what_every_kernel_says():
    Ks, _, p = problem(3)
    switches = np.random.default_rng(0).random((40, 6)) < 0.6
    grams = localised(p.bank, switches.T.astype(float))
    result = Newton(tol=1e-4).run(Problem(grams, p.y, p.learner, p.geometry))
    g = contributions(result, grams)
    for i in range(5):
        for m in range(6):
            total = sum(result.machine.coef[j] * switches[j, m] * Ks[m][j, i] for j in range(40))
            assert g[i, m] == pytest.approx(result.eta[m] * total, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("geometry", [Simplex(), LpBall(2.0)], ids=repr)
def test_margins_are_shares_of_what_the_kernels_carry_and_none_is_zero(seed, geometry):
    *_, p = problem(seed, geometry=geometry)
    adapted = adapt(p, Newton(tol=1e-5), rule(max_flips=6, scale_margins=True))
    assert (adapted.margins > 0.0).all()
    assert (adapted.margins <= 1.0 + 1e-12).all()
    assert len(adapted.rounds) <= 30
    assert adapted.result.certificate.upper == min(r.certificate.upper for r in adapted.rounds)


def test_margins_are_those_of_the_round_before(rng):
    *_, p = problem(0, geometry=LpBall(2.0))
    first = adapt(p, Newton(tol=1e-6), rule(scale_margins=True, max_rounds=1))
    second = adapt(p, Newton(tol=1e-6), rule(scale_margins=True, max_rounds=2))
    assert (first.margins == 1.0).all()
    eta, v = first.result.eta, first.result.machine.coef
    norms = eta * np.sqrt([v @ p.bank.combine(np.eye(6)[m]) @ v for m in range(6)])
    assert second.margins == pytest.approx(second.switches @ norms / norms.sum())


@pytest.mark.parametrize("scale_margins", [False, True])
def test_every_sample_keeps_a_kernel_that_carries_weight(scale_margins):
    *_, p = problem(0)
    adapted = adapt(p, Newton(tol=1e-5), rule(max_flips=6, scale_margins=scale_margins))
    for_machine = adapt(p, Newton(tol=1e-5), Rule(adapted.switches, 0, everything(), False))
    assert (adapted.switches & (for_machine.result.eta > 0)).any(axis=1).mean() > 0.9
    assert adapted.switches.any(axis=1).all()


def test_forced_masks_are_respected(rng):
    available = rng.random((40, 6)) < 0.6
    available[:, 1] = True
    *_, p = problem(0, geometry=LpBall(2.0))
    adapted = adapt(p, Newton(tol=1e-5), rule(available=available))
    assert not (adapted.switches & ~available).any()
    assert ((~adapted.switches & available).sum(axis=1) <= 2).all()
    assert (~adapted.switches & available).any()


def test_a_prior_may_be_left_in_both_directions():
    prior = everything()
    prior[:, 2:] = False
    *_, p = problem(5, geometry=LpBall(2.0))
    adapted = adapt(p, Newton(tol=1e-5), Rule(prior, 1, everything()))
    flips = adapted.switches != prior
    assert flips.sum(axis=1).max() == 1
    assert (flips & ~prior).any() or (flips & prior).any()
