"""The sorted solution of the 0/1 programs against HiGHS and against enumeration."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from kernelweave.adaptive.switches import fewest_kernels


def random_programs(seed, count):
    """Programs with ties (whole numbers), tight and impossible demands, and every kind of prior."""
    rng = np.random.default_rng(seed)
    n_kernels = int(rng.integers(1, 9))
    whole = rng.random() < 0.5
    gains = (
        rng.integers(-3, 4, (count, n_kernels)).astype(float)
        if whole
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
    found = fewest_kernels(gains, needed, prior, max_flips)
    for i in range(20):
        optimum = mip_optimum(gains[i], needed[i], prior, max_flips)
        assert found.feasible[i] == (optimum is not None)
        if optimum is not None:
            h = found.switches[i]
            assert h.sum() == optimum
            assert gains[i] @ h >= needed[i] - 1e-8
            assert (h != prior).sum() <= max_flips


def test_the_programs_of_that_test_are_of_every_kind():
    kinds = [random_programs(seed, 20) for seed in range(100)]
    feasible = np.concatenate([fewest_kernels(*kind).feasible for kind in kinds])
    assert 200 < feasible.sum() < 1800
    assert {m0 == 0 for *_, m0 in kinds} == {m0 == g.shape[1] for g, *_, m0 in kinds} == {True, False}
    assert {bool(prior.all()) for _, _, prior, _ in kinds} == {True, False}


@pytest.mark.parametrize("seed", range(40))
def test_kernels_a_sample_does_not_have_stay_off_and_the_rest_is_optimal(seed, rng):
    gains, needed, prior, max_flips = random_programs(seed, 10)
    available = np.random.default_rng(seed).random(gains.shape) < 0.7
    found = fewest_kernels(gains, needed, prior, max_flips, available)
    assert not (found.switches & ~available).any()
    for i in range(10):
        start = prior & available[i]
        sizes = [
            sum(h)
            for h in product([0, 1], repeat=gains.shape[1])
            if not (np.array(h, bool) & ~available[i]).any()
            and (np.array(h, bool) != start).sum() <= max_flips
            and gains[i] @ np.array(h) >= needed[i] - 1e-9
        ]
        assert found.feasible[i] == bool(sizes)
        if sizes:
            assert found.switches[i].sum() == min(sizes)


def test_of_equal_solutions_the_one_with_the_largest_margin_is_taken():
    found = fewest_kernels(np.array([[1.0, -2.0, 0.5]]), np.array([0.0]), np.ones(3, bool), 1)
    assert found.switches.tolist() == [[True, False, True]]


def test_without_flips_the_prior_stays_whether_it_is_feasible_or_not():
    prior = np.array([True, False])
    found = fewest_kernels(np.array([[1.0, 5.0], [-1.0, 5.0]]), np.zeros(2), prior, 0)
    assert found.feasible.tolist() == [True, False]
    assert found.switches.tolist() == [[True, False]] * 2
