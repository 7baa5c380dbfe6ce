"""What rounding may do to a solution, and the linear systems of its curvature."""

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.problems import random_problem

from kernelweave.learners import EpsilonInsensitive, Hinge, NuHinge, OneVsRest, Square, SquaredHinge
from kernelweave.learners.solution import half_solved, reduced_hessian, rounding_of_product

# The ridge that systems in either precision are given.
RIDGE = {np.float32: 3e-7, np.float64: 1e-10}


@pytest.fixture
def solution():
    """One whose numbers are told apart: ||v|| = 5."""
    solved = Hinge(C=1.0).solve(np.eye(2), np.array([1.0, -1.0]))
    return replace(
        solved,
        coef=np.array([3.0, -4.0]),
        g=11.0,
        quadratic=6.0,
        loss=9.0,
        gradient_bound=7.0,
        curvature_bound=2.0,
    )


def test_the_bounds_are_half_the_quadratic_form_and_the_loss_or_the_gain(solution):
    assert solution.primal == pytest.approx(0.5 * 6.0 + 9.0)
    assert solution.dual == pytest.approx(11.0 - 0.5 * 6.0)
    assert solution.gap == pytest.approx(4.0)
    assert solution.relative_gap == pytest.approx(4.0 / 12.0)
    assert replace(solution, loss=0.0, quadratic=0.0, g=0.0).relative_gap == 0.0


def test_allowances_are_those_of_independent_roundings(solution):
    assert rounding_of_product(0.1, 5.0) == pytest.approx(6.0 * np.sqrt(2.0) * 0.1 * 5.0)
    eta, errors = np.array([0.5, 2.0]), np.array([0.2, 0.01])
    moved = 6.0 * np.sqrt(2.0) * (0.5 * 0.2 + 2.0 * 0.01) * 5.0
    expected = moved * (7.0 + 5.0 / 2.0) + 0.5 * 2.0 * 2 * moved**2
    assert solution.rounding_allowance(eta, errors) == pytest.approx(expected)
    np.testing.assert_allclose(solution.energy_allowance(errors), 0.5 * 6.0 * np.sqrt(2.0) * 25.0 * errors)


def test_growth_is_that_of_the_quadratic_form_and_of_the_loss_up_to_second_order(solution):
    error = np.array([0.3, 0.4])
    expected = 0.5 * (3.0 * 0.3 + 4.0 * 0.4) + 7.0 * 0.5 + 0.5 * 2.0 * 0.25
    assert solution.primal_growth(error) == pytest.approx(expected)


@pytest.mark.parametrize(
    "learner",
    [
        Hinge(10.0),
        SquaredHinge(10.0),
        NuHinge(0.4),
        Square(10.0),
        EpsilonInsensitive(10.0),
        OneVsRest(Hinge(10.0)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("size", [1e-8, 1e-3])
def test_random_roundings_stay_within_their_allowances(learner, size, rng):
    """Of the entries of two kernels, by up to their size each, whichever way."""
    Ks, y = random_problem(0, n=40, M=2)
    y = np.column_stack([y, -y]) if isinstance(learner, OneVsRest) else y
    eta, errors = np.array([0.7, 0.3]), size * np.array([1.0, 2.0])
    v = learner.solve(eta[0] * Ks[0] + eta[1] * Ks[1], y, tol=1e-6).coef
    inner = learner.measure((eta[0] * Ks[0] + eta[1] * Ks[1]) @ v, v, y)
    grown, energies = [], []
    for _ in range(100):
        signs = np.triu(rng.choice([-1.0, 1.0], size=(2, 40, 40)))
        moved = errors[:, None, None] * (signs + np.triu(signs, 1).transpose(0, 2, 1))
        K = sum(w * (K + D) for w, K, D in zip(eta, Ks, moved, strict=True))
        grown.append(learner.measure(K @ v, v, y).primal - inner.primal)
        energies.append([0.5 * np.vdot(v, D @ v) for D in moved])
    slack = 1e-12 * abs(inner.primal)
    assert max(grown) <= inner.rounding_allowance(eta, errors) + slack
    assert max(grown) > 0.01 * inner.rounding_allowance(eta, errors) - slack  # and not far within
    largest = np.abs(energies).max(axis=0)
    assert (largest <= inner.energy_allowance(errors)).all()
    assert (largest > 0.1 * inner.energy_allowance(errors)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [30, 5])
def test_half_a_semidefinite_system_squares_to_the_whole_up_to_its_ridge(rng, dtype, rank):
    X = rng.normal(size=(30, rank))
    A = (X @ X.T).astype(dtype)
    W = rng.normal(size=(2, 30)).astype(dtype)
    half = half_solved(A.copy(), W @ A)
    assert half.dtype == dtype
    expected = W @ A @ W.T  # (WA) A⁻¹ (AW')
    np.testing.assert_allclose(half @ half.T, expected, atol=100.0 * RIDGE[dtype] * np.trace(A))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_a_matrix_that_no_ridge_makes_definite_the_definite_part_is_taken(dtype):
    A = np.array([[1.0, 0.1, 0.0], [0.1, -1.0, 0.0], [0.0, 0.0, 2.0]], dtype=dtype)
    half = half_solved(A.copy(), np.ones((1, 3), dtype=dtype))
    values, vectors = np.linalg.eigh(A.astype(float))
    expected = sum((vectors[:, k].sum()) ** 2 / values[k] for k in (1, 2))
    np.testing.assert_allclose(half @ half.T, expected, rtol=1e-5)


def test_the_smallest_ridge_that_does_is_taken():
    least = RIDGE[np.float64]
    A = np.diag([1.0, 1.0, -10.0 * least])  # the second ridge makes it definite, the first does not
    A[0, 1] = A[1, 0] = 0.5
    ridge = 30.0 * least * 2.0 / 3.0
    expected = np.ones(3) @ np.linalg.solve(A + ridge * np.eye(3), np.ones(3))
    half = half_solved(A.copy(), np.ones((1, 3)))
    np.testing.assert_allclose(half @ half.T, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_sums", [0, 1, 2])
def test_the_hessian_is_that_of_the_held_quadratic_programs_value(rng, dtype, n_sums):
    """Max over x, E'x = 0, of u'x − ½ x'Ax is ½ u'Hu: by the optimality conditions as one linear system."""
    X, U = rng.normal(size=(12, 20)), rng.normal(size=(12, 4))
    A, E = (X @ X.T).astype(dtype), np.eye(2)[rng.integers(0, 2, 12)][:, :n_sums]
    H = reduced_hessian(A.copy(), U, E, n_threads=1)
    system = np.block([[A, E], [E.T, np.zeros((n_sums, n_sums))]]).astype(float)
    solved = np.linalg.solve(system, np.vstack([U, np.zeros((n_sums, 4))]))[:12]
    np.testing.assert_allclose(H, U.T @ solved, rtol=2e-3 if dtype == np.float32 else 1e-7, atol=1e-4)


def test_sums_that_are_held_twice_are_held_once(rng):
    X, U = rng.normal(size=(8, 10)), rng.normal(size=(8, 3))
    once, twice = np.ones((8, 1)), np.ones((8, 2))
    np.testing.assert_allclose(
        reduced_hessian(X @ X.T, U, twice, 1), reduced_hessian(X @ X.T, U, once, 1), rtol=1e-9
    )


def test_a_free_coefficient_is_seen_even_where_it_is_zero():
    K, y = np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])
    solved = Hinge(C=1.0).solve(K, y)
    v = np.array([0.5, -0.5, 0.0, 0.0])
    box = replace(solved.programs[0][0], lo=np.full(4, -1.0), hi=np.full(4, 1.0))  # zero is inside the bounds
    inner = replace(solved, coef=v, programs=((box, v),))
    assert inner.needed_matvecs.all()
    assert replace(inner, programs=()).needed_matvecs.tolist() == [True, True, False, False]
