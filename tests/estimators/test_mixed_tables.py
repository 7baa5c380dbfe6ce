"""Tables as they are: words, dates, text, sets and empty cells, straight into the estimators."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.estimators.tables import STAGES, mixed_table

import kernelweave
from kernelweave import (
    SVM2K,
    Entry,
    FisherMKLClassifier,
    KernelBank,
    LocalizedMKLClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLClusterer,
    MKLRegressor,
    ObscureClassifier,
    OneClassMKL,
    SampleAdaptiveMKLClassifier,
    SemiSupervisedMKLClassifier,
    SVMPlusClassifier,
    Views,
)
from kernelweave.geometry import LpBall
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import Hinge

# That all kernels do no worse is an answer, not a fault.
pytestmark = pytest.mark.filterwarnings("ignore:The switches were left out")

TABLE, Y = mixed_table(120)
NEW, Y_NEW = mixed_table(60, seed=1)
MODEL = MKLClassifier().fit(TABLE, Y)
VALUES = MODEL.decision_function(NEW)


def as_polars(table):
    """The same table in polars."""
    plain = table.assign(stage=table["stage"].astype(object))
    columns = {
        name: [None if v is np.nan else v for v in plain[name].astype(object)] for name in plain.columns
    }
    columns["age"] = plain["age"].to_numpy()
    columns["seen"] = plain["seen"].to_numpy()
    return pl.DataFrame(columns).with_columns(
        pl.col("stage").cast(pl.Enum(STAGES)), pl.col("age").fill_nan(None)
    )


def as_arrow(table):
    """The same table with the types of pyarrow where it has them."""
    types = {
        "age": "double[pyarrow]",
        "smokes": "bool[pyarrow]",
        "city": "string[pyarrow]",
        "note": "string[pyarrow]",
    }
    return table.astype(types).assign(seen=table["seen"].astype("timestamp[us][pyarrow]"))


def as_nullable(table):
    """The same table with nullable types, dates with a zone, and a category."""
    seen = table["seen"].dt.tz_localize("UTC").dt.tz_convert("America/Lima")
    types = {"age": "Float64", "smokes": "boolean", "city": "category"}
    return table.astype(types).assign(seen=seen)


def test_a_table_of_all_types_is_learnt_from_as_it_is():
    assert MODEL.score(NEW, Y_NEW) > 0.8
    assert MODEL.duality_gap_ <= 1e-4
    assert {row.column: row.type for row in MODEL.columns_} == {
        "age": "number",
        "smokes": "boolean",
        "city": "category",
        "stage": "ordered",
        "seen": "date",
        "note": "text",
        "drugs": "set",
    }


@pytest.mark.parametrize("change", [as_polars, as_arrow, as_nullable])
def test_every_library_gives_the_same_model(change):
    model = MKLClassifier().fit(change(TABLE), Y)
    np.testing.assert_allclose(model.decision_function(change(NEW)), VALUES, atol=1e-9)
    assert [row.type for row in model.columns_] == [row.type for row in MODEL.columns_]
    assert [row.filled for row in model.columns_] == [row.filled for row in MODEL.columns_]


def test_an_array_of_objects_is_learnt_from_too():
    names = ["age", "smokes", "city", "note"]
    frame, array = TABLE[names], TABLE[names].to_numpy(dtype=object)
    expected = MKLClassifier().fit(frame, Y).decision_function(NEW[names])
    for rows in (array, array.tolist()):
        found = MKLClassifier().fit(rows, Y).decision_function(NEW[names].to_numpy(dtype=object))
        np.testing.assert_allclose(found, expected, atol=1e-9)


@settings(max_examples=12, deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from([lambda t: t, as_polars, as_arrow, as_nullable]))
def test_the_order_of_rows_and_columns_does_not_matter(random, change):
    rows, columns = list(range(len(TABLE))), list(TABLE.columns)
    random.shuffle(rows)
    random.shuffle(columns)
    table = change(TABLE.iloc[rows][columns].reset_index(drop=True))
    model = MKLClassifier(tol=1e-6).fit(table, Y[rows])
    exact = MKLClassifier(tol=1e-6).fit(TABLE, Y)
    np.testing.assert_allclose(
        model.decision_function(change(NEW)[columns]), exact.decision_function(NEW), atol=2e-3
    )


def test_new_rows_may_have_values_and_gaps_that_training_rows_had_not():
    full = TABLE.dropna()
    model = MKLClassifier().fit(full, Y[full.index])
    new = NEW.iloc[:3].copy()
    new["city"] = ["Atlantis", None, "Oslo"]
    new["age"] = [np.nan, 50.0, np.nan]
    new["seen"] = pd.NaT
    new["stage"] = pd.Categorical(["IV", None, "II"], ordered=True)
    new["drugs"] = [["unknown"], [], None]
    values = model.decision_function(new)
    assert np.isfinite(values).all()
    assert not np.array_equal(values, model.decision_function(NEW.iloc[:3]))


def test_a_row_of_one_table_may_be_empty():
    gone = TABLE[["age", "city"]].copy()
    gone.loc[4] = [np.nan, None]
    for bank in (None, KernelBank([Linear()])):
        model = MKLClassifier(bank).fit(gone, Y)
        typical = gone.iloc[[4]].assign(age=gone["age"].median())
        assert np.isfinite(model.decision_function(gone.iloc[[4]])).all()
        if bank is not None:
            np.testing.assert_allclose(
                model.decision_function(gone.iloc[[4]]), model.decision_function(typical)
            )


def test_new_rows_one_by_one_are_as_together():
    one_by_one = np.concatenate([MODEL.decision_function(NEW.iloc[[k]]) for k in range(10)])
    np.testing.assert_allclose(one_by_one, VALUES[:10], atol=1e-9)


def test_a_column_that_is_not_there_or_of_another_type_is_named():
    with pytest.raises(ValueError, match="X lacks the column 'city', which the model was fitted with"):
        MODEL.predict(NEW.drop(columns="city"))
    with pytest.raises(
        ValueError, match=r"Column 'age' of X held numbers .* holds words now .'old' in row 0."
    ):
        MODEL.predict(NEW.assign(age="old"))
    with pytest.raises(ValueError, match=r"Column 'seen' of X held dates .* holds numbers now"):
        MODEL.predict(NEW.assign(seen=3.5))


def test_columns_without_names_are_called_by_their_place():
    array = TABLE.to_numpy(dtype=object)
    model = MKLClassifier().fit(array, Y)
    wrong = NEW.to_numpy(dtype=object)
    wrong[2, 5] = 7
    wrong[[0, 1, *range(3, 60)], 5] = None
    with pytest.raises(ValueError, match=r"Column 5 of X held text .* holds numbers now"):
        model.predict(wrong)


def test_models_of_mixed_tables_are_saved_and_loaded(tmp_path):
    kernelweave.save(MODEL, tmp_path / "mixed.kw")
    again = kernelweave.load(tmp_path / "mixed.kw")
    np.testing.assert_array_equal(again.decision_function(NEW), VALUES)
    assert again.columns_ == MODEL.columns_


def test_statistics_are_learnt_on_the_training_rows_alone():
    # One row far out: it moves the mean and the deviation if it is looked at.
    far = TABLE.copy()
    far.loc[0, "age"] = 1e6
    rows = np.arange(1, len(TABLE))
    alone = MKLClassifier().fit(TABLE.iloc[rows].reset_index(drop=True), Y[rows]).decision_function(NEW)
    scores = []

    def score(model, X, y):
        scores.append(model.decision_function(NEW))
        return 0.0

    cross_val_score(MKLClassifier(), far, Y, cv=[(rows, [0])], scoring=score)
    np.testing.assert_allclose(scores[0], alone, atol=1e-9)
    leaky = far.assign(age=StandardScaler().fit_transform(far[["age"]].fillna(60.0)))
    found = MKLClassifier(KernelBank([Linear()])).fit(leaky[["age"]].iloc[rows], Y[rows])
    plain = MKLClassifier(KernelBank([Linear()], transform=StandardScaler()))
    kept = plain.fit(far[["age"]].fillna(60.0).iloc[rows], Y[rows])
    assert found.bank_.n_samples == kept.bank_.n_samples
    assert kept.dual_coef_.shape != found.dual_coef_.shape or not np.allclose(
        kept.dual_coef_, found.dual_coef_
    )


def held_out_values(bank, table, folds):
    """The decision values of a search for the samples it holds out, fold by fold."""
    seen = []

    def score(model, X, y):
        seen.append(model.decision_function(X))
        return 0.0

    grid = {"learner_values": [1.0], "geometry_values": [2.0], "geometry": LpBall(2.0), "refit": False}
    MKLClassifierCV(bank, cv=folds, scoring=score, **grid).fit(table, Y)
    return seen


def test_a_column_scaled_on_all_rows_shows_in_a_search(rng):
    age = TABLE[["age"]].fillna(60.0)
    age.loc[:9, "age"] = 1e4 * rng.normal(
        size=10
    )  # rows of the first fold to be held out, far from all others
    folds = [(np.arange(10, 120), np.arange(10)), (np.arange(60), np.arange(60, 120))]
    inside = KernelBank([Linear()], transform=StandardScaler())
    clean = held_out_values(inside, age, folds)
    for (train, test), found in zip(folds, clean, strict=True):
        alone = MKLClassifier(inside, geometry=LpBall(2.0), learner=Hinge(C=1.0)).fit(
            age.iloc[train], Y[train]
        )
        np.testing.assert_allclose(found, alone.decision_function(age.iloc[test]), rtol=1e-3, atol=1e-3)
    leaky = pd.DataFrame(StandardScaler().fit_transform(age), columns=["age"])
    planted = held_out_values(KernelBank([Linear()]), leaky, folds)
    assert not np.allclose(planted[0], clean[0], rtol=0.1)


def test_a_planted_leak_shows(rng):
    # The target is noise. Scaled per class-dependent statistics of all rows it could be told; inside folds it cannot.
    X, y = rng.normal(size=(80, 300)), np.arange(80) % 2
    folds = StratifiedKFold(4, shuffle=True, random_state=0)

    class TowardsTheClasses(StandardScaler):
        """A scaler that also looks at labels: a statistic which leaks when it is fitted to all rows."""

        def fit(self, X, y=None):  # noqa: ARG002
            self.direction_ = X[: len(labels)][labels == 1].mean(axis=0) - X[: len(labels)][labels == 0].mean(
                axis=0
            )
            return self

        def transform(self, X):
            return X @ self.direction_[:, None]

    labels = y
    outside = TowardsTheClasses().fit(X).transform(X)
    leaked = cross_val_score(MKLClassifier(KernelBank([Linear()])), outside, y, cv=folds).mean()
    inside = []
    for train, test in folds.split(X, y):
        labels = y[train]
        model = MKLClassifier(KernelBank([Linear()], transform=TowardsTheClasses())).fit(X[train], y[train])
        inside.append(model.score(X[test], y[test]))
    assert leaked > 0.9 > 0.7 > np.mean(inside)


@pytest.mark.parametrize("bank", [KernelBank([Linear()]), KernelBank.per_view(), KernelBank.distances()])
def test_explicit_banks_read_numbers_as_they_are_and_encode_words(bank):
    names = ["age", "city"]
    model = MKLClassifier(bank).fit(TABLE[names], Y)
    assert [row.encoding for row in model.columns_] == ["as it is", "indicators"]
    age = TABLE["age"].fillna(TABLE["age"].median()).to_numpy()
    words = pd.get_dummies(TABLE["city"].fillna("none")).to_numpy(dtype=float)
    np.testing.assert_allclose(model.bank_.groups[0].fitted.training(0)[:, 0], age)
    by_hand = MKLClassifier(bank).fit(np.column_stack([age, words]), Y)
    np.testing.assert_allclose(model.kernel_weights_, by_hand.kernel_weights_, atol=1e-4)
    np.testing.assert_allclose(by_hand.objective_, model.objective_, rtol=1e-4)


def test_banks_and_entries_take_transformers(rng):
    X, y = rng.normal(size=(40, 5)) * [1, 10, 100, 1, 1], np.arange(40) % 2
    pipeline = make_pipeline(StandardScaler(), PCA(2))
    encoded = clone(pipeline).fit_transform(X)
    expected = MKLClassifier(KernelBank([Gaussian()])).fit(encoded, y)
    views = Views({"a": X, "b": X[:, :2]})
    for bank, data in (
        (KernelBank([Gaussian()], transform=pipeline), X),
        (KernelBank([Entry(Gaussian(), transform=pipeline)]), X),
        (KernelBank([("a", Gaussian())], transform={"a": pipeline}), views),
        (KernelBank.per_view(transform=pipeline, views={"a": slice(0, 5)}), X),
    ):
        model = MKLClassifier(bank).fit(data, y)
        np.testing.assert_allclose(
            model.decision_function(data), expected.decision_function(encoded), atol=1e-6
        )
    with pytest.raises(ValueError, match=r"transform= names the view 'c'.*the views are 'a', 'b'"):
        MKLClassifier(KernelBank.per_view(transform={"c": pipeline})).fit(views, y)


def test_a_column_may_have_a_transformer_of_its_own():
    bank = KernelBank.by_type(transform={"note": TfidfVectorizer(min_df=2)})
    model = MKLClassifier(bank).fit(TABLE, Y)
    assert {row.column: row.encoding for row in model.columns_}["note"] == "TfidfVectorizer"
    assert "note·linear" in model.kernel_names_
    assert model.score(NEW, Y_NEW) > 0.75
    with pytest.raises(ValueError, match="transform= names the view 'notes'"):
        MKLClassifier(KernelBank.by_type(transform={"notes": TfidfVectorizer()})).fit(TABLE, Y)


def test_three_tables_of_different_patients_drop_nobody():
    ids = [f"p{k}" for k in range(120)]
    clinical = TABLE[["age", "city", "stage"]].assign(patient=ids).iloc[:100]
    notes = TABLE[["note"]].fillna("no note").assign(patient=ids).iloc[20:].sample(frac=1, random_state=0)
    genes = pl.DataFrame({"patient": ids[:60], "g1": np.arange(60) % 7 * 1.0, "g2": np.arange(60) % 5 * 1.0})
    views = Views.join({"clinical": clinical, "notes": notes, "genes": genes}, on="patient")
    y = pd.Series(Y, index=ids).loc[views.ids]
    model = MKLClassifier().fit(views, y)
    assert model.bank_.n_samples == 120
    lacking = {row.column: row.lacking for row in model.columns_}
    assert lacking == {"age": 20, "city": 20, "stage": 20, "note": 20, "g1": 60, "g2": 60}
    assert model.score(views, y) > 0.8
    few = views[np.arange(5)]
    np.testing.assert_allclose(model.decision_function(few), model.decision_function(views)[:5], atol=1e-9)


def test_a_dict_or_a_list_of_tables_is_taken_for_views():
    tables = {"a": TABLE[["age", "smokes"]], "b": TABLE[["city", "note"]]}
    expected = MKLClassifier().fit(Views(tables), Y).decision_function(Views(tables))
    np.testing.assert_array_equal(MKLClassifier().fit(tables, Y).decision_function(tables), expected)
    listed = MKLClassifier().fit(list(tables.values()), Y)
    np.testing.assert_array_equal(listed.decision_function(list(tables.values())), expected)
    assert listed.bank_.view_names[0] == "view0"
    model = MKLClassifier(probability=True).fit(tables, Y)
    assert model.predict_proba(tables).shape == (120, 2)
    search = MKLClassifierCV(learner_values=[1.0, 10.0], geometry_values=[0.5], cv=2).fit(tables, Y)
    assert search.predict(tables).shape == (120,)


ESTIMATORS = [
    MKLRegressor(),
    OneClassMKL(),
    FisherMKLClassifier(),
    SampleAdaptiveMKLClassifier(),
    ObscureClassifier(random_state=0),
    SVMPlusClassifier(),
    SemiSupervisedMKLClassifier(),
    MKLClusterer(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_every_estimator_learns_from_a_mixed_table(estimator):
    names = ["age", "city", "stage", "seen"]
    y = np.where(Y == "ill", 1, 0)
    table = TABLE[names].iloc[:40].assign(age=TABLE["age"].fillna(1.0)[:40])
    table.loc[3, "age"] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = estimator.fit(table, y[:40])
    assert len(model.predict(NEW[names])) == 60
    assert [row.filled for row in model.columns_ if row.column == "age"] == [1]


def test_estimators_that_cannot_do_without_a_view_say_so():
    gone = TABLE[["age", "city"]].copy()
    gone.loc[4] = [np.nan, None]
    MKLRegressor().fit(gone, np.arange(120.0))  # of one table a row is empty, and filled
    with pytest.raises(ValueError, match=r"Row 4 of X lacks view 'a'.*accepts missing views"):
        MKLRegressor().fit({"a": gone, "b": TABLE[["smokes"]]}, np.arange(120.0))
    two = KernelBank([Entry(Linear(), columns=["age"]), Entry(Linear(), columns=["city"])])
    assert SVM2K(two).fit(TABLE[["age", "city"]].dropna(), Y[TABLE[["age", "city"]].notna().all(axis=1)])
    with pytest.raises(ValueError, match="contains NaN"):
        LocalizedMKLClassifier(KernelBank([Linear()])).fit(TABLE[["age"]].to_numpy(), Y)
