"""The grid of a search: the order of its visits, and where each place starts from."""

import numpy as np
import pytest

from kernelweave.estimators.grid_search import (
    ParameterGrid,
    SplittableSamples,
    parameter_axis,
    simplest_of_the_best,
)
from kernelweave.geometry import BoxSimplex, Geometry, LpBall, Simplex
from kernelweave.learners import Hinge


def grid(costs, thetas):
    return ParameterGrid(
        parameter_axis("learner", Hinge(), None, costs, (0.1, 1.0)),
        parameter_axis("geometry", BoxSimplex(), None, thetas, (0.2, 1.0)),
    )


def test_places_are_visited_from_simple_to_complex_whatever_the_order_given():
    values = grid([10.0, 0.1], [1.0, 0.2, 0.5])
    walk = [tuple(values.params(place).values()) for place in values.places()]
    assert walk == [(C, theta) for C in (0.1, 10.0) for theta in (0.2, 0.5, 1.0)]
    assert values.shape == (2, 3)
    assert values.params((0, 2)) == {"learner__C": 10.0, "geometry__theta": 0.5}


def test_every_place_starts_from_a_solved_neighbour():
    """The one on the left, with another geometry, for its inner solution is known; else the one below."""
    values = grid([10.0, 0.1, 1.0], [1.0, 0.2, 0.5])
    found = {}
    for C, theta in ((C, theta) for C in (0.1, 1.0, 10.0) for theta in (0.2, 0.5, 1.0)):
        place = values.learner.values.index(C), values.geometry.values.index(theta)
        start = values.start(place, found)
        if theta > 0.2:
            assert start == (C, {0.5: 0.2, 1.0: 0.5}[theta])
        elif C > 0.1:
            assert start == ({1.0: 0.1, 10.0: 1.0}[C], theta)
        else:
            assert start is None
        found[place] = (C, theta)


def test_parts_are_copies_with_their_values():
    part = BoxSimplex(theta=0.3)
    varied = parameter_axis("geometry", part, None, np.array([0.5, 1.0]), part.grid(4))
    assert [varied.at(i).theta for i in range(2)] == [0.5, 1.0]
    assert type(varied.values[0]) is float
    assert part.theta == 0.3


def test_unknown_parameters_keep_the_order_given():
    assert parameter_axis("geometry", LpBall(), None, [2.0, 1.0, np.inf], LpBall().grid(3)).order == (2, 0, 1)
    assert parameter_axis("geometry", BoxSimplex(), "nu", [0.1, 1.0], BoxSimplex().grid(3)).order == (0, 1)
    assert parameter_axis("geometry", BoxSimplex(), None, [None, 0.5], BoxSimplex().grid(3)).order == (0, 1)


@pytest.mark.parametrize("part", [Simplex(), object()])
def test_parts_without_a_parameter_stand_for_themselves(part):
    nothing = parameter_axis("geometry", part, None, None, ())
    assert (nothing.name, nothing.values, nothing.params(0)) == (None, (None,), {})
    assert Geometry.grid(Simplex(), 3) == ()


def test_the_highest_score_wins_and_of_equal_ones_the_simplest():
    values = grid([10.0, 0.1], [1.0, 0.2])
    scores = np.array([[0.9, 0.9], [0.7, 0.9 + 1e-13]])
    assert simplest_of_the_best(values, scores) == (1, 1)  # C = 0.1, theta = 0.2
    scores[0, 0] = 0.91
    assert simplest_of_the_best(values, scores) == (0, 0)
    with pytest.raises(ValueError, match="No candidate has a score"):
        simplest_of_the_best(values, np.full((2, 2), np.nan))


def test_some_of_the_samples_have_a_few_of_every_class():
    y = np.repeat([0, 1, 2], [5000, 30, 7])
    some, _ = SplittableSamples(np.arange(y.size)[:, None], y, None).at_most(300)
    assert np.bincount(some.y)[1:].tolist() == [20, 7]
    assert 290 <= np.bincount(some.y)[0] <= 300
    assert np.array_equal(y[some.X[:, 0]], some.y)
