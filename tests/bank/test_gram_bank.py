"""Training kernels, stored."""

import numpy as np
import pytest

from kernelweave import KernelBank
from kernelweave.bank import GramBank
from kernelweave.kernels import Gaussian, Linear


@pytest.fixture
def fitted(rng):
    return KernelBank([Gaussian(), Linear()]).fit(rng.normal(size=(25, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_verbs_are_those_of_the_kernels(fitted, rng, dtype):
    bank = GramBank.hold(fitted, centre=False, tol=1e-3, dtype=dtype)
    Ks, eta, v = list(fitted.grams()), np.array([0.25, 0.75]), rng.normal(size=25)
    np.testing.assert_allclose(bank.combine(eta), 0.25 * Ks[0] + 0.75 * Ks[1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(bank.energies(v), [0.5 * v @ K @ v for K in Ks], rtol=1e-5)
    np.testing.assert_allclose(bank.images(v), [K @ v for K in Ks], rtol=1e-5, atol=1e-5)
    assert (bank.n_kernels, bank.n_samples, bank.names) == (2, 25, fitted.names)


def test_cross_is_the_weighted_kernel_of_new_samples(fitted, rng):
    X, eta = rng.normal(size=(4, 3)), np.array([0.25, 0.75])
    rows = dict(fitted.cross(X))
    bank = GramBank.hold(fitted, centre=True, tol=1e-3)
    np.testing.assert_allclose(bank.cross(X, eta), 0.25 * rows[0] + 0.75 * rows[1])


def test_more_precise_banks_hold_the_same_kernels(fitted, rng):
    v = rng.normal(size=25)
    v -= v.mean()
    rough = GramBank.hold(fitted, centre=True, tol=1e-3, dtype="float32")
    assert rough.is_rounded
    assert rough.refined() is None
    np.testing.assert_allclose(rough.exact().energies(v), rough.energies(v), rtol=1e-5)
    fine = GramBank.hold(fitted, centre=True, tol=1e-3).refined()
    assert not fine.is_rounded
    np.testing.assert_allclose(fine.energies(v), rough.exact().energies(v), rtol=1e-12)
