"""What every outer loop keeps: evaluations, the budget, what is known from a similar problem."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.conic import assert_encloses, conic_optimum
from tests.reference.problems import random_problem

from kernelweave.errors import IndefiniteKernelError
from kernelweave.geometry import BoxSimplex, LpBall, RidgeSimplex, Simplex
from kernelweave.gram import DenseGrams, PackedGrams
from kernelweave.learners import EpsilonInsensitive, Hinge, OneVsRest, SquaredHinge
from kernelweave.solvers import BlockDescent, Newton, OuterState, Problem, WarmStart
from kernelweave.solvers.problem import energies_of

EVEN = np.full(5, 0.2)


@pytest.fixture
def problem():
    Ks, y = random_problem(4, n=40, M=5)
    return Problem(DenseGrams(Ks), y, Hinge(1.0), Simplex())


def state_of(problem, **how):
    return OuterState(problem, **{"tol": 1e-6, "max_iter": 10, **how})


# -- evaluating weights


@pytest.mark.parametrize("columns", [(), (3,)])
def test_energies_are_half_the_trace_of_the_quadratic_forms(rng, columns):
    Ks, V = rng.normal(size=(4, 20, 20)), rng.normal(size=(20, *columns))
    found = energies_of(V, np.stack([K @ V for K in Ks]))
    np.testing.assert_allclose(found, [0.5 * np.trace(np.atleast_2d(V.T @ K @ V)) for K in Ks])


@pytest.mark.parametrize("keep_matvecs", [False, True])
def test_an_evaluation_is_the_learners_solution_and_its_energies(problem, keep_matvecs):
    found = state_of(problem, keep_matvecs=keep_matvecs).evaluate(EVEN, inner_tol=1e-8)
    Ks, v = problem.grams.matrices, found.inner.coef
    np.testing.assert_allclose(found.h, [0.5 * v @ K @ v for K in Ks])
    assert found.inner.primal == pytest.approx(Hinge(1.0).solve(sum(Ks) / 5, problem.y, tol=1e-8).primal)
    assert (found.matvecs is not None) == keep_matvecs
    if keep_matvecs:
        seen = found.inner.needed_matvecs
        np.testing.assert_allclose(found.matvecs[:, seen], np.stack([K @ v for K in Ks])[:, seen])


def test_the_best_weights_are_kept_and_both_bounds_with_them(problem):
    state = state_of(problem)
    points = [state.evaluate(eta) for eta in (EVEN, np.eye(5)[0], np.eye(5)[1])]
    assert state.best is min(points, key=lambda point: point.upper)
    assert state.certificate.upper == min(point.upper for point in points)
    assert state.certificate.lower >= max(p.inner.g - p.h_upper.max() for p in points)


def test_a_combined_kernel_is_computed_once_for_the_same_weights(problem, monkeypatch):
    calls = []
    combine = DenseGrams.combine
    monkeypatch.setattr(DenseGrams, "combine", lambda *a: calls.append(a) or combine(*a))
    state = state_of(problem)
    K = state.combined(EVEN)
    assert state.combined(EVEN.copy()) is K
    assert len(calls) == 1
    np.testing.assert_allclose(state.combined(np.eye(5)[2]), problem.grams.matrices[2])


def test_a_matrix_that_was_being_overwritten_is_not_handed_on(rng, monkeypatch):
    matrices = [A @ A.T for A in rng.normal(size=(4, 30, 6))]
    stack = DenseGrams(matrices).packed("float64")
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    combine, calls = PackedGrams.combine, []

    def interrupted(self, eta, out=None):
        calls.append(eta)
        if len(calls) == 2:
            out.fill(7.0)
            raise KeyboardInterrupt
        return combine(self, eta, out)

    monkeypatch.setattr(PackedGrams, "combine", interrupted)
    result = BlockDescent(tol=1e-9).run(Problem(stack, y, Hinge(), LpBall(2.0)))
    assert result.stopped == "interrupted"
    assert result.eta is calls[0]
    calls.clear()
    state = state_of(Problem(stack, y, Hinge(), LpBall(2.0)))
    state.combined(np.ones(4))
    with pytest.raises(KeyboardInterrupt):
        state.combined(np.eye(4)[0])
    np.testing.assert_allclose(state.combined(np.ones(4)), sum(matrices))


def test_a_solver_interrupted_before_anything_is_known_says_so(problem):
    def interrupted(*_):
        raise KeyboardInterrupt

    problem.grams.combine = interrupted
    with pytest.raises(KeyboardInterrupt):
        Newton().run(problem)


@pytest.mark.parametrize(("dtype", "share"), [("float64", 1e-9), ("float32", 5e-7)])
def test_only_energies_below_rounding_are_those_of_an_indefinite_kernel(dtype, share, monkeypatch):
    Ks, y = random_problem(0, n=30, M=3)
    problem = Problem(DenseGrams(Ks, dtype=dtype), y, Hinge(), Simplex())
    coef = state_of(problem).evaluate(np.full(3, 1 / 3)).inner.coef
    allowed = share * 0.5 * np.abs(coef).sum() ** 2 * problem.grams.sizes
    for times, raises in ((0.5, False), (2.0, True)):
        h = np.array([1.0, -times * allowed[1], 1.0])
        monkeypatch.setattr(DenseGrams, "energies", lambda *_, h=h: h)
        if raises:
            with pytest.raises(IndefiniteKernelError, match="Kernel 1 is not positive semidefinite"):
                state_of(problem).evaluate(np.full(3, 1 / 3))
        else:
            state_of(problem).evaluate(np.full(3, 1 / 3))


# -- the budget and the history


def test_inner_solves_are_counted_and_capped(problem):
    state, seen = state_of(problem, max_iter=2, tol=1e-12), []
    state.log.progress = seen.append
    state.evaluate(EVEN)
    assert not state.finished
    state.evaluate(np.eye(5)[0])
    assert state.finished
    result = state.result()
    assert result.stopped == "max_iter"
    assert result.n_iter == 2
    assert list(result.history) == seen
    assert [record.n_active for record in seen] == [5, 1]
    assert state.result("stalled").stopped == "stalled"


def test_what_a_part_of_the_problem_took_counts(problem):
    part = Newton(tol=1e-2).run(problem)
    state = state_of(problem, max_iter=100)
    state.evaluate(EVEN)
    state.add_history(part)
    assert state.result().n_iter == 1 + part.n_iter
    assert state.n_solved == 1 + part.n_iter


def test_histories_of_two_results_follow_each_other(problem):
    first, second = (Newton(tol=tol).run(problem) for tol in (1e-2, 1e-6))
    both = first.followed_by(second)
    assert both.n_iter == first.n_iter + second.n_iter
    assert (np.diff([record.seconds for record in both.history]) >= 0.0).all()
    assert both.certificate == second.certificate


def test_the_learner_is_asked_for_a_small_share_of_the_open_gap(problem):
    state = state_of(problem, tol=1e-6)
    assert state.inner_tol() == pytest.approx(2e-3)
    state.evaluate(EVEN)
    assert state.inner_tol() == pytest.approx(np.clip(0.02 * state.certificate.relative_gap, 1e-7, 2e-3))


def test_where_only_rounding_is_left_it_is_not_fought(problem):
    coarse = DenseGrams(problem.grams.matrices)
    coarse.errors = np.full(5, 1e-4)
    result = Newton(tol=1e-7, max_iter=50).run(replace(problem, grams=coarse))
    assert result.stopped == "rounding"
    assert result.n_iter <= 12
    assert result.certificate.relative_gap > 1e-7


# -- what is known from a similar problem


def known_from(problem, solver=None):
    result = (solver or Newton(tol=1e-6)).run(problem)
    return result, WarmStart(result.eta, result.inner.coef, result.evaluation, problem)


def test_an_evaluation_is_known_where_only_the_geometry_or_a_tolerance_differs(problem):
    _, start = known_from(problem)
    known = start.evaluation
    for same in (
        problem,
        replace(problem, geometry=LpBall(2.0)),
        replace(problem, learner=Hinge(1.0, tol=1e-9)),
    ):
        assert start.known_evaluation(same) is known
    for other in (
        replace(problem, learner=Hinge(2.0)),
        replace(problem, learner=SquaredHinge(1.0)),
        replace(problem, learner=OneVsRest(Hinge(1.0))),
        replace(problem, y=problem.y.copy()),
        replace(problem, weight=np.ones(40)),
        replace(problem, grams=DenseGrams(problem.grams.matrices)),
    ):
        assert start.known_evaluation(other) is None


def test_learners_within_learners_are_compared_too(problem):
    Y = np.column_stack([problem.y, -problem.y])
    both = replace(problem, y=Y, learner=OneVsRest(EpsilonInsensitive(C=1.0, epsilon=0.1)))
    start = known_from(both)[1]
    closer = OneVsRest(EpsilonInsensitive(C=1.0, epsilon=0.1, tol=1e-6))
    assert start.known_evaluation(replace(both, learner=closer)) is start.evaluation
    other = OneVsRest(EpsilonInsensitive(C=1.0, epsilon=0.2))
    assert start.known_evaluation(replace(both, learner=other)) is None


def test_nothing_is_known_without_its_problem_or_of_a_loose_solution(problem):
    _, start = known_from(problem)
    assert replace(start, problem=None).known_evaluation(problem) is None
    assert replace(start, evaluation=None).known_evaluation(problem) is None
    loose = state_of(problem).evaluate(EVEN, inner_tol=0.1)
    assert loose.inner.relative_gap > 1e-4
    assert WarmStart(EVEN, evaluation=loose, problem=problem).known_evaluation(problem) is None


@pytest.mark.parametrize(
    ("geometry", "named"),
    [(RidgeSimplex(0.5), ("ridge", 0.5)), (BoxSimplex(theta=0.9), ("box", 0.9)), (LpBall(2.0), ("lp", 2.0))],
    ids=repr,
)
@pytest.mark.parametrize("first", [Newton(tol=1e-5), BlockDescent(tol=1e-2, max_iter=40)], ids=repr)
@pytest.mark.parametrize("then", [Newton(tol=1e-5), BlockDescent(tol=1e-3, max_iter=400)], ids=repr)
def test_a_known_evaluation_saves_a_solve_and_its_bounds_are_those_of_the_new_geometry(
    problem, geometry, named, first, then
):
    problem = replace(problem, learner=Hinge(1.0, tol=1e-7))
    _, start = known_from(replace(problem, geometry=BoxSimplex(theta=0.6)), first)
    new = replace(problem, geometry=geometry)
    result = then.run(new, start)
    optimum = conic_optimum(problem.grams.matrices, problem.y, ("hinge", 1.0), named).value
    zeros = isinstance(then, BlockDescent) and not start.eta.all()  # whose start it moves
    assert result.history[0].solved == zeros
    assert result.n_iter == len(result.history) - (not zeros)
    for record in result.history:
        assert_encloses(record.certificate, optimum)
    assert result.certificate.relative_gap <= then.tol
    again = state_of(new).evaluate(start.eta, inner_tol=1e-7)
    if not zeros:
        assert result.history[0].certificate.upper == pytest.approx(again.upper, rel=1e-6)


def test_what_is_known_of_another_price_is_not_taken_for_an_answer(problem):
    _, start = known_from(problem)
    dear = replace(problem, learner=Hinge(100.0))
    result = Newton(tol=1e-5).run(dear, start)
    assert all(record.solved for record in result.history)
    optimum = conic_optimum(problem.grams.matrices, problem.y, ("hinge", 100.0), ("simplex",)).value
    assert_encloses(result.certificate, optimum)
