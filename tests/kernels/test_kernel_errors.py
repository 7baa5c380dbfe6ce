"""Bad parameters and bad input: one sentence each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kernelweave.kernels import (
    ChiSquared,
    ExpDistance,
    FromFunction,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)

X = np.random.default_rng(0).normal(size=(5, 2))
D = np.array([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize("kernel", [Gaussian(), Laplacian(), ChiSquared(), ExpDistance()])
def test_an_unresolved_kernel_says_what_to_call(kernel):
    rows = D if kernel.pairwise else np.abs(X)
    with pytest.raises(ValueError, match=r"has not learnt its gamma; call kernel.resolve\(X_train\)"):
        kernel(rows)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            Gaussian(width=0.0),
            "Gaussian cannot use width=0.0; width has to be a finite number above 0 or None",
        ),
        (Gaussian(gamma=-1.0), "gamma=-1.0"),
        (Gaussian(scale=np.inf), "scale=inf"),
        (Gaussian(scale=None), "scale=None"),
        (Gaussian(width="wide"), "width='wide'"),
        (Gaussian(width=1.0, gamma=1.0), "width=1 and gamma=1; give only one"),
        (Laplacian(scale=float("nan")), "scale=nan"),
        (Polynomial(degree=0), "degree=0"),
        (Polynomial(degree=1.5), "degree=1.5"),
        (Polynomial(offset=-1.0), "offset=-1.0"),
        (Polynomial(gamma=0.0), "gamma=0.0"),
        (ExpDistance(gamma=0.0), "gamma=0.0"),
    ],
)
def test_a_parameter_out_of_range_is_named(kernel, message):
    for use in (kernel.resolve, kernel, kernel.diagonal):
        with pytest.raises(ValueError, match=message):
            use(X)


def test_a_function_kernel_has_to_return_a_finite_symmetric_matrix_of_the_right_shape():
    with pytest.raises(TypeError, match="callable"):
        FromFunction("rbf")(X)
    with pytest.raises(ValueError, match=r"'ones' returned shape \(5,\); it has to return \(5, 5\)"):
        FromFunction(lambda *_: np.ones(5), name="ones")(X)
    with pytest.raises(ValueError, match="'skew' is not symmetric"):
        FromFunction(lambda *_: np.triu(np.ones((5, 5))), name="skew")(X)
    with pytest.raises(ValueError, match=r"contains nan at \[0, 0\]"):
        FromFunction(lambda *_: np.full((5, 5), np.nan), name="lost")(X)
    with pytest.raises(ValueError, match="'minus' is indefinite"):
        FromFunction(lambda *_: -np.eye(5), name="minus")(X)


def test_chi_squared_needs_features_that_are_not_negative():
    with pytest.raises(ValueError, match=r"features >= 0, received -0.5"):
        ChiSquared(gamma=1.0)(np.array([[1.0, -0.5]]))
    with pytest.raises(ValueError, match="features >= 0"):
        ChiSquared(gamma=1.0)(np.ones((2, 2)), -np.ones((2, 2)))


def test_sparse_input_is_refused_by_name_where_it_cannot_be_used():
    for kernel in (ChiSquared(gamma=1.0), Precomputed()):
        with pytest.raises(
            TypeError, match=rf"{kernel.label.split('(')[0]}.* does not accept a sparse matrix"
        ):
            kernel(sparse.csr_matrix(np.eye(3)))


def test_one_dimensional_rows_are_refused():
    with pytest.raises(ValueError, match=r"2-D array of rows, received 1 dimension\(s\) of shape \(3,\)"):
        Linear()(np.ones(3))


def test_a_distance_matrix_is_square_symmetric_and_zero_on_the_diagonal():
    kernel = ExpDistance(gamma=1.0)
    with pytest.raises(ValueError, match=r"square matrix, received shape \(1, 2\)"):
        kernel(D[:1])
    with pytest.raises(ValueError, match="cannot be negative, received -1"):
        kernel(-D)
    with pytest.raises(ValueError, match="not symmetric"):
        kernel(np.triu(D))
    with pytest.raises(ValueError, match="to itself has to be 0, received 1"):
        kernel(np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"received shape \(2, 1\); pass 2 columns"):
        kernel(np.ones((2, 1)), D)


def test_a_precomputed_block_is_square_and_does_not_know_the_diagonal_of_new_rows():
    with pytest.raises(ValueError, match="has to be square"):
        Precomputed()(np.ones((2, 3)))
    with pytest.raises(ValueError, match="does not hold k"):
        Precomputed().diagonal(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"received shape \(2, 3\); pass 2 columns"):
        Precomputed()(np.ones((2, 3)), np.eye(2))
    assert not Precomputed.knows_diagonal
