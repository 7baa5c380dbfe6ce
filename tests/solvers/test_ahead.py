"""Steps with the energies of a smaller problem: fewer machines on the large one, and never a wrong end."""

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest
from tests.reference.conic import conic_optimum

from kernelweave.geometry import LpBall
from kernelweave.gram import DenseGrams
from kernelweave.learners import Hinge, Square
from kernelweave.solvers import BlockDescent, Newton, Problem, guess
from kernelweave.solvers.block import _step, _steps_ahead


def problem(seed, n=240, C=1.0, p=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1 + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    grams = [np.exp(-((x - x[:, None]) ** 2) / (2 * w**2)) for x in X.T for w in (0.1, 0.5, 2.0)]
    return grams, Problem(DenseGrams(grams, centre=True), y, Hinge(C=C), LpBall(p))


@dataclass
class Told:
    """A smaller problem that says what it is told to."""

    say: object
    asked: list = field(default_factory=list)

    def energies(self, eta):
        self.asked.append(eta.copy())
        return self.say(eta)


def test_energies_count_as_many_times_as_those_at_hand_are_larger():
    """With energies k / eta, however scaled, it ends near where those of the problem itself are fixed."""
    geometry, k = LpBall(2.0), np.array([1.0, 4.0, 9.0])
    eta, scale = geometry.start(3), np.array([5.0, 0.1, 2.0])
    ahead = Told(lambda e: k / e)
    reached = _steps_ahead(ahead, geometry, eta, scale * k / eta, 0.0)
    by_hand = eta
    for _ in ahead.asked:
        by_hand = _step(geometry, by_hand, scale * k / by_hand, 0.0)
    usual = _step(geometry, eta, scale * k / eta, 0.0)
    np.testing.assert_allclose(reached, by_hand, rtol=1e-12)
    fixed = np.sqrt(scale * k)  # eta is proportional to h = scale k / eta
    fixed /= np.linalg.norm(fixed)
    assert np.abs(reached - fixed).max() < 0.5 * np.abs(usual - fixed).max()


def test_where_it_has_nothing_to_say_the_step_is_the_usual_one():
    geometry, h = LpBall(2.0), np.array([1.0, 4.0, 9.0])
    eta = geometry.start(3)
    usual = _step(geometry, eta, h, 0.5)
    np.testing.assert_allclose(_steps_ahead(Told(lambda _: None), geometry, eta, h, 0.5), usual, rtol=1e-15)
    nothing = _steps_ahead(Told(lambda e: 0.0 * e), geometry, eta, h, 0.5)
    assert np.isfinite(nothing).all()
    assert np.isfinite(geometry.value(nothing))


def test_a_sample_saves_machines_on_all_samples():
    alone, led = [], []
    solver = BlockDescent(tol=1e-3, relaxation=0.7)
    for seed, C, p in product(range(4), (0.1, 1.0, 100.0), (1.5, 2.0)):
        _, large = problem(seed, C=C, p=p)
        sample = guess(large, solver, 100)
        alone.append(solver.run(large, start=sample.eta).n_iter)
        result = solver.run(large, start=sample.eta, ahead=sample)
        led.append(result.n_iter)
        assert result.stopped == "converged"
    assert sum(led) <= 0.95 * sum(alone)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_bounds_are_those_of_all_samples(C):
    grams, large = problem(1, n=60, C=C)
    solver = BlockDescent(tol=1e-4, relaxation=0.7)
    sample = guess(large, solver, 30)
    result = solver.run(large, start=sample.eta, ahead=sample)
    optimum = conic_optimum(grams, large.y, ("hinge", C), ("lp", 2.0)).value
    for record in result.history:
        assert record.certificate.lower <= optimum * (1 + 1e-7)
        assert optimum <= record.certificate.upper * (1 + 1e-7)
    assert result.certificate.relative_gap <= 1e-4


@pytest.mark.parametrize("lie", ["random", "against", "still"])
def test_one_that_does_not_know_the_way_is_not_asked_for_long(lie):
    rng = np.random.default_rng(0)
    says = {"random": lambda e: rng.random(e.size), "against": lambda e: e**6, "still": np.ones_like}
    _, large = problem(2)
    ahead = Told(says[lie])
    result = BlockDescent(tol=1e-5, relaxation=0.7).run(large, ahead=ahead)
    sharp = Newton(tol=1e-7).run(large)
    assert result.stopped == "converged"
    assert result.certificate.upper == pytest.approx(sharp.certificate.upper, rel=1e-4)
    assert result.n_iter <= 40
    assert len(ahead.asked) < 4 * result.n_iter


def test_a_machine_that_cannot_be_solved_is_no_reason_to_stop(monkeypatch):
    _, large = problem(3)
    solver = BlockDescent(tol=1e-3)
    sample = guess(large, solver, 60)

    def fails(*_args, **_how):
        raise np.linalg.LinAlgError

    sample.problem = Problem(sample.problem.grams, sample.problem.y, Square(), LpBall(2.0))
    monkeypatch.setattr(Square, "solve", fails)
    assert sample.energies(LpBall(2.0).start(12)) is None
    assert solver.run(large, start=sample.eta, ahead=sample).stopped == "converged"
