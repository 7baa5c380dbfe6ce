"""Columns of several views: transformers of their own, views nobody has, columns left out."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import StandardScaler

from kernelweave import KernelBank, MKLClassifier, Views
from kernelweave.bank.missing_views import fit_with_missing_views

N = 24
Y = np.tile([0, 1], N // 2)


def dense(values):
    return values.toarray() if sparse.issparse(values) else values


def clinical(rng):
    notes = [f"patient {k % 5} coughs {'badly' if k % 2 else 'a bit'} number {k}" for k in range(N)]
    return pd.DataFrame({"age": rng.normal(60, 9, N) + Y, "note": notes})


@pytest.mark.parametrize(
    "bank", [None, KernelBank.by_type(), KernelBank.by_type(transform={"rna": StandardScaler()})]
)
def test_a_view_nobody_has_is_named_beside_one_with_gaps(rng, bank):
    table = clinical(rng)
    table.loc[2, "age"] = np.nan
    views = Views({"clinical": table, "rna": np.full((N, 3), np.nan)})
    with pytest.raises(ValueError, match=r"View 'rna' has no value in any row"):
        MKLClassifier(bank).fit(views, Y)


def test_an_empty_text_is_an_empty_string_for_a_transformer_of_its_column(rng):
    table = clinical(rng)
    table.loc[2, "note"] = None
    bank = KernelBank.by_type(transform={"note": TfidfVectorizer()})
    fitted = bank.fit(table)
    (block,) = [one for one in fitted.blocks if one.columns == ["note"]]
    np.testing.assert_allclose(
        dense(block.take(table)), dense(TfidfVectorizer().fit_transform(table["note"].fillna("")))
    )
    model = MKLClassifier(bank).fit(table, Y)
    model.predict(table.assign(note=None))
    assert model.columns_[0].lacking == 0


def test_a_column_with_a_transformer_is_missing_where_its_view_is_and_not_where_its_cell_is(rng):
    table = clinical(rng)
    table.loc[:3, ["age", "note"]] = None
    table.loc[6, "note"] = None
    views = Views({"clinical": table, "b": rng.normal(size=(N, 2))})
    fitted = fit_with_missing_views(KernelBank.by_type(transform={"clinical.note": TfidfVectorizer()}), views)
    here = np.array([name.startswith("clinical.note") for name in fitted.view_names])
    assert here.any()
    np.testing.assert_array_equal(np.flatnonzero(~fitted.available[:, here].all(axis=1)), [0, 1, 2, 3])


def test_an_empty_number_is_nan_for_a_transformer_of_its_column(rng):
    table = clinical(rng)
    table.loc[2, "age"] = np.nan
    model = MKLClassifier(KernelBank.by_type(transform={"age": StandardScaler()})).fit(table, Y)
    assert {row.column: row.lacking for row in model.columns_} == {"age": 0, "note": 0}


def test_columns_left_out_are_told_once_with_what_lacks_their_own_view(rng):
    one = pd.DataFrame({"v": rng.normal(size=N), "same": 1.0})
    two = pd.DataFrame({"w": rng.normal(size=N), "also": 2.0})
    one.loc[:1] = np.nan
    two.loc[5:9] = np.nan
    found = fit_with_missing_views(KernelBank.by_type(), Views({"one": one, "two": two})).columns
    assert sorted((row.view, row.column, row.lacking) for row in found) == [
        ("one", "same", 2),
        ("one", "v", 2),
        ("two", "also", 5),
        ("two", "w", 5),
    ]


def test_a_column_that_is_called_like_another_view_is_not_transformed(rng):
    views = Views({"rna": rng.normal(size=(N, 3)), "clinical": clinical(rng).assign(rna=rng.normal(size=N))})
    model = MKLClassifier(KernelBank.by_type(transform={"rna": StandardScaler()})).fit(views, Y)
    encodings = {(row.view, row.column): row.encoding for row in model.columns_}
    assert encodings["clinical", "rna"] == "z-scores"
    assert encodings["rna", 0] == "StandardScaler"
    model = MKLClassifier(KernelBank.by_type(transform={"clinical.rna": StandardScaler()})).fit(views, Y)
    encodings = {(row.view, row.column): row.encoding for row in model.columns_}
    assert encodings["clinical", "rna"] == "StandardScaler"
    assert encodings["rna", 0] == "z-scores"


def test_a_column_of_a_view_needs_the_name_of_the_view(rng):
    views = Views({"a": clinical(rng), "b": rng.normal(size=(N, 2))})
    with pytest.raises(ValueError, match="transform= names the view 'note'"):
        MKLClassifier(KernelBank.by_type(transform={"note": TfidfVectorizer()})).fit(views, Y)


def test_columns_of_one_name_are_refused(rng):
    table = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match=re.escape("X has several columns named 'a'")):
        MKLClassifier().fit(table, Y)
    with pytest.raises(ValueError, match=re.escape("view 'one' has several columns named 'a'")):
        MKLClassifier().fit(Views({"one": table}), Y)
