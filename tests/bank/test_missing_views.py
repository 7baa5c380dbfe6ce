"""Samples without some views: kernels and statistics of those who have them, zero for the others."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave import KernelBank, MKLClassifier, Views
from kernelweave.bank import PrecomputedBank
from kernelweave.bank.missing_views import accepting_missing_views, fit_with_missing_views
from kernelweave.gram import PackedGrams, StreamedGrams
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
    fitted = fit_with_missing_views(bank, Views({"a": A, "b": B}))
    here, expected = alone(B, bank)
    grams = list(fitted.grams())
    assert fitted.names == bank.fit(Views({"a": A, "b": np.nan_to_num(B)})).names
    for K, own in zip(grams[2:], expected, strict=True):
        np.testing.assert_allclose(K[np.ix_(here, here)], centred(own), atol=1e-14)
        assert not K[~here].any()
        assert not K[:, ~here].any()
    np.testing.assert_array_equal(fitted.available, np.column_stack([here | True, here | True, here, here]))


@pytest.mark.parametrize("holder", ["streamed", "packed"])
def test_sources_make_the_same_matrices_in_blocks(rng, data, bank, holder):
    fitted = fit_with_missing_views(bank, Views({"a": data[0], "b": data[1]}))
    if holder == "streamed":
        stack = StreamedGrams(fitted.sources(), 4, 20)
    else:
        stack = PackedGrams.from_sources(fitted.sources(), 4, 20, dtype="float64", centre=False)
    eta, v = rng.random(4), rng.normal(size=20)
    expected = list(fitted.grams())
    assert not fitted.holds_matrices
    np.testing.assert_allclose(stack.combine(eta), np.tensordot(eta, expected, axes=1), atol=1e-12)
    np.testing.assert_allclose(stack.matvecs(v), [K @ v for K in expected], atol=1e-12)
    np.testing.assert_allclose(stack.energies(v), [0.5 * v @ K @ v for K in expected], atol=1e-12)
    assert (stack.sizes >= [np.abs(np.diagonal(K)).max() * (1.0 - 1e-12) for K in expected]).all()


@pytest.mark.parametrize("unit_trace", [False, True])
def test_kernels_can_be_given_a_trace_of_one_where_they_are_centred(data, unit_trace):
    plain = KernelBank.per_view([Gaussian(width=1.0), Linear()])
    fitted = fit_with_missing_views(plain, Views({"a": data[0], "b": data[1]}))
    again = fitted.centred(unit_trace=unit_trace, n_threads=2)
    for K, before in zip(again.grams(), fitted.grams(), strict=True):
        expected = before / np.trace(before) if unit_trace else before
        np.testing.assert_allclose(K, expected, atol=1e-12)


def test_new_rows_without_a_view_are_the_mean_of_those_with_it(rng, data, bank):
    A, B = data
    fitted = fit_with_missing_views(bank, Views({"a": A, "b": B}))
    X = Views({"a": rng.normal(size=(4, 3)), "b": rng.normal(size=(4, 2))})
    gone = Views({"a": X["a"], "b": np.where([[False], [True], [False], [True]], np.nan, X["b"])})
    whole = dict(fitted.cross(X))
    for m, K in fitted.cross(gone, columns=np.array([0, 2, 7])):
        expected = whole[m][:, [0, 2, 7]].copy()
        if m >= 2:
            expected[[1, 3]] = 0.0
        np.testing.assert_allclose(K, expected, atol=1e-14)
    np.testing.assert_array_equal(fitted.available_in(gone), [[1, 1, 1, 1], [1, 1, 0, 0]] * 2)


@pytest.mark.parametrize("training_gaps", [True, False])
@pytest.mark.parametrize("gaps", [[], [1, 3], [0, 1, 2, 3]])
def test_products_of_new_rows_are_those_of_their_kernels_whoever_lacks_a_view(
    rng, data, bank, training_gaps, gaps
):
    A, B = data[0], data[1] if training_gaps else np.nan_to_num(data[1])
    fitted = accepting_missing_views(fit_with_missing_views(bank, Views({"a": A, "b": B})))
    new = {"a": rng.normal(size=(4, 3)), "b": rng.normal(size=(4, 2))}
    new["b"][gaps] = np.nan
    columns, which, eta = np.array([0, 2, 7, 11]), np.array([3, 0, 2]), np.array([0.5, 0.0, 2.0, 1.0])
    cross = dict(fitted.cross(Views(new), columns=columns))
    K = np.array([cross[m] for m in which])
    coef, own = rng.normal(size=(4, 2)), rng.normal(size=(3, 4, 2))
    for V in (coef, coef - coef.mean(axis=0), own):
        np.testing.assert_allclose(fitted.products(Views(new), columns, V, which), K @ V, atol=1e-12)
    expected = sum(eta[m] * cross[m] for m in range(4)) @ coef
    np.testing.assert_allclose(fitted.weighted_products(Views(new), columns, coef, eta), expected, atol=1e-12)


def test_training_rows_cross_like_their_gram(data, bank):
    X = Views({"a": data[0], "b": data[1]})
    fitted = fit_with_missing_views(bank, X)
    for (m, K), G in zip(sorted(fitted.cross(X)), fitted.grams(), strict=True):
        np.testing.assert_allclose(K, G, atol=1e-13, err_msg=str(m))
    for m, K in fitted.between(X, X[:7]):
        np.testing.assert_allclose(K, list(fitted.grams())[m][:, :7], atol=1e-13)


def test_where_training_samples_have_all_views_missing_ones_of_new_samples_are_means_of_rows(data, bank):
    A, B = data[0], np.nan_to_num(data[1])
    X = Views({"a": A, "b": B})
    plain = fit_with_missing_views(bank, X)
    assert type(plain) is type(bank.fit(X))
    fitted, grams = accepting_missing_views(plain), list(plain.grams())
    assert fitted.names == plain.names
    for K, G in zip(fitted.grams(), bank.fit(X).grams(), strict=True):
        np.testing.assert_array_equal(K, G)
    new = Views({"a": A[:3], "b": np.full((3, 2), np.nan)})
    for m, K in fitted.cross(new):
        expected = grams[m][:3] if m < 2 else np.tile(grams[m].mean(axis=0), (3, 1))
        np.testing.assert_allclose(K, expected, atol=1e-14)
    some = Views({"a": A[:2], "b": np.where([[True], [False]], np.nan, B[:2])})
    for m, K in fitted.cross(some, columns=np.array([5, 0])):
        expected = grams[m][:2] if m < 2 else np.array([grams[m].mean(axis=0), grams[m][1]])
        np.testing.assert_allclose(K, expected[:, [5, 0]], atol=1e-14)
    with pytest.raises(ValueError, match="known only if training samples had some too"):
        list(fitted.between(new, new))


def test_given_matrices_that_all_samples_have_stay_the_users_own(rng):
    Ks = [A @ A.T for A in rng.normal(size=(2, 9, 4))]
    fitted = accepting_missing_views(fit_with_missing_views(PrecomputedBank(), Ks))
    for held, given in zip(fitted.given_matrices(), Ks, strict=True):
        assert np.shares_memory(held, given)
    light = accepting_missing_views(fit_with_missing_views(PrecomputedBank(), Ks).for_prediction())
    rows = [Ks[0][:3], np.full((3, 9), np.nan)]
    with pytest.raises(ValueError, match="do not know the mean of the samples"):
        list(light.cross(rows))


def test_a_sample_lacks_a_given_kernel_with_all_its_entries_or_with_none(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    whole, gap = X @ X.T, X @ X.T
    gap[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"Kernel 1 contains nan at \[0, 0\] but not at \[0, 1\]"):
        MKLClassifier("precomputed").fit([whole, gap], y)
    gap[0], gap[:, 0] = np.nan, np.nan
    assert MKLClassifier("precomputed").fit([whole, gap], y).kernel_weights_.shape == (2,)


@pytest.mark.parametrize("make", [pd.DataFrame, lambda t: pl.DataFrame(t, schema=list("uvwxy")), np.asarray])
def test_a_table_may_have_gaps_in_declared_views(data, make):
    table = np.hstack(data)
    bank = KernelBank.per_view(views={"a": [0, 1, 2], "b": [3, 4]})
    fitted = fit_with_missing_views(bank, make(table))
    assert (~fitted.available).sum(axis=0).tolist() == [0, 3]


def test_single_columns_are_views_of_their_own_for_kernels_on_them(rng):
    X = rng.normal(size=(10, 2))
    X[3, 1] = np.nan
    bank = KernelBank.per_feature(widths=[1.0], degrees=[])
    fitted = fit_with_missing_views(bank, X)
    # The column by itself is missing there, and filled beside the other.
    assert fitted.available[3].tolist() == [True, True, False]


def test_precomputed_kernels_may_have_rows_and_columns_of_nan(rng):
    Ks = [A @ A.T for A in rng.normal(size=(2, 9, 4))]
    gone = Ks[1].copy()
    gone[[2, 4]] = gone[:, [2, 4]] = np.nan
    fitted = fit_with_missing_views(PrecomputedBank(), [Ks[0], gone])
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
    bank = KernelBank.per_view(kernel, scaling=None)
    fitted = fit_with_missing_views(bank, Views({"d": gone, "e": square}))
    here = np.setdiff1d(np.arange(8), [3])
    (own,) = bank.fit(Views({"d": square[np.ix_(here, here)]})).grams()
    np.testing.assert_allclose(next(fitted.grams())[np.ix_(here, here)], centred(own), atol=1e-13)


def test_a_sample_without_any_view_is_named(data, bank):
    A, B = data
    A[5] = np.nan
    with pytest.raises(ValueError, match="Sample 5 has no view at all"):
        fit_with_missing_views(bank, Views({"a": A, "b": B}))


def test_a_view_nobody_has_is_named(data, bank):
    with pytest.raises(ValueError, match="0 samples only"):
        fit_with_missing_views(bank, Views({"a": data[0], "b": np.full((20, 2), np.nan)}))
