"""A bank of some kernels is the other bank without the rest."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import KernelBank, MKLClassifier, Views
from kernelweave.bank.subset import ChosenBank, ConcatenatedBank
from kernelweave.geometry import Point
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


def test_kernels_may_be_named_and_those_that_are_not_there_are_passed_over():
    table = pd.DataFrame({"a": X[:, 0], "kind": ["u", "v"] * 6})
    bank = KernelBank.by_type(scales=[1.0])
    names = ["kind·linear", "a·gaussian(scale=1)"]
    assert ChosenBank(bank, names).fit(table).names == tuple(names)
    constant = table.assign(kind="u")  # in a fold, perhaps
    with_kind, alone = ChosenBank(bank, ["kind·linear", "x·gaussian(scale=1)"]), bank.fit(constant)
    assert with_kind.fit(constant).names == ("x·gaussian(scale=1)",)
    assert "x·gaussian(scale=1)" in alone.names
    with pytest.raises(ValueError, match="none of the kernels kind·linear"):
        ChosenBank(bank, ["kind·linear"]).fit(constant)


def test_one_kernel_of_all_columns_encodes_each_view_in_its_own_way():
    bank = KernelBank.per_view([Gaussian()], views={"a": [0, 1], "b": [2, 3], "c": [1]}, transform="by_type")
    (K,) = ConcatenatedBank(bank, Linear()).fit(7.0 + 3.0 * X).grams()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(K, Z @ Z.T, atol=1e-10)


def test_samples_that_lack_the_chosen_view_sit_at_its_mean():
    gaps = X.copy()
    gaps[:3, 2:] = np.nan
    y = X[:, 0] > 0
    last = WHOLE.fit(X).names[-1]
    alone = MKLClassifier(ChosenBank(WHOLE, [last])).fit(gaps, y)
    among = MKLClassifier(WHOLE, geometry=Point([0.0] * (len(WHOLE.fit(X)) - 1) + [1.0])).fit(gaps, y)
    np.testing.assert_allclose(alone.decision_function(gaps), among.decision_function(gaps), atol=1e-3)
    assert np.unique(alone.decision_function(gaps)[:3]).size == 1
    complete = MKLClassifier(ChosenBank(WHOLE, [last])).fit(X, y)
    whole = MKLClassifier(WHOLE, geometry=Point([0.0] * (len(WHOLE.fit(X)) - 1) + [1.0])).fit(X, y)
    np.testing.assert_allclose(complete.decision_function(gaps), whole.decision_function(gaps), atol=1e-3)
