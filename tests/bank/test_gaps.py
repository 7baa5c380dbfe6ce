"""Samples without some views: kernels and statistics of those who have them, zero for the others."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from kernelweave import KernelBank, Views
from kernelweave.bank import PrecomputedBank
from kernelweave.bank.gap_fits import fit_with_gaps
from kernelweave.gram import LazyGrams, PackedGrams
from kernelweave.kernels import ExpDistance, Gaussian, Linear, Precomputed, UnitTrace


def centred(K):
    P = np.eye(len(K)) - 1.0 / len(K)
    return P @ K @ P


@pytest.fixture
def data(rng):
    A, B = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    B[[2, 5, 11]] = np.nan
    return A, B


@pytest.fixture
def bank():
    return KernelBank.per_view([Gaussian(), Linear()], scaling=UnitTrace())


def alone(table, bank, name="b"):
    """The bank fitted to one view and the rows that have it, by the ordinary route."""
    here = ~np.isnan(table).any(axis=1)
    return here, list(bank.fit(Views({name: table[here]})).grams())


def test_kernels_and_their_statistics_are_those_of_the_samples_that_have_the_view(data, bank):
    A, B = data
    fitted = fit_with_gaps(bank, Views({"a": A, "b": B})).centred()
    here, expected = alone(B, bank)
    grams = list(fitted.grams())
    assert fitted.names == bank.fit(Views({"a": A, "b": np.nan_to_num(B)})).names
    for K, own in zip(grams[2:], expected, strict=True):
        np.testing.assert_allclose(K[np.ix_(here, here)], centred(own), atol=1e-14)
        assert not K[~here].any()
        assert not K[:, ~here].any()
    np.testing.assert_array_equal(fitted.available, np.column_stack([here | True, here | True, here, here]))


@pytest.mark.parametrize("holder", ["lazy", "packed"])
def test_sources_make_the_same_matrices_in_blocks(rng, data, bank, holder, monkeypatch):
    monkeypatch.setattr("kernelweave.gram.source.ENTRIES", 60)
    fitted = fit_with_gaps(bank, Views({"a": data[0], "b": data[1]})).centred()
    make = (
        LazyGrams if holder == "lazy" else lambda s, M, n: PackedGrams.pack(s, M, n, "float64", centre=False)
    )
    stack = make(fitted.sources(), 4, 20)
    eta, v = rng.random(4), rng.normal(size=20)
    expected = list(fitted.grams())
    np.testing.assert_allclose(
        stack.combine(eta), sum(w * K for w, K in zip(eta, expected, strict=True)), atol=1e-12
    )
    np.testing.assert_allclose(stack.images(v), [K @ v for K in expected], atol=1e-12)
    np.testing.assert_allclose(stack.sizes, [np.abs(np.diagonal(K)).max() for K in expected])


def test_new_rows_without_a_view_are_the_mean_of_those_with_it(rng, data, bank):
    A, B = data
    fitted = fit_with_gaps(bank, Views({"a": A, "b": B})).centred()
    X = Views({"a": rng.normal(size=(4, 3)), "b": rng.normal(size=(4, 2))})
    gone = Views({"a": X["a"], "b": np.where([[False], [True], [False], [True]], np.nan, X["b"])})
    whole = dict(fitted.cross(X))
    for m, K in fitted.cross(gone, columns=np.array([0, 2, 7])):
        expected = whole[m][:, [0, 2, 7]].copy()
        if m >= 2:
            expected[[1, 3]] = 0.0
        np.testing.assert_allclose(K, expected, atol=1e-14)
    np.testing.assert_array_equal(fitted.sees(gone), [[1, 1, 1, 1], [1, 1, 0, 0]] * 2)


def test_training_rows_cross_like_their_gram(data, bank):
    X = Views({"a": data[0], "b": data[1]})
    fitted = fit_with_gaps(bank, X).centred()
    for (m, K), G in zip(sorted(fitted.cross(X)), fitted.grams(), strict=True):
        np.testing.assert_allclose(K, G, atol=1e-13, err_msg=str(m))
    for m, K in fitted.between(X, X[:7]):
        np.testing.assert_allclose(K, list(fitted.grams())[m][:, :7], atol=1e-13)


def test_with_whole_training_samples_nothing_changes_and_gaps_are_means_of_rows(rng, data, bank):
    A, B = data[0], np.nan_to_num(data[1])
    X = Views({"a": A, "b": B})
    fitted, plain = fit_with_gaps(bank, X), bank.fit(X)
    assert not fitted.has_gaps
    for K, G in zip(fitted.grams(), plain.grams(), strict=True):
        np.testing.assert_array_equal(K, G)
    new = Views({"a": A[:3], "b": np.full((3, 2), np.nan)})
    grams = list(plain.grams())
    for m, K in fitted.cross(new):
        expected = grams[m][:3] if m < 2 else np.tile(grams[m].mean(axis=0), (3, 1))
        np.testing.assert_allclose(K, expected, atol=1e-14)


@pytest.mark.parametrize("make", [pd.DataFrame, lambda t: pl.DataFrame(t, schema=list("uvwxy")), np.asarray])
def test_a_table_may_have_gaps_in_declared_views(data, make):
    table = np.hstack(data)
    bank = KernelBank.per_view(views={"a": [0, 1, 2], "b": [3, 4]})
    fitted = fit_with_gaps(bank, make(table))
    assert (~fitted.available).sum(axis=0).tolist() == [0, 3]


def test_single_columns_are_views_of_their_own_for_kernels_on_them(rng):
    X = rng.normal(size=(10, 2))
    X[3, 1] = np.nan
    bank = KernelBank.per_feature(widths=[1.0], degrees=[])
    with pytest.raises(ValueError, match="Column 1 of view 'x' contains NaN in row 3"):
        fit_with_gaps(bank, X)


def test_rows_may_be_absent_from_a_view(rng):
    A, B = rng.normal(size=(6, 2)), rng.normal(size=(4, 3))
    for table in (B, pd.DataFrame(B, columns=list("xyz")), pl.DataFrame(B, schema=list("xyz"))):
        views = Views({"a": A, "b": table}, rows={"b": [0, 2, 3, 5]})
        assert repr(views) == "Views(a: 6 x 2, b: 6 x 3)"
        np.testing.assert_array_equal(np.isnan(np.asarray(views["b"])).all(axis=1), [0, 1, 0, 0, 1, 0])
        np.testing.assert_array_equal(np.asarray(views["b"])[[0, 2, 3, 5]], B)
    longer = Views({"a": A[:3], "b": B}, rows={"a": [0, 1, 2], "b": np.array([1, 2, 4, 6])})
    assert longer.shape == (7, 5)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"c": [0]}, "no view 'c'"),
        ({"b": [0, 1]}, "4 different places"),
        ({"b": [0, 1, 1, 2]}, "4 different places"),
        ({"b": [0, 1, 2, -1]}, "from 0 on"),
        ({"b": [0.0, 1.0, 2.0, 3.0]}, "4 different places"),
    ],
)
def test_wrong_places_are_named(rows, message):
    with pytest.raises(ValueError, match=message):
        Views({"a": np.ones((6, 2)), "b": np.ones((4, 3))}, rows=rows)


def test_sparse_views_cannot_lack_rows():
    with pytest.raises(TypeError, match="sparse"):
        Views({"b": sparse.csr_array(np.eye(3))}, rows={"b": [0, 2, 3]})


def test_precomputed_kernels_may_have_rows_and_columns_of_nan(rng):
    Ks = [A @ A.T for A in rng.normal(size=(2, 9, 4))]
    gone = Ks[1].copy()
    gone[[2, 4]] = gone[:, [2, 4]] = np.nan
    fitted = fit_with_gaps(PrecomputedBank(), [Ks[0], gone]).centred()
    here = np.setdiff1d(np.arange(9), [2, 4])
    own, second = (centred(K) for K in (Ks[0], Ks[1][np.ix_(here, here)]))
    grams = list(fitted.grams())
    np.testing.assert_allclose(grams[0], own, atol=1e-13)
    np.testing.assert_allclose(grams[1][np.ix_(here, here)], second, atol=1e-13)
    light = fitted.for_prediction()
    rows = [Ks[0][:3], gone[:3]]
    for m, K in light.cross(rows):
        np.testing.assert_allclose(K, grams[m][:3], atol=1e-13)


@pytest.mark.parametrize("kernel", [Precomputed(), ExpDistance()], ids=repr)
def test_square_views_may_have_gaps_too(rng, kernel):
    X = rng.normal(size=(8, 2))
    D = np.linalg.norm(X[:, None] - X, axis=2)
    square = X @ X.T if isinstance(kernel, Precomputed) else D
    gone = square.copy()
    gone[3] = gone[:, 3] = np.nan
    fitted = fit_with_gaps(KernelBank.per_view(kernel, scaling=None), Views({"d": gone, "e": square}))
    here = np.setdiff1d(np.arange(8), [3])
    bank = KernelBank.per_view(kernel, scaling=None)
    (own,) = bank.fit(Views({"d": square[np.ix_(here, here)]})).grams()
    np.testing.assert_allclose(next(fitted.grams())[np.ix_(here, here)], own, atol=1e-13)


def test_a_sample_without_any_view_is_named(data, bank):
    A, B = data
    A[5] = np.nan
    with pytest.raises(ValueError, match="Sample 5 has no view at all"):
        fit_with_gaps(bank, Views({"a": A, "b": B}))


def test_a_view_nobody_has_is_named(data, bank):
    with pytest.raises(ValueError, match="0 samples only"):
        fit_with_gaps(bank, Views({"a": data[0], "b": np.full((20, 2), np.nan)}))
