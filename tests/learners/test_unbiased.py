"""The squared-hinge learner without intercept: what every learner promises, against a conic program."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from tests.reference.cones import factor, solve
from tests.reference.conic import assert_encloses
from tests.reference.problems import random_problem

from kernelweave.geometry import Simplex
from kernelweave.gram import DenseGrams
from kernelweave.learners import UnbiasedSquaredHinge
from kernelweave.learners.unbiased import _refined, _solved
from kernelweave.solvers import Newton, Problem, certify


def conic(Ks, y, C):
    """Return the dual optimum over the simplex of the kernels; samples of price zero are left out."""
    used = C > 0
    a = cp.Variable(int(used.sum()), nonneg=True)
    gain = cp.sum(a) - cp.sum(cp.multiply(0.5 / C[used], cp.square(a)))
    v = cp.multiply(y[used], a)
    energies = [cp.sum_squares(factor(K[np.ix_(used, used)]).T @ v) / 2 for K in Ks]
    return solve(cp.Problem(cp.Maximize(gain - cp.max(cp.hstack(energies)))))


@pytest.fixture(params=[0, 1])
def problem(request):
    Ks, y = random_problem(request.param, n=40, M=4)
    return sum(Ks) / 4, y


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_two_bounds_enclose_the_optimum(problem, C):
    K, y = problem
    weight = np.linspace(0.0, 2.0, y.size)  # one sample of weight zero
    optimum = conic([K], y, C * weight)
    for tol in (1e-1, 1e-8):
        inner = UnbiasedSquaredHinge(C).solve(K, y, weight, tol=tol)
        assert inner.dual - 1e-7 * optimum <= optimum <= inner.primal + 1e-7 * optimum
        assert inner.relative_gap <= tol
    assert inner.coef[0] == 0.0
    assert (y * inner.coef >= 0).all()
    xi = np.maximum(0.0, 1.0 - y * (K @ inner.coef))
    np.testing.assert_allclose(y * inner.coef, C * weight * xi, atol=1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_certificate_encloses_the_optimum_of_several_kernels(C):
    Ks, y = random_problem(0, n=40, M=4)
    optimum = conic(Ks, y, np.full(40, C))
    exact = Problem(DenseGrams(Ks), y, UnbiasedSquaredHinge(C), Simplex())
    stored = replace(exact, grams=exact.grams.packed("float32"))
    for problem, tol in ((exact, 1e-5), (stored, 1e-3), (stored, 0.0)):
        result = Newton(tol=max(0.5 * tol, 1e-5)).run(problem)
        certificate = certify(problem, result, lambda: exact.grams, tol).certificate
        assert_encloses(certificate, optimum, 1e-7)
        assert certificate.relative_gap <= 1e-3


def test_starts_change_nothing_but_the_way(problem, rng):
    K, y = problem
    cold = UnbiasedSquaredHinge(10.0).solve(K, y, tol=1e-10)
    for warm in (50.0 * rng.normal(size=y.size), cold.coef, np.zeros(y.size)):
        assert UnbiasedSquaredHinge(10.0).solve(K, y, warm=warm, tol=1e-10).dual == pytest.approx(cold.dual)
    narrow = UnbiasedSquaredHinge(10.0).solve(K.astype(np.float32), y, tol=1e-5)
    assert narrow.dual == pytest.approx(cold.dual, rel=1e-4)


def test_energies_and_curvature_are_slopes(problem, rng):
    K, y = problem
    D = [(lambda A: A @ A.T / y.size)(rng.normal(size=(y.size, 3))) for _ in range(2)]
    learner, step = UnbiasedSquaredHinge(10.0), 1e-5
    inner = learner.solve(K, y, tol=1e-14)
    H = inner.curvature(K, np.stack([d @ inner.coef for d in D]))
    for j, d in enumerate(D):
        ahead, behind = (learner.solve(K + s * step * d, y, tol=1e-14) for s in (1, -1))
        slope = (ahead.dual - behind.dual) / (2 * step)
        assert slope == pytest.approx(-0.5 * inner.coef @ d @ inner.coef, rel=1e-4)
        bend = [
            0.5 * (b.coef @ e @ b.coef - a.coef @ e @ a.coef) / (2 * step)
            for e in D
            for a, b in [(ahead, behind)]
        ]
        np.testing.assert_allclose(H[:, j], bend, rtol=1e-2, atol=1e-6)


def test_a_bad_price_is_refused():
    with pytest.raises(ValueError, match="C must be"):
        UnbiasedSquaredHinge(C=-1.0).solve(np.eye(2), np.ones(2))


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3, 1e9])
@pytest.mark.parametrize("columns", [None, 3])
def test_systems_are_solved_to_the_digits_of_double_whatever_the_price(rng, C, columns):
    X = rng.normal(size=(300, 4))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4.0)
    which = np.flatnonzero(rng.random(300) < 0.7)
    rhs = rng.normal(size=(which.size,) if columns is None else (which.size, columns))
    A = K[np.ix_(which, which)] + np.eye(which.size) / C
    found = _solved(K, np.full(300, C), which, rhs)
    assert found.dtype == np.float64
    np.testing.assert_allclose(A @ found, rhs, atol=1e-10 * np.abs(found).max() + 1e-9)


def test_half_the_digits_are_enough_for_the_factor_of_a_usual_price(rng):
    X = rng.normal(size=(80, 3))
    K, C, every = np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), rng.uniform(0.5, 2.0, 80), np.arange(80)
    found = _refined(K, C, every, np.ones(80))  # None would mean a second factor, in double
    np.testing.assert_allclose(found, np.linalg.solve(K + np.diag(1.0 / C), np.ones(80)), rtol=1e-9)


def test_what_float32_cannot_hold_is_solved_in_double():
    K = 1e60 * np.eye(5)
    np.testing.assert_allclose(_solved(K, np.ones(5), np.arange(5), np.ones(5)), 1e-60, rtol=1e-12)
    nearly = np.ones((4, 4)) + 1e-10 * np.eye(4)  # singular once rounded
    found = _solved(nearly, np.full(4, 1e12), np.arange(4), np.array([1.0, -1.0, 0.0, 0.0]))
    np.testing.assert_allclose(found, [1e10 / 1.01, -1e10 / 1.01, 0.0, 0.0], rtol=1e-4, atol=1e3)
