"""The primal value holds however the product K v was rounded."""

import numpy as np
import pytest

from kernelweave.geometry import Simplex
from kernelweave.gram import DenseGrams
from kernelweave.learners import Hinge, NuHinge, Square, SquaredHinge
from kernelweave.solvers import Problem
from kernelweave.solvers.certificate import robust_primal

N, ERROR = 60, 1e-3


def solved(rng, learner, noise=0.0):
    X = rng.normal(size=(N, 3))
    y = np.where(X[:, 0] + noise * rng.normal(size=N) > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    coef = learner.solve(K, y, tol=1e-6).coef
    return Problem(DenseGrams([K]), y, learner, Simplex()), K, coef


@pytest.mark.parametrize("learner", [Hinge(C=0.1), Hinge(C=1e3), SquaredHinge(), NuHinge(nu=0.3), Square()])
def test_no_error_within_the_bound_raises_the_value_of_the_returned_solution(rng, learner):
    problem, K, coef = solved(rng, learner, noise=0.5)
    inner, bound = robust_primal(problem, K @ coef, np.full(N, ERROR), coef)
    scale = np.linalg.norm(inner.coef) / np.linalg.norm(coef)
    signs = [problem.y, -problem.y, *np.sign(rng.normal(size=(20, N)))]
    for sign in signs:
        f = scale * (K @ coef + ERROR * sign)
        moved = learner.measure(f, inner.coef, problem.y, None)
        assert moved.primal <= bound + 1e-12 * abs(bound)


@pytest.mark.parametrize("learner", [Hinge(), SquaredHinge(), NuHinge(nu=0.3), Square()])
def test_without_error_it_is_at_most_the_value_itself(rng, learner):
    problem, K, coef = solved(rng, learner)
    plain = learner.measure(K @ coef, coef, problem.y, None)
    inner, bound = robust_primal(problem, K @ coef, np.zeros(N), coef)
    assert bound <= plain.primal + 1e-12 * abs(plain.primal)
    assert bound == pytest.approx(inner.primal, rel=1e-9)


def test_larger_coefficients_pay_where_prices_are_high(rng):
    for C, pays in ((1e4, True), (0.1, False)):
        problem, K, coef = solved(rng, Hinge(C=C))
        inner, bound = robust_primal(problem, K @ coef, np.full(N, ERROR), coef)
        smallest = problem.learner.measure(K @ coef - ERROR * problem.y, coef, problem.y, None)
        as_it_is = 0.5 * (coef @ K @ coef + ERROR * np.abs(coef).sum()) + smallest.loss
        assert bound <= as_it_is * (1 + 1e-12)
        assert (np.abs(inner.coef).sum() > np.abs(coef).sum()) == pays
        assert (bound < 0.9 * as_it_is) == pays
