"""The factor of the square loss: in place, whichever samples take part, and gone when it is not needed."""

import numpy as np
import pytest

from kernelweave import KernelBank, MKLRegressor
from kernelweave.learners import Square, ridge
from kernelweave.learners.ridge import Ridge
from kernelweave.solvers.problem import OuterState


@pytest.fixture
def K(rng):
    A = rng.normal(size=(30, 12))
    return A @ A.T


@pytest.mark.parametrize("columns", [7, 512])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("absent", [[], [0, 11, 29]])
def test_a_factor_is_that_of_the_samples_that_take_part(monkeypatch, rng, K, columns, dtype, absent):
    monkeypatch.setattr(ridge, "COLUMNS", columns)
    K, d = K.astype(dtype), rng.uniform(0.5, 2.0, 30)
    d[absent] = np.inf
    before, used = K.copy(), np.flatnonzero(np.isfinite(d))
    found = Ridge(np.zeros((30, 1)), d, has_bias=True).factor(K)
    A = K[np.ix_(used, used)].astype(float) + np.diag(d[used])
    R = np.triu(found.R)
    np.testing.assert_allclose(R.T @ R, A, atol=1e-10)
    np.testing.assert_array_equal(K, before)
    inverse = np.linalg.inv(A)
    sums = inverse.sum(axis=0)
    np.testing.assert_allclose(found.diagonal(), np.diag(inverse) - sums**2 / sums.sum(), atol=1e-10)


def test_another_attempt_starts_from_the_matrix_and_not_from_what_the_first_left(K):
    K = K - 1e-8 * np.trace(K) / 30 * np.eye(30)  # indefinite by more than the first ridges mend
    found = Ridge(np.zeros((30, 1)), np.full(30, 1e-12), has_bias=False).factor(K)
    R = np.triu(found.R)
    np.testing.assert_allclose(R.T @ R, K, atol=1e-5 * np.abs(K).max())


def test_curvature_is_the_same_when_the_factor_was_forgotten(rng, K):
    y = rng.normal(size=30)
    inner = Square(C=2.0).solve(K, y)
    images = rng.normal(size=(3, 30))
    with_factor = inner.curvature(K, images)
    assert inner.factors
    inner.forget()
    assert not inner.factors
    np.testing.assert_allclose(inner.curvature(K, images), with_factor, rtol=1e-10)


def test_no_more_than_one_factor_is_held_and_none_by_the_result(monkeypatch, rng):
    held, solved = [], []
    solve, result = Square.solve, OuterState.result

    def counted(self, *arguments):
        held.append(sum(len(inner.factors) for inner in solved))
        inner = solve(self, *arguments)
        solved.append(inner)
        return inner

    def finished(self, *arguments):
        found = result(self, *arguments)
        held.append(sum(len(inner.factors) for inner in solved))
        return found

    monkeypatch.setattr(Square, "solve", counted)
    monkeypatch.setattr(OuterState, "result", finished)
    X = rng.normal(size=(40, 3))
    MKLRegressor(KernelBank.distances(), tol=1e-6).fit(X, X[:, 0] ** 2)
    assert len(solved) > 2
    assert set(held) == {0}
