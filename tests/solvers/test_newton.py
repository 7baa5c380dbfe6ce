"""Newton's steps: a rational model that is exact where the value falls like 1/x, and what stops them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from tests.reference.problems import random_problem

from kernelweave.geometry import BoxSimplex, RidgeSimplex, Simplex
from kernelweave.gram import DenseGrams
from kernelweave.learners import NuHinge
from kernelweave.solvers import Newton
from kernelweave.solvers.newton import _rational_step, _steepness


def separable(rng):
    """Return a and c of a value sum of a / (c + x): each kernel has rank one and samples of its own.

    The first four are nearly linear, the last four fall steeply from nothing.
    """
    return rng.uniform(0.1, 2.0, 8), np.concatenate([rng.uniform(1, 3, 4), 10.0 ** rng.uniform(-1, 0, 4)])


def water_filled(a, c, cap):
    """Return argmin of that value on the capped simplex: energies a / (c + x)² meet at one level."""

    def weights(level):
        return np.clip(np.sqrt(a / level) - c, 0.0, cap)

    return weights(brentq(lambda level: weights(level).sum() - 1.0, 1e-12, 1e12, xtol=1e-14, rtol=1e-14))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("cap", [1.0, 0.3])
def test_one_step_finds_the_weights_of_kernels_of_rank_one(seed, cap):
    rng = np.random.default_rng(seed)
    a, c = separable(rng)
    eta = np.array([0.3, 0.3, 0.3, 0.1, 0.0, 0.0, 0.0, 0.0])
    h, H = a / (c + eta) ** 2, np.diag(2.0 * a / (c + eta) ** 3)
    geometry = Simplex() if cap == 1.0 else BoxSimplex(theta=cap)
    x = _rational_step(SimpleNamespace(eta=eta, h=h), H, geometry)
    best = water_filled(a, c, cap)

    def value(x):
        return float((a / (c + x)).sum())

    parabola = geometry.model_step(eta, h, H)
    assert x.sum() == pytest.approx(1.0)
    assert value(x) - value(best) <= 0.1 * (value(parabola) - value(best))  # which ends too soon


def test_a_single_growing_kernel_is_met_in_one_step():
    # The first kernel has nothing and should have 0.2; the other stays linear.
    eta, c, a = np.array([0.0, 1.0]), 0.05, 1.0
    level = a / (c + 0.2) ** 2
    h, H = np.array([a / c**2, level]), np.diag([2.0 * a / c**3, 0.0])
    x = _rational_step(SimpleNamespace(eta=eta, h=h), H, Simplex())
    assert x[0] == pytest.approx(0.2, rel=0.1)
    assert Simplex().model_step(eta, h, H)[0] < 0.03  # where a parabola ends


def test_a_penalty_larger_than_the_energies_is_no_trouble():
    geometry, h = RidgeSimplex(theta=1e-3), np.array([1e-3, 2e-3, 0.0])
    assert geometry.conjugate(h) < 0.0
    eta = np.full(3, 1.0 / 3)
    x = _rational_step(SimpleNamespace(eta=eta, h=h), np.diag([1e-3, 1e-3, 0.0]), geometry)
    assert np.isfinite(x).all()
    assert x.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_steepness_is_the_power_by_which_energies_fall_with_all_weights(power):
    eta, h = np.array([0.2, 0.5, 0.3]), np.array([1.0, 4.0, 2.0])
    H = power * np.diag(h / eta)  # h_m falls like eta_m^-power
    assert _steepness(H, SimpleNamespace(eta=eta, h=h)) == pytest.approx(power)


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_a_penalty_that_cancels_the_learners_value_leaves_no_gap_open(tol):
    Ks, y = random_problem(1, n=60, M=8)
    result = Newton(tol=tol).solve(DenseGrams(Ks), y, NuHinge(nu=0.3), RidgeSimplex(theta=20.0))
    assert abs(result.certificate.upper) < 0.05 * abs(result.inner.primal)
    assert result.stopped == "converged"
    assert result.n_iter <= 10
