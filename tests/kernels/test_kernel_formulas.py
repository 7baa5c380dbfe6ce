"""Every kernel against a double loop written from its formula; nothing here shares code with the package."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from kernelweave.kernels import (
    ChiSquared,
    ExpDistance,
    FromFunction,
    Gaussian,
    InverseDistance,
    InverseSquareDistance,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)


def inner(x, z):
    return sum(a * b for a, b in zip(x, z, strict=True))


def distance2(x, z):
    return sum((a - b) ** 2 for a, b in zip(x, z, strict=True))


def chi2(x, z):
    return sum((a - b) ** 2 / (a + b) for a, b in zip(x, z, strict=True) if a + b > 0)


def table(function, X, Z):
    return np.array([[function(list(x), list(z)) for z in Z] for x in X])


def mean_over_distinct_pairs(function, X):
    values = [function(list(X[i]), list(X[j])) for i in range(len(X)) for j in range(len(X)) if i != j]
    return sum(values) / len(values)


@pytest.fixture(params=[3, 40], ids=["few columns", "many columns"])
def rows(request):
    rng = np.random.default_rng(7)
    X, Z = rng.normal(2.0, 1.0, (9, request.param)), rng.normal(2.0, 1.0, (6, request.param))
    Z[2] = X[4]  # a sample seen in training
    return X, Z


FIXED = {
    "linear": (Linear(), inner),
    "polynomial": (Polynomial(degree=3, offset=0.5, gamma=0.2), lambda x, z: (0.2 * inner(x, z) + 0.5) ** 3),
    "polynomial of degree 1": (Polynomial(degree=1), lambda x, z: inner(x, z) + 1.0),
    "gaussian by width": (Gaussian(width=1.7), lambda x, z: math.exp(-distance2(x, z) / (2 * 1.7**2))),
    "gaussian by gamma": (Gaussian(gamma=0.3), lambda x, z: math.exp(-0.3 * distance2(x, z))),
    "laplacian": (Laplacian(gamma=0.3), lambda x, z: math.exp(-math.sqrt(0.3) * math.sqrt(distance2(x, z)))),
    "inverse square distance": (
        InverseSquareDistance(gamma=0.3),
        lambda x, z: 1 / (0.3 * distance2(x, z) + 1),
    ),
    "inverse distance": (
        InverseDistance(gamma=0.3),
        lambda x, z: 1 / (math.sqrt(0.3) * math.sqrt(distance2(x, z)) + 1),
    ),
    "any function": (FromFunction(lambda X, Z: (X @ Z.T) ** 2), lambda x, z: inner(x, z) ** 2),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_kernel_is_its_formula(name, rows):
    kernel, formula = FIXED[name]
    X, Z = rows
    np.testing.assert_allclose(kernel(X, Z), table(formula, X, Z), rtol=1e-9)
    np.testing.assert_allclose(kernel(X), table(formula, X, X), rtol=1e-9)


LEARNT = {
    "gaussian": (Gaussian(scale=4.0), lambda gamma, d: math.exp(-gamma * d)),
    "laplacian": (Laplacian(scale=0.25), lambda gamma, d: math.exp(-math.sqrt(gamma) * math.sqrt(d))),
    "inverse square distance": (InverseSquareDistance(scale=2.0), lambda gamma, d: 1 / (gamma * d + 1)),
    "inverse distance": (
        InverseDistance(scale=2.0),
        lambda gamma, d: 1 / (math.sqrt(gamma) * math.sqrt(d) + 1),
    ),
}


@pytest.mark.parametrize("name", LEARNT)
def test_the_learnt_gamma_is_the_scale_over_the_mean_squared_distance_of_distinct_pairs(name, rows):
    kernel, profile = LEARNT[name]
    X, Z = rows
    gamma = kernel.scale / mean_over_distinct_pairs(distance2, X)
    expected = table(lambda x, z: profile(gamma, distance2(x, z)), Z, X)
    np.testing.assert_allclose(kernel.resolve(X)(Z, X), expected, rtol=1e-9)


def test_chi_squared_is_its_formula_with_the_mean_of_distinct_pairs():
    rng = np.random.default_rng(3)
    X, Z = rng.poisson(1.0, (8, 5)).astype(float), rng.poisson(1.0, (4, 5)).astype(float)
    X[0] = Z[0] = 0.0  # 0/0 = 0 in every column
    gamma = 0.5 / mean_over_distinct_pairs(chi2, X)
    expected = table(lambda x, z: math.exp(-gamma * chi2(x, z)), Z, X)
    np.testing.assert_allclose(ChiSquared(scale=0.5).resolve(X)(Z, X), expected, rtol=1e-12)
    np.testing.assert_allclose(ChiSquared(gamma=2.0)(Z, X), expected ** (2.0 / gamma), rtol=1e-9)


def test_exp_distance_divides_by_the_mean_training_distance():
    D = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 6.0], [2.0, 6.0, 0.0]])
    kernel = ExpDistance().resolve(D)
    np.testing.assert_allclose(kernel(D), np.exp(-D / 3.0), rtol=1e-15)
    np.testing.assert_allclose(kernel(D[:2] + 1.0, D), np.exp(-(D[:2] + 1.0) / 3.0), rtol=1e-15)
    np.testing.assert_allclose(ExpDistance(gamma=2.0)(D), np.exp(-D / 2.0), rtol=1e-15)


def test_a_precomputed_kernel_is_what_it_was_given():
    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(Precomputed()(K), K)
    new = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    np.testing.assert_array_equal(Precomputed()(new, K), new)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(), Gaussian(), Laplacian(), InverseDistance()])
def test_sparse_rows_give_what_dense_rows_give(kernel):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 30)) * (rng.random((12, 30)) < 0.2)
    Z = rng.normal(size=(7, 30)) * (rng.random((7, 30)) < 0.2)
    Z[0] = X[3]
    for make in (sparse.csr_matrix, sparse.csr_array, sparse.coo_array):
        resolved = kernel.resolve(make(X))
        np.testing.assert_allclose(resolved(make(X)), kernel.resolve(X)(X), rtol=1e-9)
        np.testing.assert_allclose(resolved(make(Z), make(X)), kernel.resolve(X)(Z, X), rtol=1e-9)
        np.testing.assert_array_equal(resolved(make(X)), resolved(make(X)).T)


def test_labels_come_from_the_parameters_and_not_from_the_data(rows):
    X, _ = rows
    labels = {
        "linear": Linear(),
        "polynomial(degree=2)": Polynomial(),
        "polynomial(degree=3, offset=0, gamma=0.5)": Polynomial(3, 0.0, 0.5),
        "gaussian(width=0.5)": Gaussian(width=0.5),
        "gaussian(gamma=0.1)": Gaussian(gamma=0.1),
        "gaussian(scale=4)": Gaussian(scale=4.0),
        "laplacian(scale=0.25)": Laplacian(scale=0.25),
        "inverse_square_distance(gamma=2)": InverseSquareDistance(gamma=2.0),
        "inverse_distance(scale=1)": InverseDistance(),
        "mine": FromFunction(np.dot, name="mine"),
        "inner": FromFunction(inner),
        "exp_distance": ExpDistance(),
        "precomputed": Precomputed(),
    }
    for label, kernel in labels.items():
        assert kernel.label == label
        if not kernel.pairwise:
            assert kernel.resolve(X).label == label


def test_changing_the_scale_of_a_resolved_kernel_changes_its_rate(rows):
    X, _ = rows
    kernel = Gaussian().resolve(X)
    assert kernel.set_params(scale=3.0).rate == pytest.approx(Gaussian(scale=3.0).resolve(X).rate)
