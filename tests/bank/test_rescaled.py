"""Kernels scaled once more are those of the chain of scalings, also for new samples."""

import pickle
import tracemalloc

import numpy as np
import pytest

from kernelweave import KernelBank, SemiSupervisedMKLClassifier, Views
from kernelweave.bank.precomputed import PrecomputedBank
from kernelweave.bank.scaled import RescaledKernels
from kernelweave.kernels import (
    Centering,
    Chain,
    FromFunction,
    Gaussian,
    Linear,
    Polynomial,
    Precomputed,
    UnitDiagonal,
    UnitMean,
)


def test_they_are_what_the_chain_makes_of_them(rng):
    X, Z = rng.normal(size=(300, 4)), rng.normal(size=(7, 4))
    fitted = KernelBank([Gaussian(), Linear()]).fit(X)
    rescaled = RescaledKernels(fitted, (Centering(), UnitMean()))
    ours = list(rescaled.grams())
    for m, (K, mine) in enumerate(zip(fitted.grams(), ours, strict=True)):
        chain = Chain((Centering(), UnitMean())).fit(K)
        np.testing.assert_allclose(mine, chain.train(K), atol=1e-12)
        np.testing.assert_array_equal(mine, mine.T)
        rows = dict(fitted.cross(Z))[m]
        np.testing.assert_allclose(dict(rescaled.cross(Z))[m], chain.rows(rows), atol=1e-12)
        np.testing.assert_allclose(dict(rescaled.between(X[:9], X))[m], mine[:9], atol=1e-10)
    assert (rescaled.names, rescaled.view_names, rescaled.n_samples) == (fitted.names, fitted.view_names, 300)


def test_what_is_scaled_already_is_scaled_once_more(rng):
    X, Z = rng.normal(1.0, 1.0, size=(40, 4)), rng.normal(size=(7, 4))
    first = (UnitDiagonal(), Centering())
    fitted = KernelBank([Polynomial(), Linear()], scaling=first).fit(X)
    rescaled = RescaledKernels(fitted, UnitMean(), n_threads=2)
    both = KernelBank([Polynomial(), Linear()], scaling=(*first, UnitMean())).fit(X)
    for mine, expected in zip(rescaled.grams(), both.grams(), strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-12)
    light = pickle.loads(pickle.dumps(rescaled.for_prediction()))
    for (m, mine), (k, expected) in zip(light.cross(Z), both.cross(Z), strict=True):
        assert m == k
        np.testing.assert_allclose(mine, expected, atol=1e-12)
    for (m, mine), (k, expected) in zip(light.between(Z, X[:3]), both.between(Z, X[:3]), strict=True):
        assert m == k
        np.testing.assert_allclose(mine, expected, atol=1e-12)


def test_a_scaling_that_needs_the_lengths_of_new_samples_has_its_place_in_the_bank(rng):
    X = rng.normal(size=(20, 3))
    rescaled = RescaledKernels(KernelBank([Polynomial()]).fit(X), UnitDiagonal())
    np.testing.assert_allclose(np.diagonal(next(rescaled.grams())), 1.0)
    with pytest.raises(ValueError, match=r"needs k\(x, x\) of the new samples"):
        list(rescaled.cross(X[:3]))
    with pytest.raises(ValueError, match="scale the kernels in their bank"):
        list(rescaled.between(X[:3], X[:3]))


def test_matrices_of_the_user_are_left_as_they_are(rng):
    X = rng.normal(size=(30, 3))
    own = X @ X.T
    own = 0.5 * (own + own.T)
    before = own.copy()
    kept = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    again = kept.copy()
    banks = (
        (PrecomputedBank(), [own]),
        (KernelBank.per_view(Precomputed()), Views({"a": own})),
        (KernelBank([FromFunction(lambda A, B: kept)]), X),  # noqa: ARG005 - a function with a memory
    )
    for bank, given in banks:
        list(RescaledKernels(bank.fit(given), (Centering(), UnitMean())).grams())
        np.testing.assert_array_equal(own, before)
        np.testing.assert_array_equal(kept, again)


def test_training_a_semi_supervised_machine_holds_two_matrices_beside_the_kernels(rng):
    n, n_kernels = 500, 4
    X = rng.normal(size=(n, 12)) + 2.0 * (np.arange(n) % 2)[:, None]
    y = np.where(np.arange(n) < 20, np.arange(n) % 2, -1)
    bank = KernelBank([Gaussian(scale=s) for s in np.logspace(-1, 1, n_kernels)])
    model = SemiSupervisedMKLClassifier(bank)
    model.fit(X, y)  # what is made only once is there
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    matrices = 8 * n * n * (n_kernels + 2)
    assert peak <= matrices + 4 * X.nbytes + 40 * 8 * n, f"{peak / (8 * n * n):.2f} Gram matrices"
