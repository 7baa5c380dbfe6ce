"""Tables of the same samples: by the labels of their rows, or joined on a key."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernelweave import MKLClassifier, Views

IDS = list("abcdef")
A = pd.DataFrame({"x": np.arange(6.0), "y": np.arange(6.0) ** 2}, index=IDS)
B = pd.DataFrame({"z": -np.arange(6.0)}, index=IDS)
SHUFFLED = B.iloc[[3, 1, 0, 5, 2, 4]]


def test_rows_labelled_in_another_order_are_brought_into_the_order_of_the_first():
    views = Views({"a": A, "b": SHUFFLED})
    pd.testing.assert_frame_equal(views["b"], B)
    assert views.ids.tolist() == IDS
    assert views[[4, 0]].ids.tolist() == ["e", "a"]


def test_tables_without_labels_are_joined_by_position():
    views = Views(
        {"a": A, "c": np.ones((6, 2)), "p": pl.DataFrame({"q": IDS}), "n": B.reset_index(drop=True)}
    )
    assert views["n"]["z"].tolist() == B["z"].tolist()
    assert Views({"c": np.ones((6, 2))}).ids is None
    frames = pd.DataFrame({"u": range(6)}, index=pd.RangeIndex(6, 12)), pd.DataFrame({"v": range(6)})
    assert Views({"u": frames[0], "v": frames[1]})["u"]["u"].tolist() == list(range(6))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (B.rename({"c": "C"}), r"do not have the same labels \(view 'b' has no row 'c'\).*Views.join"),
        (pd.concat([B, B.iloc[:1]]).iloc[1:].rename({"b": "a"}), "has labels more than once"),
        (B.iloc[:5], "6 samples and view .b. has 5; .*Views.join"),
    ],
)
def test_labels_that_do_not_match_are_refused(other, message):
    with pytest.raises(ValueError, match=message):
        Views({"a": A, "b": other})


def test_a_frame_whose_labels_are_row_numbers_of_another_in_other_order_is_refused():
    counted = pd.DataFrame({"x": np.arange(6.0)})
    for tables in (
        {"a": counted, "b": counted.iloc[::-1]},
        {"b": counted.iloc[[1, 0, 2, 3, 4, 5]], "a": counted},
    ):
        if type(tables["b"].index).__name__ == "RangeIndex":
            continue
        with pytest.raises(ValueError, match=r"not clear which rows belong together.*reset_index"):
            Views(tables)


def test_equal_labels_may_repeat_and_may_be_of_several_levels():
    twice = A.set_axis(list("aabbcc"))
    assert Views({"a": twice, "b": twice})["b"].equals(twice)
    levels = A.set_axis(pd.MultiIndex.from_product([[1, 2], list("xyz")]))
    pd.testing.assert_frame_equal(Views({"a": levels, "b": levels.iloc[::-1]})["b"], levels)


def frames():
    rna = pd.DataFrame({"patient": ["p3", "p1", "p2"], "g": [3.0, 1.0, 2.0], "s": ["x", "y", "x"]})
    mri = pl.DataFrame({"patient": ["p2", "p4"], "v": [20, 40], "w": ["u", None]})
    return {"rna": rna, "mri": mri}


def test_an_outer_join_keeps_everybody():
    views = Views.join(frames(), on="patient")
    assert views.ids.tolist() == ["p3", "p1", "p2", "p4"]
    np.testing.assert_array_equal(views["rna"]["g"], [3.0, 1.0, 2.0, np.nan])
    assert views["mri"]["v"].to_list() == [None, None, 20, 40]
    assert views["mri"].columns == ["v", "w"]
    assert "patient" not in views["rna"]


def test_tables_of_strangers_are_joined_where_that_is_said():
    tables = {"rna": frames()["rna"], "mri": frames()["mri"].to_pandas().assign(patient=["p8", "p9"])}
    with pytest.raises(ValueError, match="shares no key"):
        Views.join(tables, on="patient")
    views = Views.join(tables, on="patient", strangers=True)
    assert views.ids.tolist() == ["p3", "p1", "p2", "p8", "p9"]
    np.testing.assert_array_equal(views["mri"]["v"], [np.nan, np.nan, np.nan, 20, 40])


def test_an_inner_join_keeps_those_whom_all_tables_have():
    views = Views.join(frames(), on="patient", how="inner")
    assert views.ids.tolist() == ["p2"]
    assert (views["rna"]["g"].tolist(), views["mri"]["v"].to_list()) == ([2.0], [20])


def test_the_key_may_be_the_labels_or_differ_by_table():
    mri = frames()["mri"]
    labelled = frames()["rna"].set_index("patient")
    for table in (labelled, labelled.rename_axis(None)):
        views = Views.join({"rna": table, "mri": mri.to_pandas().set_index("patient")})
        assert views.ids.tolist() == ["p3", "p1", "p2", "p4"]
    named = Views.join(
        {"rna": labelled, "mri": mri.rename({"patient": "id"})}, on={"rna": "patient", "mri": "id"}
    )
    assert named["mri"]["v"].to_list() == [None, None, 20, 40]


def test_large_whole_numbers_survive_a_join():
    big = pd.DataFrame({"k": [1, 2], "n": [2**60 + 1, 2**60 + 2]})
    assert (
        Views.join({"a": big, "b": pd.DataFrame({"k": [1, 3], "m": [1, 2]})}, on="k")["a"]["n"][1]
        == 2**60 + 2
    )


@pytest.mark.parametrize(
    ("change", "how", "error", "message"),
    [
        (
            {"rna": pd.DataFrame({"patient": ["p1", "p1"], "g": [1, 2]})},
            "outer",
            ValueError,
            "'p1' more than once",
        ),
        (
            {"rna": pd.DataFrame({"patient": ["p1", None], "g": [1, 2]})},
            "outer",
            ValueError,
            "no patient in row 1",
        ),
        (
            {"rna": pd.DataFrame({"patients": ["p1"], "g": [1]})},
            "outer",
            ValueError,
            "did you mean 'patients'",
        ),
        (
            {"rna": pd.DataFrame({"patient": [1, 2], "g": [1, 2]})},
            "outer",
            ValueError,
            r"no key .*1 \(int\).*'p.' \(str",
        ),
        ({"rna": np.ones((2, 2))}, "outer", TypeError, "no column 'patient' to join on"),
        ({}, "left", ValueError, "how must be 'outer'"),
        (
            {"old": pd.DataFrame({"patient": ["p3", "p4"], "g": [1, 2]})},
            "inner",
            ValueError,
            "in all of the tables",
        ),
    ],
)
def test_keys_that_cannot_be_joined_are_named(change, how, error, message):
    with pytest.raises(error, match=message):
        Views.join({**frames(), **change}, on="patient", how=how)
    with pytest.raises(TypeError, match="dict of name to frame"):
        Views.join(list(frames().values()), on="patient")


@pytest.mark.parametrize("strange", [3, 3.0, "03", "003", " 3", "3 "])
@pytest.mark.parametrize("strangers", [False, True])
def test_keys_that_differ_in_how_they_are_written_alone_are_refused(strange, strangers):
    a = pd.DataFrame({"k": ["1", "2", "3"], "x": [1, 2, 3]})
    b = pd.DataFrame({"k": ["1", "2", strange], "z": [1, 2, 3]})
    with pytest.raises(ValueError, match="look like one, but would not be matched"):
        Views.join({"a": a, "b": b}, on="k", strangers=strangers)


def test_keys_with_and_without_zeros_beside_each_other_are_different_samples():
    a = pd.DataFrame({"k": ["7", "007", "0"], "x": [1, 2, 3]})
    b = pd.DataFrame({"k": ["7", "x7"], "z": [1, 2]})
    assert len(Views.join({"a": a, "b": b}, on="k")) == 4
    assert len(Views.join({"b": b, "a": a}, on="k")) == 4


Y = np.array([0, 1] * 15)
X = pd.DataFrame({"a": np.arange(30.0) % 7, "b": np.arange(30.0) % 4}, index=[f"p{k}" for k in range(30)])


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: Views({"t": t}), lambda t: {"t": t}])
def test_targets_labelled_in_another_order_are_refused(wrap):
    y = pd.Series(Y, index=X.index)
    expected = MKLClassifier().fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(MKLClassifier().fit(wrap(X), y).decision_function(wrap(X)), expected)
    with pytest.raises(
        ValueError, match=r"labelled in another order than those of X \(row 0: 'p29' and 'p0'\)"
    ):
        MKLClassifier().fit(wrap(X), y.iloc[::-1])
    with pytest.raises(ValueError, match="labelled otherwise than those of X"):
        MKLClassifier().fit(wrap(X), y.rename({"p0": "q0"}))


def test_targets_without_labels_belong_to_rows_by_position():
    y = pd.Series(Y)
    expected = MKLClassifier().fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(MKLClassifier().fit(X, y).decision_function(X), expected)
    counted = X.reset_index(drop=True)
    np.testing.assert_array_equal(
        MKLClassifier().fit(counted, y.set_axis(X.index)).decision_function(counted), expected
    )


PATIENTS = {
    "rna": X.rename_axis("patient").reset_index(),
    "mri": X[["a"]].iloc[::-1].rename_axis("patient").reset_index(),
}


@pytest.mark.parametrize("rows", [slice(None), np.arange(29, -1, -3)], ids=["all", "some"])
def test_targets_in_another_order_than_the_keys_of_a_join_are_refused(rows):
    views = Views.join(PATIENTS, on="patient")[rows]
    y = pd.Series(Y, index=X.index).loc[views.ids]
    expected = MKLClassifier().fit(views, y.to_numpy()).decision_function(views)
    np.testing.assert_array_equal(MKLClassifier().fit(views, y).decision_function(views), expected)
    with pytest.raises(ValueError, match=r"in another order than those of X .*pass y.loc\[X.ids\]"):
        MKLClassifier().fit(views, y.iloc[::-1])
    MKLClassifier().fit(views, y.reset_index(drop=True))


COUNTED = X.reset_index(drop=True)


@pytest.mark.parametrize(
    "wrap", [lambda t: t, lambda t: Views({"t": t}), lambda t: {"t": t}, lambda t: [t, t]]
)
@pytest.mark.parametrize(
    "permute",
    [lambda y: y.sample(frac=1.0, random_state=0), lambda y: y.sort_values(), lambda y: y.iloc[::-1]],
    ids=["sampled", "sorted", "reversed"],
)
def test_targets_labelled_with_the_row_numbers_in_another_order_are_refused(wrap, permute):
    with pytest.raises(ValueError, match=r"in another order than those of X .*pass y.loc\[X"):
        MKLClassifier().fit(wrap(COUNTED), permute(pd.Series(Y)))


@pytest.mark.parametrize("as_views", [False, True])
def test_row_numbers_that_say_nothing_or_agree_are_no_trouble(as_views):
    def wrap(t):
        return Views({"t": t}) if as_views else t

    shuffled = pd.Series(Y).sample(frac=1.0, random_state=0)
    for samples, targets in (
        (COUNTED.loc[shuffled.index], shuffled),  # as train_test_split gives them
        (COUNTED.loc[shuffled.index], pd.Series(Y)),
        (COUNTED, pd.Series(Y, index=pd.RangeIndex(50, 80))),
        (COUNTED.to_numpy(), shuffled),
    ):
        found = MKLClassifier().fit(wrap(samples), targets).decision_function(wrap(samples))
        expected = MKLClassifier().fit(wrap(samples), targets.to_numpy()).decision_function(wrap(samples))
        np.testing.assert_array_equal(found, expected)


def test_slices_of_counted_views_keep_to_their_rows():
    rows = np.random.default_rng(0).permutation(30)[:20]
    views, y = Views({"t": COUNTED})[rows], pd.Series(Y).iloc[rows]
    MKLClassifier().fit(views, y)
    with pytest.raises(ValueError, match="in another order"):
        MKLClassifier().fit(views, y.sort_index())


def test_frames_counted_in_opposite_directions_are_refused():
    counted = pd.DataFrame({"x": np.arange(6.0)})
    with pytest.raises(ValueError, match="not clear which rows belong together"):
        Views({"a": counted, "b": counted.iloc[::-1]})


K = np.random.default_rng(0).normal(size=(6, 6))
KERNEL = pd.DataFrame(K + K.T, index=IDS, columns=IDS)
OTHER = [3, 1, 0, 5, 2, 4]


@pytest.mark.parametrize(
    "moved",
    [KERNEL.iloc[OTHER, OTHER], KERNEL.iloc[OTHER], KERNEL.iloc[:, OTHER]],
    ids=["both", "rows", "columns"],
)
def test_both_sides_of_a_labelled_square_frame_are_brought_into_order(moved):
    pd.testing.assert_frame_equal(Views({"a": A, "k": moved})["k"], KERNEL)
    joined = Views.join({"a": A, "k": moved})
    np.testing.assert_array_equal(joined["k"], KERNEL)
    few = Views.join({"a": A.iloc[[4, 2]], "k": moved}, how="inner")
    np.testing.assert_array_equal(few["k"], KERNEL.iloc[[4, 2], [4, 2]])


def test_a_square_frame_without_labels_of_its_columns_is_refused_in_another_order():
    moved = KERNEL.set_axis(range(6), axis=1).iloc[OTHER]
    for make in (Views, Views.join):
        with pytest.raises(ValueError, match=r"'k' is square .* not labelled like its rows"):
            make({"a": A, "k": moved})
    assert Views({"a": A, "k": moved.loc[IDS]}).shape == (6, 8)


def test_an_outer_join_with_samples_that_a_square_frame_lacks_is_refused():
    with pytest.raises(ValueError, match=r"'k' holds values between .* no column for 'a'.*inner"):
        Views.join({"a": A, "k": KERNEL.iloc[1:, 1:]})
