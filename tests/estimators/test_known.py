"""A solution under one geometry is a solved machine under every other."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave import KernelBank, MKLClassifier, MKLRegressor, path
from kernelweave.estimators.task import Solution, Start, starts
from kernelweave.estimators.training import _known
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.gram import DenseGrams
from kernelweave.kernels import Gaussian
from kernelweave.learners import EpsilonInsensitive, Hinge, SquaredHinge
from kernelweave.solvers import Newton, Problem


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(90, 3))
    y = np.where(X[:, 0] + X[:, 1] ** 2 - 1 + 0.3 * rng.normal(size=90) > 0, 1.0, -1.0)
    grams = [np.exp(-((x - x[:, None]) ** 2) / (2 * w**2)) for x in X.T for w in (0.3, 1.0, 3.0)]
    return Problem(DenseGrams(grams, centre=True), y, Hinge(C=10.0), BoxSimplex(theta=0.2))


def test_a_known_machine_is_not_solved_again(problem):
    first = Newton(tol=1e-5).run(problem)
    wider = replace(problem, geometry=BoxSimplex(theta=0.3))
    fresh = Newton(tol=1e-5).run(wider, start=first.eta, warm=first.machine.coef)
    known = Newton(tol=1e-5).run(wider, start=first.eta, warm=first.machine.coef, known=first.visited)
    assert not known.history[0].solved
    assert all(record.solved for record in (*known.history[1:], *fresh.history))
    assert known.n_iter == len(known.history) - 1 < fresh.n_iter
    sharp = Newton(tol=1e-8).run(wider)
    for result in (fresh, known):
        for record in result.history:
            assert record.certificate.lower <= sharp.certificate.upper
            assert sharp.certificate.lower <= record.certificate.upper
        assert result.certificate.relative_gap <= 1e-5


def test_bounds_of_a_known_machine_are_those_of_the_new_geometry(problem):
    first = Newton(tol=1e-6).run(problem)
    for geometry in (BoxSimplex(theta=0.2), BoxSimplex(theta=0.5), Simplex()):
        other = replace(problem, geometry=geometry)
        start = {"start": first.eta, "warm": first.machine.coef}
        known = Newton(tol=1e-3, max_iter=1).run(other, **start, known=first.visited).history[0]
        fresh = Newton(tol=1e-3, max_iter=1).run(other, **start).history[0]
        assert known.certificate.upper == pytest.approx(fresh.certificate.upper, rel=1e-5)
        assert known.certificate.lower == pytest.approx(fresh.certificate.lower, rel=1e-3)


def test_a_point_elsewhere_is_of_no_use(problem):
    first = Newton(tol=1e-4).run(problem)
    other = replace(problem, geometry=BoxSimplex(theta=0.4))
    result = Newton(tol=1e-4).run(other, known=first.visited)  # from the geometry's own start
    assert all(record.solved for record in result.history)


def test_only_the_same_machine_is_known(problem):
    visited = Newton(tol=1e-5).run(problem).visited
    solution = Solution(problem, visited)
    assert _known(replace(problem, geometry=Simplex()), solution) is visited
    assert _known(replace(problem, learner=Hinge(C=10.0, tol=1e-6)), solution) is visited
    others = (
        {"learner": Hinge(C=9.0)},
        {"learner": SquaredHinge(C=10.0)},
        {"y": problem.y.copy()},
        {"weight": np.ones(90)},
        {"bank": DenseGrams([np.eye(90)] * 9)},
    )
    for change in others:
        assert _known(replace(problem, **change), solution) is None
    machine = visited.point.machine
    point = replace(visited.point, machine=replace(machine, loss=1.1 * machine.loss))
    assert _known(problem, Solution(problem, replace(visited, point=point))) is None
    assert _known(problem, None) is None
    assert Start(visited.point.eta, visited.point.machine.coef, solution).light.solution is None


@pytest.mark.parametrize(
    ("model", "param", "values", "saves"),
    [
        (
            MKLClassifier(geometry=BoxSimplex(), learner=Hinge(C=10.0)),
            "geometry__theta",
            (0.2, 0.4, 1.0),
            True,
        ),
        (MKLClassifier(geometry=LpBall(2.0)), "geometry__p", (4.0, 2.0, 1.3), False),
        (MKLClassifier(geometry=Simplex()), "learner__C", (0.1, 1.0, 10.0), False),
        (
            MKLRegressor(geometry=BoxSimplex(), learner=EpsilonInsensitive()),
            "geometry__theta",
            (0.2, 1.0),
            True,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_paths_are_those_of_single_fits(rng, model, param, values, saves):
    X = rng.normal(size=(120, 4))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=120)
    y = y if isinstance(model, MKLRegressor) else np.where(y > 1, "a", "b")
    bank = KernelBank([Gaussian(scale=s) for s in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)])
    model.set_params(bank=bank, tol=1e-5)
    walk = path(model, X, y, param=param, values=values)
    known = [not record.solved for m in walk.models[1:] for record in m.history_]
    assert any(known) == saves
    for value, found in zip(values, walk.models, strict=True):
        alone = model.set_params(**{param: value}).fit(X, y)
        assert found.certificate_.lower <= alone.certificate_.upper
        assert alone.certificate_.lower <= found.certificate_.upper
        assert found.duality_gap_ <= 1e-5
        np.testing.assert_allclose(found.kernel_weights_, alone.kernel_weights_, atol=0.02)


def test_what_is_known_serves_any_number_of_walks(problem):
    """The first may overwrite the matrix that comes with it; the next ones make their own."""
    first = Newton(tol=1e-5).run(problem)
    wider = replace(problem, geometry=BoxSimplex(theta=0.4))
    start = {"start": first.eta, "warm": first.machine.coef, "known": first.visited}
    assert first.visited.total is not None
    once, again = (Newton(tol=1e-6).run(wider, **start) for _ in range(2))
    assert first.visited.total is None
    np.testing.assert_allclose(again.eta, once.eta, atol=1e-6)
    assert again.certificate.upper == pytest.approx(once.certificate.upper, rel=1e-6)
    sharp = Newton(tol=1e-8).run(wider)
    assert again.certificate.lower <= sharp.certificate.upper
    assert sharp.certificate.lower <= again.certificate.upper


def test_known_points_do_not_count_as_machines(problem):
    first = Newton(tol=1e-5).run(problem)
    wider = replace(problem, geometry=BoxSimplex(theta=0.4))
    start = {"start": first.eta, "warm": first.machine.coef, "known": first.visited}
    result = Newton(tol=1e-9, max_iter=2).run(wider, **start)
    assert result.n_iter == 2
    assert result.stopped == "max_iter"


def test_several_problems_hold_no_matrix_each(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = MKLClassifier(KernelBank([Gaussian(0.5), Gaussian(2.0)]))
    setting = model._read(X, y, None)
    task = model._store(setting, [model])
    many = model._solve(task)
    assert all(start.solution is None for start in starts(many))
    assert starts(many[:1])[0].solution is not None
