"""Explicit features of kernels: by their definitions, and where they are exact."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from kernelweave import KernelBank, Landmarks, Nystroem, RandomFourier, Views
from kernelweave.kernels import (
    Centering,
    ExpDistance,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    UnitDiagonal,
    UnitTrace,
)

BANK = KernelBank([Gaussian(width=1.0), Laplacian(), Linear(), Polynomial(degree=2)])


def grams_of(features, X):
    Phi, ends = features.transform(X), features.offsets
    return [Phi[:, a:b] @ Phi[:, a:b].T for a, b in pairwise(ends)]


@pytest.mark.parametrize("scaling", [None, UnitDiagonal(), UnitTrace()], ids=repr)
def test_landmark_features_are_nystroems_approximation(rng, scaling):
    X = rng.normal(size=(30, 3))
    fitted = KernelBank([Gaussian(width=1.0), Laplacian()], scaling=scaling).fit(X)
    features = Landmarks(12).fit(fitted, X, np.random.default_rng(5))
    L = np.sort(np.random.default_rng(5).choice(30, 12, replace=False))
    for K, found in zip(fitted.grams(), grams_of(features, X), strict=True):
        expected = K[:, L] @ np.linalg.pinv(K[np.ix_(L, L)], rcond=1e-10, hermitian=True) @ K[L]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_centring_is_left_to_the_intercept(rng):
    X = rng.normal(size=(30, 3))
    plain, centred = (
        KernelBank([Gaussian(width=1.0)], scaling=scaling).fit(X) for scaling in (None, Centering())
    )
    grams = [grams_of(Landmarks(12).fit(b, X, np.random.default_rng(5)), X)[0] for b in (plain, centred)]
    np.testing.assert_allclose(grams[1], grams[0], atol=1e-12)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_with_all_samples_as_landmarks_kernels_are_exact(rng, make):
    X = make(rng.normal(size=(25, 4)))
    fitted = BANK.fit(X)
    for found, K in zip(grams_of(Landmarks(100).fit(fitted, X, rng), X), fitted.grams(), strict=True):
        np.testing.assert_allclose(found, K, atol=1e-6 * np.abs(K).max())


def test_equal_landmarks_and_constant_columns_only_lower_the_rank(rng):
    X = np.repeat(rng.normal(size=(5, 3)), 4, axis=0)
    X[:, 2] = 1.0
    fitted = KernelBank([Gaussian(width=1.0), Linear()]).fit(X)
    features = Landmarks(20).fit(fitted, X, rng)
    assert features.sizes == [5, 3]
    for found, K in zip(grams_of(features, X), fitted.grams(), strict=True):
        np.testing.assert_allclose(found, K, atol=1e-8 * np.abs(K).max())


def test_a_kernel_of_zeros_has_no_features(rng):
    X = np.column_stack([rng.normal(size=10), np.zeros(10)])
    bank = KernelBank.per_view([Linear()], views={"a": [0], "b": [1]})
    assert Landmarks(5).fit(bank.fit(X), X, rng).sizes == [1, 0]


@pytest.mark.parametrize("sliced", [False, True])
def test_kernels_that_are_given_have_landmarks_too(rng, sliced):
    X = rng.normal(size=(50, 3))
    D = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    rows = np.arange(49, 9, -1) if sliced else np.arange(50)
    views = Views({"k": np.exp(-D), "d": D, "x": X})
    train, new = (views[rows], views[:10]) if sliced else (views, views)
    fitted = KernelBank([("k", Precomputed()), ("d", ExpDistance()), ("x", Gaussian())]).fit(train)
    Phi = Landmarks(12).fit(fitted, train, np.random.default_rng(5))
    L = np.sort(np.random.default_rng(5).choice(len(rows), 12, replace=False))
    found = Phi.transform(new) @ Phi.transform(new).T
    expected = 0.0
    for (_, K), Kt in zip(fitted.cross(new), fitted.grams(), strict=True):
        expected = (
            expected + K[:, L] @ np.linalg.pinv(Kt[np.ix_(L, L)], rcond=1e-10, hermitian=True) @ K[:, L].T
        )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_views_are_approximated_each_by_itself(rng):
    X = Views({"u": rng.normal(size=(20, 2)), "v": rng.normal(size=(20, 3))})
    bank = KernelBank.per_view([Gaussian(width=1.0)])
    fitted = bank.fit(X)
    for found, K in zip(grams_of(Landmarks(20).fit(fitted, X, rng), X), fitted.grams(), strict=True):
        np.testing.assert_allclose(found, K, atol=1e-6)


def test_random_fourier_features_close_in_on_the_kernel(rng):
    X = rng.normal(size=(20, 3))
    fitted = KernelBank([Gaussian(width=1.0), Linear()]).fit(X)
    Ks = list(fitted.grams())
    few, many = (
        grams_of(RandomFourier(count).fit(fitted, X, np.random.default_rng(0)), X) for count in (20, 5000)
    )
    assert np.abs(many[0] - Ks[0]).max() < 0.08 < np.abs(few[0] - Ks[0]).max()
    np.testing.assert_allclose(few[1], Ks[1], atol=1e-10)
    np.testing.assert_allclose(np.diag(few[0]), 1.0)


def test_kernels_without_fourier_features_are_named(rng):
    X = rng.normal(size=(20, 3))
    with pytest.raises(ValueError, match=r"Kernel '.*laplacian.*' has no random Fourier.*Landmarks"):
        RandomFourier(10).fit(KernelBank([Laplacian()]).fit(X), X, rng)


@pytest.mark.parametrize(
    "features", [Landmarks(0), Landmarks(2.5), RandomFourier(True), Nystroem("3")], ids=repr
)
def test_numbers_of_features_are_checked(rng, features):
    X = rng.normal(size=(20, 3))
    with pytest.raises(ValueError, match="whole number of at least 1; got"):
        features.fit(KernelBank([Gaussian()]).fit(X), X, rng)


@pytest.mark.parametrize("features", [Landmarks(8), RandomFourier(8)], ids=repr)
def test_contributions_are_features_times_coefficients(rng, features):
    X = rng.normal(size=(20, 3))
    found = features.fit(KernelBank([Gaussian(width=1.0), Linear()]).fit(X), X, rng)
    raw = found.raw(X, [0, 1])
    coef = [rng.normal(size=(raw[0].shape[1], 2)), None]
    parts = found.contributions(X, coef)
    np.testing.assert_allclose(parts[:, :, 0], raw[0] @ coef[0], atol=1e-12)
    assert not parts[:, :, 1].any()
