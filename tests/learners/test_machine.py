"""Linear systems of the curvature: definite, of low rank, and spoilt by rounding."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave.learners import Hinge
from kernelweave.learners.machine import RIDGE, half_solved, reduced_hessian


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [30, 5])
def test_half_a_semidefinite_system_squares_to_the_whole_up_to_its_ridge(rng, dtype, rank):
    X = rng.normal(size=(30, rank))
    A = (X @ X.T).astype(dtype)
    W = rng.normal(size=(2, 30)).astype(dtype)
    half = half_solved(A.copy(), W @ A)
    assert half.dtype == dtype
    expected = W @ A @ W.T  # (WA) A⁻¹ (AW')
    np.testing.assert_allclose(half @ half.T, expected, atol=100.0 * float(RIDGE[A.dtype]) * np.trace(A))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_a_matrix_that_no_ridge_makes_definite_the_definite_part_is_taken(dtype):
    A = np.array([[1.0, 0.1, 0.0], [0.1, -1.0, 0.0], [0.0, 0.0, 2.0]], dtype=dtype)
    half = half_solved(A.copy(), np.ones((1, 3), dtype=dtype))
    values, vectors = np.linalg.eigh(A.astype(float))
    expected = sum((vectors[:, k].sum()) ** 2 / values[k] for k in (1, 2))
    np.testing.assert_allclose(half @ half.T, expected, rtol=1e-5)


def test_the_smallest_ridge_that_does_is_taken():
    least = float(RIDGE[np.dtype(np.float64)])
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
    box = replace(solved.parts[0][0], lo=np.full(4, -1.0), hi=np.full(4, 1.0))  # zero is inside the bounds
    machine = replace(solved, coef=v, parts=((box, v),))
    assert machine.sees.all()
    assert replace(machine, parts=()).sees.tolist() == [True, True, False, False]
