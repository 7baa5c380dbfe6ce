"""Encoders against scikit-learn and naive loops; what new rows may hold."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler

from kernelweave.views.column_types import column_types
from kernelweave.views.encode import encode_together, encoder_of
from kernelweave.views.text_encoders import Transformed

COLOURS = pd.DataFrame({"c": ["red", "green", "red", None], "s": ["x", "y", "y", "x"]})


def learn(group, table):
    return encoder_of(group, table, column_types(table), "X")


def dense(values):
    return values.toarray() if sparse.issparse(values) else values


def with_gaps(rng):
    X = rng.normal(5.0, 3.0, size=(40, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def test_numbers_are_filled_by_the_median_and_scaled_as_scikit_learn_does(rng):
    X, new = with_gaps(rng), with_gaps(rng)
    pipeline = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(X)
    encoder = learn("numbers", X)
    np.testing.assert_allclose(encoder.transform(new, "X")[:, :4], pipeline.transform(new), atol=1e-12)
    np.testing.assert_array_equal(encoder.transform(new, "X")[:, 4:], np.isnan(new))
    assert encoder.filled == tuple(np.isnan(X).sum(axis=0))


def test_gaps_that_come_together_are_marked_once_and_single_ones_not(rng):
    X = rng.normal(size=(10, 3))
    X[:3, :2] = np.nan
    X[5, 2] = np.nan
    assert learn("numbers", X).transform(X, "X").shape == (10, 4)


def test_gaps_only_new_rows_have_are_filled(rng):
    X = rng.normal(size=(9, 2))
    encoder = learn("numbers", X)
    gap = np.array([[np.nan, X[0, 1]]])
    filled = np.array([[np.median(X[:, 0]), X[0, 1]]])
    np.testing.assert_array_equal(encoder.transform(gap, "X"), encoder.transform(filled, "X"))


def test_plain_numbers_are_only_filled(rng):
    X = with_gaps(rng)
    encoder = encode_together(X, column_types(X), "X", plain=True)
    np.testing.assert_array_equal(
        encoder.transform(X, "X"), SimpleImputer(strategy="median").fit_transform(X)
    )


def test_constants_are_dropped_and_booleans_are_0_and_1():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [7.0, 7.0, 7.0], "t": [True, False, True]})
    found = learn("numbers", table).transform(table, "X")
    np.testing.assert_allclose(found, [[-np.sqrt(1.5), 1], [0, 0], [np.sqrt(1.5), 1]])


def test_large_whole_numbers_keep_their_differences():
    table = pd.DataFrame({"big": [2**60 + 1, 2**60 + 2, 2**60 + 3]})
    found = learn("numbers", table).transform(table, "X")
    np.testing.assert_allclose(found[:, 0], [-np.sqrt(1.5), 0, np.sqrt(1.5)])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, lambda t: t.to_numpy()])
def test_the_product_of_two_rows_of_categories_is_the_share_that_agrees(make):
    found = dense(learn("categories", make(COLOURS)).transform(make(COLOURS), "X"))
    words = COLOURS.fillna("none").to_numpy()
    naive = [[np.mean(a == b) for b in words] for a in words]
    np.testing.assert_allclose(found @ found.T, naive)


def test_a_category_nobody_had_agrees_with_nobody():
    encoder = learn("categories", COLOURS)
    new = pd.DataFrame({"c": ["violet", "red"], "s": ["y", None]})
    found, train = dense(encoder.transform(new, "X")), dense(encoder.transform(COLOURS, "X"))
    np.testing.assert_allclose(found @ train.T, [[0, 0.5, 0.5, 0], [0.5, 0, 0.5, 0]])


def test_many_categories_are_held_sparse():
    table = pd.DataFrame({"city": [f"town {k}" for k in range(150)] * 2})
    assert sparse.issparse(learn("categories", table).transform(table, "X"))


def test_ordered_categories_are_ranks():
    stage = pd.DataFrame({"s": pd.Categorical(["I", "III", "II", None], ["I", "II", "III"], ordered=True)})
    found = learn("ordered", stage).transform(stage, "X")[:, 0]
    assert found[2] - found[0] == pytest.approx(found[1] - found[2])
    assert found[3] == found[2]
    new = pd.DataFrame({"s": ["IV", "III"]})
    np.testing.assert_allclose(learn("ordered", stage).transform(new, "X")[:, 0], [found[2], found[1]])


def test_dates_are_elapsed_time_season_and_weekday():
    days = pd.date_range("2023-01-01", periods=730, freq="D")
    table = pd.DataFrame({"d": days})
    found = learn("dates", table).transform(table, "X")
    assert found.shape == (730, 5)
    np.testing.assert_allclose(found[:, 0], StandardScaler().fit_transform(np.arange(730.0)[:, None])[:, 0])
    np.testing.assert_allclose(found[:723, 3:], found[7:, 3:], atol=1e-9)  # weeks
    assert np.abs(found[:365, 1:3] - found[365:, 1:3]).max() < 0.02  # years
    np.testing.assert_allclose((found[:, 1:3] ** 2).sum(axis=1), 1.0)


def test_the_hour_counts_where_dates_have_one():
    table = pd.DataFrame({"d": pd.date_range("2024-01-01", periods=50, freq="7h")})
    assert learn("dates", table).transform(table, "X").shape[1] == 7


def test_an_empty_date_is_the_median_and_no_season():
    days = pd.DataFrame({"d": [*pd.date_range("2024-01-01", periods=9, freq="D"), pd.NaT]})
    found = learn("dates", days).transform(days, "X")
    assert found[9, 0] == found[4, 0]
    assert not found[9, 1:].any()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_counts_are_weighted_logarithms_in_rows_of_unit_length(rng, make):
    X, new = rng.poisson(0.3, size=(20, 100)), rng.poisson(0.3, size=(5, 100))
    found = dense(learn("counts", make(X)).transform(make(new), "X"))
    idf = [np.log((1 + 20) / (1 + sum(x > 0 for x in column))) + 1 for column in X.T]
    naive = np.array([[np.log(1 + x) * w for x, w in zip(row, idf, strict=True)] for row in new])
    np.testing.assert_allclose(found, naive / np.linalg.norm(naive, axis=1, keepdims=True), atol=1e-12)


def test_text_is_words_and_characters_in_rows_of_unit_length():
    table = pd.DataFrame({"note": ["a cough at night", "cough and fever", None, "!!"]})
    found = learn("text", table).transform(table, "X")
    assert sparse.issparse(found)
    K = (found @ found.T).toarray()
    np.testing.assert_allclose(np.diag(K), [1, 1, 0, 1])
    assert K[0, 1] > 0.1 > K[0, 3]
    assert learn("text", pd.DataFrame({"note": ["!!", "??"]})).transform(table, "X").shape[0] == 4


def test_sets_meet_by_their_common_members():
    table = pd.DataFrame({"t": [{"a", "b"}, ["b", "b"], (), None, np.array(["a", "b", "c"])]})
    found = learn("set", table).transform(table, "X").toarray()
    K = found @ found.T
    np.testing.assert_allclose(K[0, :4], [1, 1 / np.sqrt(2), 0, 0])
    assert K[0, 4] == pytest.approx(2 / np.sqrt(6))
    new = learn("set", table).transform(pd.DataFrame({"t": [{"a", "z"}]}), "X").toarray()
    assert (new @ found.T)[0, 0] == pytest.approx(0.5)


def test_columns_of_all_types_count_alike_together():
    table = pd.DataFrame({"n": [1.0, 2.0, 4.0, 8.0], "a": list("xxyz"), "b": list("uuvv")})
    found = dense(encode_together(table, column_types(table), "X").transform(table, "X"))
    z = StandardScaler().fit_transform(table[["n"]])[:, 0]
    assert ((found[0] - found[2]) ** 2).sum() == pytest.approx((z[0] - z[2]) ** 2 + 2 + 2)


TYPES = {
    "numbers": pd.DataFrame({"a": [1.0, 2.0, 3.0]}),
    "categories": pd.DataFrame({"a": ["x", "y", "x"]}),
    "dates": pd.DataFrame({"a": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-05"])}),
    "text": pd.DataFrame({"a": ["one two three four", "five six seven eight", "nine ten one two"]}),
    "set": pd.DataFrame({"a": [{"x"}, {"y"}, {"x", "y"}]}),
    "ordered": pd.DataFrame({"a": pd.Categorical(["lo", "hi", "lo"], ["lo", "hi"], ordered=True)}),
}
OTHERS = {
    "numbers": ["words", "y"],
    "categories": [17.5, 3.5],
    "dates": ["yesterday", "now"],
    "text": [1.0, 2.0],
    "set": ["x", "y"],
    "ordered": [17.5, 3.5],
}


@pytest.mark.parametrize("group", TYPES)
def test_a_column_that_changed_its_type_is_named(group):
    encoder = learn(group, TYPES[group])
    with pytest.raises(ValueError, match=r"Column 'a' of X (held|holds) .*; pass"):
        encoder.transform(pd.DataFrame({"a": OTHERS[group]}), "X")


@pytest.mark.parametrize("group", TYPES)
def test_a_column_without_any_value_is_legal_for_new_rows(group):
    encoder = learn(group, TYPES[group])
    for gap in ([np.nan, np.nan], [None, None]):
        found = encoder.transform(pd.DataFrame({"a": gap}), "X")
        assert np.isfinite(dense(found)).all()


def test_infinity_is_named_by_place():
    encoder = learn("numbers", TYPES["numbers"])
    with pytest.raises(ValueError, match="Column 'a' of X contains inf in row 1"):
        encoder.transform(pd.DataFrame({"a": [1.0, np.inf]}), "X")


def test_transformers_of_the_user_get_the_columns_or_the_texts(rng):
    X = rng.normal(size=(12, 3))
    np.testing.assert_allclose(Transformed.learn(PCA(2), X, "X").transform(X, "X"), PCA(2).fit_transform(X))
    notes = TYPES["text"]
    for vectorizer in (TfidfVectorizer(), make_pipeline(TfidfVectorizer()), make_union(TfidfVectorizer())):
        found = Transformed.learn(vectorizer, notes, "X").transform(notes, "X")
        np.testing.assert_allclose(found.toarray(), TfidfVectorizer().fit_transform(notes["a"]).toarray())


def test_what_a_transformer_leaves_empty_is_filled(rng):
    X = with_gaps(rng)
    found = Transformed.learn(StandardScaler(), X, "X").transform(X, "X")
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(found, SimpleImputer(strategy="median").fit_transform(scaled))


def test_a_transformer_that_is_none_is_refused():
    with pytest.raises(TypeError, match="transform= takes a transformer of scikit-learn"):
        Transformed.learn("standardise", np.eye(3), "X")
