"""What a fit finds does not depend on how soon a check beside it is through."""

import time

import numpy as np

from kernelweave import _core
from kernelweave.bank.precomputed import PrecomputedBank
from kernelweave.bank.unchecked import UncheckedSource
from kernelweave.kernels.checks import probes

N, PATIENCE = 1000, 30.0


def test_energies_are_read_on_the_same_side_until_checks_are_settled(rng):
    matrices = [A @ A.T for A in rng.normal(size=(3, N, 5))]
    (source,) = PrecomputedBank().fit(matrices).sources()
    eta, v = np.ones(3), rng.normal(size=N)
    source.defer(2)
    source.combine_all(eta, np.zeros(N), np.empty((N, N), dtype=np.float32), 2)
    upper, lower, found = np.empty(3), np.empty(3), np.empty(3)
    _core.UpperSums(matrices, probes(N), 1).energies(v, upper)
    _core.energies_all(matrices, v[None], lower, 1)
    assert (upper != lower).any()  # in the last digits
    np.testing.assert_allclose(upper, lower, rtol=1e-12)
    source.energies_all(v[None], found, 2)
    np.testing.assert_array_equal(found, upper)
    start = time.monotonic()
    while source.is_deferred and time.monotonic() < start + PATIENCE:
        source.combine_all(eta, np.zeros(N), np.empty((N, N), dtype=np.float32), 2)  # judges what is read
    assert not source.is_deferred
    source.energies_all(v[None], found, 2)
    np.testing.assert_array_equal(found, upper)
    assert source.settle() == []
    source.energies_all(v[None], found, 2)
    np.testing.assert_allclose(found, lower, rtol=1e-14)


class Mending:
    """A judge who puts another matrix in the place of one that is no kernel."""

    def __init__(self, matrices, other):
        self.given, self.tolerances, self.other = list(matrices), np.full(len(matrices), 1e-8), other

    def matrix(self, m):
        return self.given[m]

    def judge(self, m, plain):
        if not plain:
            self.given[m] = self.other
        return plain


def test_energies_are_those_of_what_a_matrix_was_mended_to(rng):
    n = 200
    right, wrong = np.eye(n), np.eye(n)
    wrong[7, 3] = wrong[3, 7] = 2.0  # a minor below zero
    source = UncheckedSource(Mending([right, wrong], 3.0 * right))
    v, found = rng.normal(size=n), np.empty(2)
    source.defer(2)
    source.combine_all(np.ones(2), np.zeros(n), np.empty((n, n), dtype=np.float32), 2)
    source.energies_all(v[None], found, 2)
    np.testing.assert_allclose(found, [0.5 * v @ v, 1.5 * v @ v])
