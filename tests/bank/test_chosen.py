"""A bank of some kernels is the other bank without the rest."""

import numpy as np
import pytest

from kernelweave import KernelBank, MKLClassifier, Views
from kernelweave.bank.subset import ChosenBank
from kernelweave.kernels import Gaussian, Linear, UnitTrace

X = np.random.default_rng(0).normal(size=(12, 4))
WHOLE = KernelBank.per_view([Linear(), Gaussian()], views={"a": [0, 1], "b": [2, 3]}, scaling=UnitTrace())


@pytest.mark.parametrize("kernels", [[0], [1, 3], [3, 0], [0, 1, 2, 3]])
def test_kernels_names_and_views_are_those_of_the_whole(kernels):
    some, whole = ChosenBank(WHOLE, kernels).fit(X), WHOLE.fit(X)
    assert some.names == tuple(whole.names[m] for m in kernels)
    assert some.view_names == tuple(whole.view_names[m] for m in kernels)
    grams = list(whole.grams())
    for K, m in zip(some.grams(), kernels, strict=True):
        np.testing.assert_array_equal(K, grams[m])
    crossed = dict(whole.cross(X[:3]))
    for place, K in some.cross(X[:3]):
        np.testing.assert_array_equal(K, crossed[kernels[place]])


def test_samples_may_lack_views_and_views_may_be_tables():
    gaps = X.copy()
    gaps[:3, 2:] = np.nan
    y = X[:, 0] > 0
    assert MKLClassifier(ChosenBank(WHOLE, [0, 3])).fit(gaps, y).kernel_weights_.shape == (2,)
    tables = Views({"a": X[:, :2], "b": X[:, 2:]})
    assert ChosenBank(KernelBank.per_view(), [1]).fit(tables).view_names == ("b",)
