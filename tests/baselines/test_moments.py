"""Inner products of kernels: against their definition, whatever the blocks, the weights and the constants."""

import numpy as np
import pytest
from tests.reference.problems import random_problem

from kernelweave import KernelBank
from kernelweave.baselines import moments as module
from kernelweave.baselines.moments import moments, simplex_code
from kernelweave.gram import MatrixSource
from kernelweave.kernels import FromFunction, Gaussian, Linear


def by_definition(Ks, codes, weight, centred):
    """The moments of explicitly centred and weighted matrices, entry by entry."""
    n = len(weight)
    P = np.eye(n) - np.outer(np.ones(n), weight) / weight.sum() if centred else np.eye(n)
    roots = np.diag(np.sqrt(weight))
    Ks = [roots @ P @ K @ P.T @ roots for K in Ks]
    T = roots @ P @ codes
    products = np.array([[sum((K * L).ravel()) for L in Ks] for K in Ks])
    targets = np.array([[t @ K @ t for t in T.T] for K in Ks])
    return products, targets, np.linalg.norm(T @ T.T)


@pytest.fixture(params=[False, True], ids=["plain", "centred"])
def centred(request):
    return request.param


def test_they_are_those_of_explicit_matrices(centred, rng):
    Ks, _ = random_problem(0, n=30, M=5)
    codes, weight = rng.normal(size=(30, 2)), rng.uniform(0.0, 2.0, 30)
    found = moments([MatrixSource(Ks)], 5, codes, weight, centred=centred)
    products, targets, norm = by_definition(Ks, codes, weight, centred)
    np.testing.assert_allclose(found.products, products, rtol=1e-11, atol=1e-12 * products.max())
    np.testing.assert_allclose(found.targets, targets, rtol=1e-11, atol=1e-12 * targets.max())
    assert found.target_norm == pytest.approx(norm, rel=1e-12)


def test_each_column_is_a_target_of_its_own(centred, rng):
    Ks, _ = random_problem(1, n=20, M=3)
    codes, weight = rng.normal(size=(20, 3)), np.ones(20)
    found = moments([MatrixSource(Ks)], 3, codes, weight, centred=centred)
    for c in range(3):
        alone = moments([MatrixSource(Ks)], 3, codes[:, [c]], weight, centred=centred)
        np.testing.assert_allclose(found.column(c).of_kernels(), alone.of_kernels(), rtol=1e-12)


def test_blocks_and_kinds_of_kernels_do_not_matter(centred, rng, monkeypatch):
    X = rng.normal(size=(25, 4))
    bank = KernelBank([Gaussian(), Linear(), FromFunction(lambda A, B: A @ B.T + 1.0), Gaussian(scale=9.0)])
    fitted = bank.fit(X)
    codes, weight = rng.normal(size=(25, 1)), rng.uniform(0.5, 2.0, 25)
    products, _, _ = by_definition(list(fitted.grams()), codes, weight, centred)
    for entries in (1, 700, 1 << 23):
        monkeypatch.setattr(module, "ENTRIES", entries)
        found = moments(fitted.sources(), 4, codes, weight, centred=centred)
        np.testing.assert_allclose(found.products, products, rtol=1e-10)


def test_a_weight_of_two_is_a_sample_twice_and_of_zero_none(centred):
    Ks, y = random_problem(2, n=24, M=4)
    weight = np.ones(24)
    weight[:5], weight[5:9] = 2.0, 0.0
    order = np.repeat(np.arange(24), weight.astype(int))
    weighted = moments([MatrixSource(Ks)], 4, y[:, None], weight, centred=centred)
    copies = [np.ascontiguousarray(K[np.ix_(order, order)]) for K in Ks]
    repeated = moments([MatrixSource(copies)], 4, y[order][:, None], np.ones(order.size), centred=centred)
    np.testing.assert_allclose(weighted.products, repeated.products, rtol=1e-10)
    np.testing.assert_allclose(weighted.targets, repeated.targets, rtol=1e-9, atol=1e-10)


def test_a_large_constant_does_not_drown_what_centring_leaves(rng):
    x = rng.normal(size=(40, 1))
    y = np.sign(x)
    small = [1e-3 * x @ x.T, 1e-3 * y @ y.T]
    large = [K + 1e3 for K in small]
    a = moments([MatrixSource(small)], 2, y, np.ones(40), centred=True)
    b = moments([MatrixSource(large)], 2, y, np.ones(40), centred=True)
    np.testing.assert_allclose(b.products, a.products, rtol=1e-8)  # the matrices carry ten digits of it
    np.testing.assert_allclose(b.of_kernels(), a.of_kernels(), rtol=1e-8)


def test_a_constant_kernel_has_no_direction():
    Ks, y = random_problem(3, n=20, M=2)
    found = moments([MatrixSource([Ks[0], np.full((20, 20), 7.3)])], 2, y[:, None], np.ones(20), centred=True)
    assert found.norms[1] == 0.0
    assert found.of_kernels()[1] == 0.0
    assert found.of_combination(np.array([0.0, 1.0])) == 0.0


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_code_is_one_within_a_class_and_even_between(classes, rng):
    index = rng.integers(0, classes, 30)
    code = simplex_code(index, classes)
    same = index[:, None] == index
    np.testing.assert_allclose(code @ code.T, np.where(same, 1.0, -1.0 / (classes - 1)), atol=1e-12)
