"""Which kernels a bank holds, and what they are called."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector

from kernelweave.bank import Entry, KernelBank, Views
from kernelweave.kernels import Centering, Gaussian, Linear, Polynomial, UnitMean, UnitTrace

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 8))
FRAME = pd.DataFrame(X[:, :4], columns=["age", "bmi", "bp", "glu"])
VIEWS = Views({"rna": X[:, :3], "mri": FRAME})


def test_the_bank_of_simple_mkl_has_117_kernels_on_8_variables():
    fitted = KernelBank.per_feature().fit(X)
    assert len(fitted) == 117
    assert len(set(fitted.names)) == 117
    assert fitted.names[:2] == ("x·gaussian(width=0.125)", "x·gaussian(width=0.25)")
    assert fitted.names[10:14] == (
        "x·polynomial(degree=1)",
        "x·polynomial(degree=2)",
        "x·polynomial(degree=3)",
        "x0·gaussian(width=0.125)",
    )
    assert fitted.names[-1] == "x7·polynomial(degree=3)"
    assert list(dict.fromkeys(fitted.view_names)) == ["x", *(f"x{j}" for j in range(8))]


def test_the_per_feature_kernels_look_at_what_their_names_say():
    fitted = KernelBank.per_feature(widths=[0.5], degrees=[2], scaling=None).fit(FRAME)
    Ks = dict(zip(fitted.names, fitted.grams(), strict=True))
    bmi = FRAME["bmi"].to_numpy()
    difference = bmi[:, None] - bmi[None]
    np.testing.assert_allclose(Ks["bmi·gaussian(width=0.5)"], np.exp(-(difference**2) / 0.5))
    np.testing.assert_allclose(Ks["bmi·polynomial(degree=2)"], (np.outer(bmi, bmi) + 1.0) ** 2)
    np.testing.assert_allclose(Ks["x·polynomial(degree=2)"], (X[:, :4] @ X[:, :4].T + 1.0) ** 2)
    assert len(Ks) == 10


def test_the_per_feature_bank_gives_every_kernel_a_mean_diagonal_of_one():
    for K in KernelBank.per_feature().fit(X).grams():
        assert np.diagonal(K).mean() == pytest.approx(1.0)


def test_per_feature_on_views_takes_each_column_of_each_view():
    fitted = KernelBank.per_feature(widths=[1.0], degrees=()).fit(VIEWS)
    assert fitted.view_names == ("x", "rna.x0", "rna.x1", "rna.x2", "mri.age", "mri.bmi", "mri.bp", "mri.glu")
    whole = next(fitted.grams())
    both = np.hstack([X[:, :3], X[:, :4]])
    D = ((both[:, None] - both[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(whole, np.exp(-D / 2.0))


def test_per_view_puts_each_kernel_on_each_view():
    assert KernelBank.per_view().fit(VIEWS).names == ("rna·gaussian(scale=1)", "mri·gaussian(scale=1)")
    bank = KernelBank.per_view([Linear(), Polynomial()], views={"a": ["age", "bmi"], "b": slice("bp", "glu")})
    assert bank.fit(FRAME).names == (
        "a·linear",
        "a·polynomial(degree=2)",
        "b·linear",
        "b·polynomial(degree=2)",
    )
    assert KernelBank.per_view(Linear()).fit(X).names == ("x·linear",)


def test_the_distance_bank_has_four_kernels_at_five_scales_per_view():
    fitted = KernelBank.distances().fit(VIEWS)
    assert len(fitted) == 40
    assert fitted.view_names == ("rna",) * 20 + ("mri",) * 20
    families = ["gaussian", "laplacian", "inverse_square_distance", "inverse_distance"]
    scales = ["0.015625", "0.0625", "0.25", "1", "4"]  # 4^(n-1), n = -2..2
    assert list(fitted.names[:20]) == [f"rna·{family}(scale={s})" for family in families for s in scales]
    assert KernelBank.distances(scales=[2.0]).fit(X).names[0] == "x·gaussian(scale=2)"


def test_a_bank_without_entries_is_the_distance_bank():
    for data in (X, VIEWS):
        assert KernelBank().fit(data).names == KernelBank.distances().fit(data).names


def test_explicit_entries_are_kernels_pairs_or_entries():
    bank = KernelBank(
        [
            Linear(),
            ("body", Gaussian(width=0.5)),
            Entry(Linear(), columns="bmi"),
            Entry(Linear(), columns=["age", "glu"]),
            Entry(Linear(), view="body", columns=[1]),
            Entry(Linear(), columns=slice(None)),
            Entry(Gaussian(), name="mine"),
        ],
        views={"body": ["bmi", "bp"]},
    )
    fitted = bank.fit(FRAME)
    assert fitted.names == (
        "x·linear",
        "body·gaussian(width=0.5)",
        "bmi·linear",
        "age+glu·linear",
        "body.bp·linear",
        "age..glu·linear",
        "mine",
    )
    Ks = list(fitted.grams())
    np.testing.assert_allclose(Ks[3], X[:, [0, 3]] @ X[:, [0, 3]].T)
    np.testing.assert_allclose(Ks[4], np.outer(X[:, 2], X[:, 2]))
    np.testing.assert_allclose(Ks[5], X[:, :4] @ X[:, :4].T)


def test_names_do_not_depend_on_the_data():
    bank = KernelBank.distances(views={"a": [0, 1], "b": [2]})
    assert bank.fit(X).names == bank.fit(100.0 * X[:5]).names


def test_repeated_names_are_numbered():
    fitted = KernelBank([Linear(), Linear(), Entry(Linear(), name="x·linear#2"), Linear()]).fit(X)
    assert fitted.names == ("x·linear", "x·linear#3", "x·linear#2", "x·linear#4")


def test_a_column_called_x_is_told_apart_from_the_whole_table():
    fitted = KernelBank([Linear(), Entry(Linear(), columns="x")]).fit(FRAME.rename(columns={"age": "x"}))
    assert fitted.view_names == ("x", "x#2")
    assert fitted.names == ("x·linear", "x#2·linear")


def test_an_entry_keeps_its_own_scaling_and_the_others_take_the_banks():
    bank = KernelBank([Linear(), Entry(Linear(), scaling=(Centering(), UnitTrace()))], scaling=UnitMean())
    first, second = bank.fit(X).grams()
    assert np.trace(first) == pytest.approx(12.0)
    assert np.trace(second) == pytest.approx(1.0)
    np.testing.assert_allclose(second.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("selection", [["bmi", "bp"], [1, 2], slice(1, 3), make_column_selector("^b")])
def test_pandas_columns_are_taken_by_name_position_slice_and_selector(selection):
    fitted = KernelBank([("v", Linear())], views={"v": selection}).fit(FRAME)
    np.testing.assert_allclose(next(fitted.grams()), X[:, 1:3] @ X[:, 1:3].T)


def test_polars_columns_are_taken_by_name_and_only_those_have_to_be_numbers():
    frame = pl.DataFrame(X[:, :4], schema=["age", "bmi", "bp", "glu"]).with_columns(pl.lit("f").alias("sex"))
    fitted = KernelBank([("v", Linear())], views={"v": ["bmi", "bp"]}).fit(frame)
    np.testing.assert_allclose(next(fitted.grams()), X[:, 1:3] @ X[:, 1:3].T)
    ((_, rows),) = fitted.cross(frame[:3].select("sex", "bp", "age", "bmi", "glu"))
    np.testing.assert_allclose(rows, X[:3, 1:3] @ X[:, 1:3].T)


def test_pandas_integers_booleans_and_nullable_numbers_are_numbers():
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": pd.array([3, 4], dtype="Int64")})
    np.testing.assert_allclose(next(KernelBank([Linear()]).fit(frame).grams()), [[11.0, 14.0], [14.0, 20.0]])


BANKS = [
    KernelBank(),
    KernelBank([Linear(), ("v", Gaussian()), Entry(Linear(), columns=[0])], {"v": [0, 1]}, UnitTrace()),
    KernelBank.per_feature(widths=(0.5, 1.0)),
    KernelBank.per_view([Linear()], scaling=(Centering(), UnitTrace())),
    KernelBank.distances(scales=(1.0,)),
]


@pytest.mark.parametrize("bank", BANKS, ids=lambda bank: type(bank).__name__)
def test_a_bank_survives_clone_and_pickle_and_is_not_changed_by_fit(bank):
    before = repr(bank)
    copied = clone(bank)
    assert copied == bank
    assert copied is not bank
    fitted = bank.fit(X)
    list(fitted.grams())
    assert repr(bank) == before
    assert pickle.loads(pickle.dumps(bank)) == bank
    again = clone(bank).fit(X)
    for K, L in zip(fitted.grams(), again.grams(), strict=True):
        np.testing.assert_array_equal(K, L)


def test_parameters_of_nested_parts_can_be_reached():
    bank = KernelBank.per_view(Gaussian())
    assert bank.get_params()["kernels__scale"] == 1.0
    assert bank.set_params(kernels__scale=4.0).fit(X).names == ("x·gaussian(scale=4)",)
    assert Entry(Gaussian()).get_params()["kernel__width"] is None
    assert KernelBank(scaling=UnitMean()).get_params()["scaling"] == UnitMean()


def test_two_default_banks_do_not_share_a_scaling():
    assert KernelBank.per_feature().scaling is not KernelBank.per_feature().scaling
