"""The grid of a search: the order of its walk, and where each place starts from."""

import numpy as np
import pytest

from kernelweave.estimators.grid import Grid, axis
from kernelweave.estimators.task import Start
from kernelweave.geometry import BoxSimplex, Geometry, LpBall, Simplex
from kernelweave.learners import Hinge


def grid(costs, thetas):
    return Grid(
        axis("learner", Hinge(), None, costs, (0.1, 1.0)),
        axis("geometry", BoxSimplex(), None, thetas, (0.2, 1.0)),
    )


def test_the_walk_goes_from_simple_to_complex_whatever_the_order_given():
    values = grid([10.0, 0.1], [1.0, 0.2, 0.5])
    walk = [tuple(values.params(place).values()) for place in values.places()]
    assert walk == [(C, theta) for C in (0.1, 10.0) for theta in (0.2, 0.5, 1.0)]
    assert values.shape == (2, 3)
    assert values.params((0, 2)) == {"learner__C": 10.0, "geometry__theta": 0.5}


def test_every_place_starts_from_what_is_solved_around_it():
    """Solutions that are a sum of what each parameter does are found exactly inside the grid."""
    values = grid([0.1, 1.0, 10.0], [0.2, 0.5, 1.0])
    rng = np.random.default_rng(0)
    rows, columns = rng.uniform(1.0, 1.4, size=(2, 3, 4))
    solutions = {}
    for i, j in values.places():
        solution = [Start(k * (rows[i] + columns[j]), -k * rows[i] + columns[j]) for k in (1.0, 2.0)]
        near = values.start((i, j), BoxSimplex(), solutions)
        if i == j == 0:
            assert near is None
        elif i == 0 or j == 0:
            assert near is solutions[(i, j - 1) if j else (i - 1, j)]
        else:
            for guess, truth in zip(near, solution, strict=True):
                np.testing.assert_allclose(guess.eta, truth.eta)
                np.testing.assert_allclose(guess.coef, truth.coef)
        solutions[i, j] = solution


def test_parts_are_copies_with_their_values():
    part = BoxSimplex(theta=0.3)
    varied = axis("geometry", part, None, np.array([0.5, 1.0]), part.grid(4))
    assert [varied.at(i).theta for i in range(2)] == [0.5, 1.0]
    assert type(varied.values[0]) is float
    assert part.theta == 0.3


def test_unknown_parameters_keep_the_order_given():
    assert axis("geometry", LpBall(), None, [2.0, 1.0, np.inf], LpBall().grid(3)).order == (2, 0, 1)
    assert axis("geometry", BoxSimplex(), "nu", [0.1, 1.0], BoxSimplex().grid(3)).order == (0, 1)
    assert axis("geometry", BoxSimplex(), None, [None, 0.5], BoxSimplex().grid(3)).order == (0, 1)


@pytest.mark.parametrize("part", [Simplex(), object()])
def test_parts_without_a_parameter_stand_for_themselves(part):
    nothing = axis("geometry", part, None, None, ())
    assert (nothing.name, nothing.values, nothing.params(0)) == (None, (None,), {})
    assert Geometry.grid(Simplex(), 3) == ()


def test_a_weight_that_both_neighbours_have_does_not_vanish():
    """The closed form of some solvers keeps zeros, so an extrapolation must not make any."""
    values = grid([0.1, 1.0], [0.2, 1.0])
    zero = np.zeros(2)
    solutions = {
        (0, 0): [Start(np.array([0.9, 0.1]), zero)],
        (0, 1): [Start(np.array([0.3, 0.0]), zero)],
        (1, 0): [Start(np.array([0.4, 0.2]), zero)],
    }
    (guess,) = values.start((1, 1), BoxSimplex(), solutions)
    np.testing.assert_allclose(guess.eta, [0.15, 0.1])  # not 0.3 + 0.4 - 0.9 < 0


def test_the_neighbour_whose_machine_is_known_is_taken_where_its_weights_are_legal():
    values = grid([0.1, 1.0], [0.6, 1.0])
    zero = np.zeros(2)
    left = [Start(np.array([0.6, 0.4]), zero, solution=object())]
    solutions = {
        (0, 0): [Start(np.array([0.5, 0.5]), zero)],
        (0, 1): [Start(np.array([0.8, 0.2]), zero)],
        (1, 0): left,
    }
    assert values.start((1, 1), BoxSimplex(theta=1.0), solutions) is left
    (guess,) = values.start((1, 1), BoxSimplex(theta=0.55), solutions)  # it lies outside
    np.testing.assert_allclose(guess.eta, [0.9, 0.1])
    solutions[1, 0] = [left[0].light]
    (guess,) = values.start((1, 1), BoxSimplex(theta=1.0), solutions)  # nothing is known of it
    np.testing.assert_allclose(guess.eta, [0.9, 0.1])
