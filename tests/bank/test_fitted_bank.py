"""A fitted bank: Gram matrices one at a time, new rows with training statistics, nothing computed twice."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from kernelweave import _core
from kernelweave.bank import Entry, KernelBank, Views
from kernelweave.kernels import (
    Centering,
    ChiSquared,
    FromFunction,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    UnitDiagonal,
    UnitTrace,
    UnitVariance,
)
from kernelweave.kernels import pairs as pairs_module

rng = np.random.default_rng(0)
TRAIN, NEW = rng.normal(1.0, 1.0, (20, 5)), rng.normal(-1.0, 2.0, (7, 5))


def mixed_bank():
    return KernelBank(
        [
            Gaussian(scale=2.0),
            Entry(Laplacian(), scaling=UnitVariance()),
            Entry(Linear(), columns=[0, 1], scaling=(Centering(), UnitTrace())),
            Entry(Polynomial(), scaling=UnitDiagonal()),
            Entry(Polynomial(), scaling=(Centering(), UnitDiagonal())),
            Entry(Gaussian(width=2.0), columns=3),
        ]
    )


def test_new_rows_of_centred_unit_trace_features_use_training_means_and_trace():
    fitted = mixed_bank().fit(TRAIN)
    mean = TRAIN[:, :2].mean(axis=0)
    train, new = TRAIN[:, :2] - mean, NEW[:, :2] - mean
    size = (train**2).sum()
    K = list(fitted.grams())[2]
    np.testing.assert_allclose(K, train @ train.T / size, atol=1e-12)
    ((m, rows),) = fitted.cross(NEW, which=np.array([2]))
    assert m == 2
    np.testing.assert_allclose(rows, new @ train.T / size, atol=1e-12)


def test_the_gamma_of_a_kernel_is_learnt_from_training_rows_only():
    fitted = KernelBank([Gaussian()]).fit(TRAIN)
    squared = ((TRAIN[:, None] - TRAIN[None]) ** 2).sum(axis=2)
    gamma = 20 * 19 / squared.sum()
    ((_, rows),) = fitted.cross(NEW)
    np.testing.assert_allclose(rows, np.exp(-gamma * ((NEW[:, None] - TRAIN[None]) ** 2).sum(axis=2)))


def test_training_samples_as_new_rows_give_the_gram_matrices():
    fitted = mixed_bank().fit(TRAIN)
    Ks = list(fitted.grams())
    for m, rows in fitted.cross(TRAIN):
        np.testing.assert_allclose(rows, Ks[m], atol=1e-12)


def test_gram_matrices_are_exactly_symmetric_and_the_same_every_time():
    fitted = mixed_bank().fit(TRAIN)
    for K, again in zip(list(fitted.grams()), fitted.grams(), strict=True):
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_array_equal(K, again)
        assert K.dtype == np.float64


def test_gram_matrices_of_sparse_rows_are_exactly_symmetric_too():
    wide = sparse.random_array((40, 60), density=0.3, rng=np.random.default_rng(0), format="csr")
    for K in KernelBank([Gaussian(), Laplacian(), Polynomial(), Linear()]).fit(wide).grams():
        np.testing.assert_array_equal(K, K.T)


def test_gram_matrices_of_functions_that_round_are_exactly_symmetric_too():
    def cosine(X, Z):
        return (X @ Z.T) / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(Z, axis=1)

    (K,) = KernelBank([FromFunction(cosine)]).fit(TRAIN).grams()
    np.testing.assert_array_equal(K, K.T)


def test_new_rows_come_out_the_same_before_and_after_the_gram_matrices():
    first, second = mixed_bank().fit(TRAIN), mixed_bank().fit(TRAIN)
    list(second.grams())
    for (m, rows), (k, others) in zip(first.cross(NEW), second.cross(NEW), strict=True):
        assert m == k
        np.testing.assert_array_equal(rows, others)


def test_a_new_row_does_not_depend_on_its_companions():
    fitted = mixed_bank().fit(TRAIN)
    together = dict(fitted.cross(NEW))
    for m, rows in fitted.cross(NEW[2:3]):
        np.testing.assert_allclose(rows[0], together[m][2], rtol=1e-12)


def test_between_new_samples_and_the_training_samples_is_cross():
    fitted = mixed_bank().fit(TRAIN)
    full = dict(fitted.cross(NEW))
    for m, K in fitted.between(NEW, TRAIN):
        np.testing.assert_allclose(K, full[m], atol=1e-12)


def test_between_two_sets_of_new_samples_uses_training_means_and_trace():
    mean = TRAIN[:, :2].mean(axis=0)
    train, new = TRAIN[:, :2] - mean, NEW[:, :2] - mean
    ((m, K),) = mixed_bank().fit(TRAIN).between(NEW[:4], NEW[4:], which=np.array([2]))
    assert m == 2
    np.testing.assert_allclose(K, new[:4] @ new[4:].T / (train**2).sum(), atol=1e-12)


def test_a_precomputed_view_has_no_values_between_new_samples():
    views = Views({"k": TRAIN @ TRAIN.T})
    fitted = KernelBank([("k", Precomputed())]).fit(views)
    with pytest.raises(ValueError, match="known against the training samples only"):
        list(fitted.between(views, views))


def test_only_the_kernels_asked_for_are_computed():
    calls = []

    def counted(X, Z):
        calls.append(len(X))
        return X @ Z.T

    fitted = KernelBank([FromFunction(counted), Linear(), Gaussian()]).fit(TRAIN)
    assert calls == []
    assert sorted(m for m, _ in fitted.cross(NEW, which=np.array([2, 1]))) == [1, 2]
    assert set(calls) <= {len(TRAIN)}  # that it is a kernel is checked on the training samples
    calls.clear()
    list(fitted.cross(NEW, which=[0]))
    assert calls == [7]


def test_rows_against_some_training_samples_are_columns_of_the_full_rows():
    columns = np.array([11, 3, 4])
    fitted = mixed_bank().fit(TRAIN)
    full = dict(fitted.cross(NEW))
    for m, rows in fitted.cross(NEW, columns=columns):
        np.testing.assert_allclose(rows, full[m][:, columns], rtol=1e-12, atol=1e-15)


def test_support_columns_save_kernel_evaluations_where_no_scaling_needs_the_whole_row():
    seen = []

    def counted(X, Z):
        seen.append((len(X), len(Z)))
        return X @ Z.T

    fitted = KernelBank([FromFunction(counted), Entry(FromFunction(counted), scaling=Centering())]).fit(TRAIN)
    list(fitted.grams())
    seen.clear()
    list(fitted.cross(NEW, columns=np.array([0, 5])))
    assert sorted(seen) == [(7, 2), (7, 2), (7, 20)]  # all training samples only where their mean is needed


def test_support_columns_work_for_precomputed_views():
    views = Views({"k": TRAIN @ TRAIN.T})
    fitted = KernelBank([("k", Precomputed()), Entry(Precomputed(), view="k", scaling=Centering())]).fit(
        views
    )
    new, columns = Views({"k": NEW @ TRAIN.T}), np.array([7, 2])
    full = dict(fitted.cross(new))
    for m, rows in fitted.cross(new, columns=columns):
        np.testing.assert_allclose(rows, full[m][:, columns])


def counting(monkeypatch, metric):
    calls, original = [], pairs_module.METRICS[metric]

    def counted(X, Z):
        calls.append((X.shape[0], None if Z is None else Z.shape[0]))
        return original(X, Z)

    monkeypatch.setitem(pairs_module.METRICS, metric, counted)
    return calls


def test_the_distances_of_a_view_are_computed_once_for_all_its_kernels(monkeypatch):
    calls, original = [], _core.kernel_values

    def counted(left, right, *rest):
        calls.append((len(left), len(right)))
        original(left, right, *rest)

    monkeypatch.setattr(_core, "kernel_values", counted)
    fitted = KernelBank.distances(views={"a": [0, 1], "b": [2, 3, 4]}).fit(TRAIN)
    for source in fitted.sources():
        list(source.block(slice(3, 9), slice(0, 9)))
    assert calls == [(6, 9)] * 2
    calls.clear()
    list(fitted.cross(NEW))
    assert calls == [(7, 20)] * 2


def test_kernels_that_are_not_compiled_share_the_distances_of_their_view_too(monkeypatch):
    calls = counting(monkeypatch, "chi2")
    fitted = KernelBank([ChiSquared(scale=s) for s in (0.5, 1.0, 2.0)]).fit(np.abs(TRAIN))
    (source,) = fitted.sources()
    assert calls == [(20, None)]  # what their mean is learnt from
    calls.clear()
    list(source.block(slice(3, 9), slice(0, 9)))
    list(fitted.cross(np.abs(NEW)))
    assert calls == [(6, 9), (7, 20)]


def test_kernels_between_other_kernels_do_not_receive_a_neighbours_distances():
    bank = KernelBank([Gaussian(), Linear(), Polynomial(), Gaussian(width=1.0), Entry(Gaussian(), columns=0)])
    alone = [next(KernelBank([entry]).fit(TRAIN).grams()) for entry in bank.entries]
    for K, expected in zip(bank.fit(TRAIN).grams(), alone, strict=True):
        np.testing.assert_array_equal(K, expected)


def test_a_scaling_is_learnt_on_the_first_pass_and_never_again():
    fits = []

    class Counted(UnitTrace):
        def learn(self, gram):
            fits.append(gram.diagonal.size)
            return super().learn(gram)

    fitted = KernelBank([Linear(), Gaussian()], scaling=Counted()).fit(TRAIN)
    assert fits == []
    list(fitted.grams())
    list(fitted.grams())
    list(fitted.cross(NEW))
    assert fits == [20, 20]


def test_a_fitted_bank_survives_pickle_with_what_it_learnt():
    fitted = mixed_bank().fit(TRAIN)
    list(fitted.grams())
    copied = pickle.loads(pickle.dumps(fitted))
    assert copied.names == fitted.names
    assert copied.n_samples == len(TRAIN)
    for (_, rows), (_, others) in zip(fitted.cross(NEW), copied.cross(NEW), strict=True):
        np.testing.assert_array_equal(rows, others)


def test_changing_the_users_array_after_fit_changes_nothing_that_was_selected():
    X = TRAIN.copy()
    fitted = KernelBank([Entry(Linear(), columns=[0, 1])]).fit(X)
    X[:] = 0.0
    np.testing.assert_allclose(next(fitted.grams()), TRAIN[:, :2] @ TRAIN[:, :2].T)


def test_sparse_tables_give_what_dense_tables_give():
    X = TRAIN * (TRAIN > 1.0)
    bank = KernelBank([Linear(), Polynomial(), Gaussian(), Laplacian(), Entry(Gaussian(), columns=[0, 2])])
    dense, light = bank.fit(X), bank.fit(sparse.csr_matrix(X))
    for K, L in zip(dense.grams(), light.grams(), strict=True):
        np.testing.assert_allclose(K, L, rtol=1e-9)
    for new in (NEW, sparse.csc_matrix(NEW)):
        for (_, K), (_, L) in zip(dense.cross(new), light.cross(new), strict=True):
            np.testing.assert_allclose(K, L, rtol=1e-9)


def test_sparse_new_rows_are_read_by_kernels_that_were_trained_on_dense_ones():
    fitted = KernelBank([ChiSquared(), FromFunction(lambda X, Z: X @ Z.T)]).fit(np.abs(TRAIN))
    for (_, K), (_, L) in zip(
        fitted.cross(np.abs(NEW)), fitted.cross(sparse.csr_array(np.abs(NEW))), strict=True
    ):
        np.testing.assert_array_equal(K, L)


def test_named_columns_are_found_by_name_in_new_frames():
    frame = pd.DataFrame(TRAIN, columns=list("abcde"))
    fitted = KernelBank([Entry(Linear(), columns=["b", "d"])]).fit(frame)
    expected = NEW[:, [1, 3]] @ TRAIN[:, [1, 3]].T
    shuffled = pd.DataFrame(NEW, columns=list("abcde"))[["d", "a", "b"]]
    for new in (shuffled, pd.DataFrame(NEW, columns=list("abcde")), NEW):
        ((_, rows),) = fitted.cross(new)
        np.testing.assert_allclose(rows, expected)


def test_prediction_needs_only_the_views_of_the_kernels_asked_for():
    fitted = KernelBank.per_view(Linear(), scaling=None).fit(Views({"a": TRAIN, "b": TRAIN[:, :2]}))
    ((m, rows),) = fitted.cross(Views({"b": NEW[:, :2]}), which=np.array([1]))
    assert m == 1
    np.testing.assert_allclose(rows, NEW[:, :2] @ TRAIN[:, :2].T)


@pytest.mark.parametrize("kind", ["zero column", "constant column", "duplicates"])
def test_odd_but_legal_data_give_finite_matrices(kind):
    X = TRAIN.copy()
    X[:, 0] = {"zero column": 0.0, "constant column": 0.3, "duplicates": X[:, 1]}[kind]
    for bank in (KernelBank.per_feature(scaling=(Centering(), UnitTrace())), KernelBank.distances()):
        fitted = bank.fit(X)
        for K in fitted.grams():
            assert np.isfinite(K).all()
        for _, rows in fitted.cross(NEW):
            assert np.isfinite(rows).all()
