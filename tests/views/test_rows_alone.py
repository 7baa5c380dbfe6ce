"""A row is encoded alike whatever stands beside it: how a column reads is decided at fit."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from kernelweave import MKLClassifier
from kernelweave.views.column_types import column_types
from kernelweave.views.encode import encoder_of
from kernelweave.views.text_encoders import Transformed

LEVELS = ["01", "02", "10"]
# What a column held at fit, and what new rows hold.
CASES = {
    "numbers of text": ("numbers", ["0", "1", "2.5", "7"], ["1", "A", None, " 2 ", "nan", "2024-05-31"]),
    "numbers": ("numbers", [0.5, 1.0, 2.5, 7.0], [3.0, None, 1.5]),
    "codes": ("categories", ["01", "02", "10", "A", "01"], ["01", "10", "A", "1", "42", None]),
    "codes and numbers": ("categories", [1, "01", 2.0, "A", True], [1, 2, 2.5, "01", "7", True, None]),
    "codes and dates": (
        "categories",
        ["2024-05-31", "soon", "2024-05-31"],
        ["2024-05-31", "soon", "2024-06-01"],
    ),
    "ordered": ("ordered", pd.Categorical(["01", "10", "02"], LEVELS, ordered=True), ["02", "IV", "7", None]),
    "dates of text": (
        "dates",
        ["2024-05-31", "2024-06-02", "2025-01-01"],
        ["2024-06-01", "later", None, "7", "2024-13-45"],
    ),
    "notes": (
        "text",
        ["dog and 42 cats", "since 2024-05-31 no dog", "1.0 horses"],
        ["42", "dog", "2024-05-31", "1.0", None],
    ),
    "sets": ("set", [{"1", "a"}, ["b"], ("a",)], [{"1"}, ["b", "z"], None]),
}


def encoder_for(group, values):
    table = pd.DataFrame({"c": values})
    return encoder_of(group, table, column_types(table), "X")


def dense(values):
    return values.toarray() if sparse.issparse(values) else values


@pytest.mark.filterwarnings("ignore:.*now count as empty")
@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_numpy(dtype=object)], ids=["pandas", "numpy"])
@pytest.mark.parametrize("case", CASES)
def test_a_row_alone_is_encoded_as_beside_others(case, make):
    group, old, new = CASES[case]
    encoder = encoder_for(group, old)
    table = make(pd.DataFrame({"c": pd.Series(new, dtype=object)}))
    together = dense(encoder.transform(table, "X"))
    for i in range(len(new)):
        alone = table[i : i + 1]
        np.testing.assert_allclose(
            dense(encoder.transform(alone, "X")), together[i : i + 1], err_msg=str(new[i])
        )


@pytest.mark.filterwarnings("ignore:.*now count as empty")
@pytest.mark.parametrize("case", ["codes", "notes", "numbers of text", "dates of text", "ordered"])
def test_a_row_alone_is_encoded_as_beside_others_in_polars(case):
    group, old, new = CASES[case]
    encoder, table = encoder_for(group, old), pl.DataFrame({"c": new})
    together = dense(encoder.transform(table, "X"))
    for i in range(len(new)):
        np.testing.assert_allclose(dense(encoder.transform(table[i : i + 1], "X")), together[i : i + 1])


def test_a_vectorizer_of_the_user_reads_texts_of_digits_alone():
    encoder = Transformed.learn(TfidfVectorizer(), pd.DataFrame({"c": CASES["notes"][1]}), "X")
    assert encoder.transform(pd.DataFrame({"c": ["42"]}), "X").sum() == 1.0


def test_codes_with_leading_zeros_are_found_again():
    encoder = encoder_for("categories", ["01", "02", "10", "A"])
    np.testing.assert_array_equal(
        dense(encoder.transform(pd.DataFrame({"c": ["01", "10"]}), "X")), [[1, 0, 0, 0], [0, 0, 1, 0]]
    )


def test_declared_levels_that_look_like_numbers_keep_their_zeros():
    found = encoder_for("ordered", pd.Categorical(["01", "10", "02"], LEVELS, ordered=True))
    V = found.transform(pd.DataFrame({"c": LEVELS}), "X")[:, 0]
    assert V[0] < V[1] < V[2]


def test_a_word_in_numbers_learnt_from_text_is_a_gap():
    encoder = encoder_for("numbers", ["0", "1", "2", "7"])
    with pytest.warns(UserWarning, match="'c' of X held numbers .* now count as empty, such as 'A' in row 0"):
        found = encoder.transform(pd.DataFrame({"c": ["A", "1.5"]}), "X")
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("group", ["numbers", "dates"])
def test_a_word_in_a_column_that_was_no_text_is_named_by_its_row(group):
    old = (
        [0.5, 1.0, 2.0] if group == "numbers" else pd.to_datetime(["2024-05-31", "2024-06-02", "2024-06-09"])
    )
    new = ["0", "1", "A"] if group == "numbers" else ["2024-05-31", "2024-06-02", "A"]
    with pytest.raises(
        ValueError, match=rf"Column 'c' of X held {group} .* holds words now \('A' in row 2\)"
    ):
        encoder_for(group, old).transform(pd.DataFrame({"c": new}), "X")


def test_dates_in_a_column_of_numbers_are_refused():
    with pytest.raises(ValueError, match=r"held numbers .* holds dates now"):
        encoder_for("numbers", [1.0, 2.0]).transform(pd.DataFrame({"c": [datetime.date(2024, 5, 31)]}), "X")


@pytest.mark.filterwarnings("ignore:.*now count as empty")
def test_a_word_only_a_later_fold_has_does_not_end_cross_validation(rng):
    y = np.tile([0, 1], 15)
    X = pd.DataFrame({"code": [str(k % 3) for k in range(30)], "v": y + 0.1 * rng.normal(size=30)})
    X.loc[29, "code"] = "A"
    model = MKLClassifier().fit(X[:20], y[:20])
    assert model.score(X[20:], y[20:]) > 0.8
