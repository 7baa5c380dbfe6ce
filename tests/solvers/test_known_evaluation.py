"""A solution under one geometry is a solved inner problem under every other."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave.geometry import BoxSimplex
from kernelweave.gram import DenseGrams
from kernelweave.learners import Hinge
from kernelweave.solvers import Newton, Problem, WarmStart


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(90, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * rng.normal(size=90) > 0, 1.0, -1.0)
    grams = [np.exp(-((x - x[:, None]) ** 2) / (2 * w**2)) for x in X.T for w in (0.3, 1.0, 3.0)]
    return Problem(DenseGrams(grams, centre=True), y, Hinge(C=10.0), BoxSimplex(theta=0.2))


def known_start(problem, tol=1e-5):
    """The solution of a problem as a start, with all that is known of it."""
    result = Newton(tol=tol).run(problem)
    return WarmStart(result.eta, result.inner.coef, result.evaluation, problem)


def plain(start):
    return WarmStart(start.eta, start.coef)


def test_what_is_known_is_not_solved_again(problem):
    start, wider = known_start(problem), replace(problem, geometry=BoxSimplex(theta=0.3))
    fresh, known = (Newton(tol=1e-5).run(wider, start=each) for each in (plain(start), start))
    assert not known.history[0].solved
    assert all(record.solved for record in (*known.history[1:], *fresh.history))
    assert known.n_iter == len(known.history) - 1 < fresh.n_iter
    sharp = Newton(tol=1e-8).run(wider)
    for result in (fresh, known):
        for record in result.history:
            assert record.certificate.lower <= sharp.certificate.upper
            assert sharp.certificate.lower <= record.certificate.upper
        assert result.certificate.relative_gap <= 1e-5


def test_what_is_known_elsewhere_is_of_no_use(problem):
    other = replace(problem, geometry=BoxSimplex(theta=0.4))
    start = replace(known_start(problem), eta=np.full(9, 1.0 / 9.0))
    assert all(record.solved for record in Newton(tol=1e-4).run(other, start).history)


def test_what_is_known_serves_any_number_of_fits(problem):
    start, wider = known_start(problem), replace(problem, geometry=BoxSimplex(theta=0.4))
    once, again = (Newton(tol=1e-6).run(wider, start) for _ in range(2))
    np.testing.assert_array_equal(again.eta, once.eta)
    assert again.certificate == once.certificate
    sharp = Newton(tol=1e-8).run(wider)
    assert again.certificate.lower <= sharp.certificate.upper
    assert sharp.certificate.lower <= again.certificate.upper


def test_known_points_do_not_count_as_inner_solves(problem):
    wider = replace(problem, geometry=BoxSimplex(theta=0.4))
    result = Newton(tol=1e-9, max_iter=2).run(wider, known_start(problem))
    assert result.n_iter == 2
    assert result.stopped == "max_iter"
