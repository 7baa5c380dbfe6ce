"""Linear systems of the curvature: definite, of low rank, and spoilt by rounding."""

import numpy as np
import pytest

from kernelweave.learners.machine import RIDGE, solve_psd


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [30, 5])
def test_a_semidefinite_system_is_solved_up_to_its_ridge(rng, dtype, rank):
    X = rng.normal(size=(30, rank))
    A = (X @ X.T).astype(dtype)
    B = A @ rng.normal(size=(30, 2)).astype(dtype)
    found = solve_psd(A.copy(), B)
    assert found.dtype == dtype
    size = np.abs(found).max() * np.trace(A)
    np.testing.assert_allclose(A @ found, B, atol=100.0 * float(RIDGE[A.dtype]) * size)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_that_no_ridge_makes_definite_is_still_itself(dtype):
    A = np.array([[1.0, 0.1, 0.0], [0.1, -1.0, 0.0], [0.0, 0.0, 2.0]], dtype=dtype)
    found = solve_psd(A.copy(), np.ones(3, dtype=dtype))
    np.testing.assert_allclose(found, np.linalg.solve(A, np.ones(3)), rtol=1e-5)


def test_the_smallest_ridge_that_does_is_taken():
    least = float(RIDGE[np.dtype(np.float64)])
    A = np.diag([1.0, 1.0, -10.0 * least])  # the second ridge makes it definite, the first does not
    A[0, 1] = A[1, 0] = 0.5
    ridge = 30.0 * least * 2.0 / 3.0
    expected = np.linalg.solve(A + ridge * np.eye(3), np.ones(3))
    np.testing.assert_allclose(solve_psd(A.copy(), np.ones(3)), expected, rtol=1e-6)
