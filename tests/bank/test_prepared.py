"""Columns prepared in three ways, against scipy and plain numpy, and kernels that mean the same in any unit."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import norm, rankdata

from kernelweave import KernelBank, MKLClassifier, Views
from kernelweave.kernels import Gaussian, Laplacian, Linear

RANKS, UNIT = {"ranks": [Linear()]}, {"centred": [Linear()]}


def columns_of(bank, X):
    """Return the prepared training columns."""
    return bank.fit(X).training(0)


def test_ranks_are_normal_scores_with_ties_shared(rng):
    X = rng.integers(0, 8, size=(40, 3)).astype(float)
    X[:, 2] = np.exp(5 * rng.normal(size=40))
    scores = norm.ppf((rankdata(X, axis=0) - 0.5) / 40)
    expected = (scores - scores.mean(axis=0)) / scores.std(axis=0)
    np.testing.assert_allclose(columns_of(KernelBank.prepared(RANKS), X), expected, atol=1e-12)


def test_ranks_do_not_see_what_keeps_the_order(rng):
    X, Z = rng.normal(size=(30, 2)), rng.normal(size=(7, 2))
    ranks, curved = (KernelBank.prepared(RANKS).fit(change(X)) for change in (np.asarray, np.exp))
    np.testing.assert_allclose(ranks.training(0), curved.training(0), atol=1e-10)
    np.testing.assert_allclose(next(ranks.cross(Z))[1], next(curved.cross(np.exp(Z)))[1], atol=1e-10)


def test_new_rows_far_outside_get_the_outermost_rank(rng):
    X = rng.normal(size=(30, 1))
    fitted = KernelBank.prepared(RANKS).fit(X)
    new = fitted.rows(np.array([[-1e9], [X.min()], [1e9]]), 0)
    assert new[0] == pytest.approx(new[1])
    assert new[2] == pytest.approx(fitted.training(0).max())


def test_many_rows_are_ranked_by_a_thousand_of_them(rng):
    X = rng.normal(size=(3000, 2))
    found = columns_of(KernelBank.prepared(RANKS), X)
    scores = norm.ppf((rankdata(X, axis=0) - 0.5) / 3000)
    assert np.abs(found - scores)[np.abs(scores) < 2.5].max() < 0.1


def test_one_unit_keeps_the_proportions_of_the_columns(rng):
    X = rng.normal(size=(25, 3)) * [1.0, 10.0, 0.0] + 5.0
    found = columns_of(KernelBank.prepared(UNIT), X)
    centred = (X - X.mean(axis=0))[:, :2]
    factor = found[0, 0] / centred[0, 0]
    np.testing.assert_allclose(found, factor * centred, atol=1e-10)


@pytest.mark.parametrize("preparation", ["zscores", "ranks", "centred"])
def test_every_kernel_has_unit_variance_in_any_unit(preparation, rng):
    X = rng.normal(size=(40, 3))
    bank = KernelBank.prepared({preparation: [Linear(), Laplacian(), Gaussian(scale=4.0)]})
    for K, scaled in zip(bank.fit(X).grams(), bank.fit(1e3 * X + 7.0).grams(), strict=True):
        assert np.trace(K) / 40 - K.mean() == pytest.approx(1.0)
        np.testing.assert_allclose(K, scaled, atol=1e-8)


def test_names_say_the_view_and_the_preparation(rng):
    kernels = {"zscores": [Linear()], "ranks": [Linear()], "centred": [Laplacian()]}
    views = Views({"a": rng.normal(size=(20, 2)), "counts": sparse.csr_matrix(rng.poisson(0.3, (20, 5)))})
    fitted = KernelBank.prepared(kernels).fit(views)
    assert fitted.names == (
        *("a·linear", "a·ranks·linear", "a·centred·laplacian(scale=1)"),
        *("counts·linear", "counts·laplacian(scale=1)"),
    )
    assert fitted.view_names == ("a", "a", "a", "counts", "counts")
    mixed = pd.DataFrame({"size": rng.normal(size=20), "kind": list("ab") * 10})
    assert "size·ranks·linear" in KernelBank.prepared(kernels).fit(mixed).names
    assert "kind·laplacian(scale=1)" in KernelBank.prepared(kernels).fit(mixed).names


def test_gaps_and_missing_views_are_as_elsewhere(rng):
    X = rng.normal(size=(30, 3))
    X[4, 1] = np.nan
    views = Views({"a": X, "b": np.where(np.arange(30)[:, None] < 5, np.nan, X[:, :2] + 1.0)})
    views["b"][10] = 0.5
    y = np.arange(30) % 2
    bank = KernelBank.prepared({"zscores": [Linear()], "ranks": [Laplacian()]})
    model = MKLClassifier(bank).fit(views, y)
    assert model.predict(views).shape == (30,)
    assert {row.filled for row in model.columns_ if row.view == "a"} == {0, 1}


def test_a_view_that_can_teach_nothing_is_left_out(rng):
    views = Views({"a": rng.normal(size=(20, 2)), "same": np.ones((20, 2))})
    fitted = KernelBank.prepared().fit(views)
    assert set(fitted.view_names) == {"a"}
    assert {row.encoding for row in fitted.columns if row.view == "same"} == {"left out"}
    with pytest.raises(ValueError, match="only columns that are constant"):
        KernelBank.prepared().fit(np.ones((20, 2)))


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ({"log": [Linear()]}, ValueError, "prepared as 'zscores', 'ranks', 'centred', received 'log'"),
        (["linear"], TypeError, "kernels such as Gaussian"),
        ({"ranks": ["linear"]}, TypeError, "kernels such as Gaussian"),
    ],
)
def test_what_is_no_preparation_is_refused(kernels, error, message):
    with pytest.raises(error, match=message):
        KernelBank.prepared(kernels).fit(np.eye(4))
