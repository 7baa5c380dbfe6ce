"""Banks that follow the types of the columns."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from tests.estimators.tables import mixed_table

from kernelweave import KernelBank, MKLClassifier, MKLRegressor, Views
from kernelweave.bank.missing_views import fit_with_missing_views
from kernelweave.bank.subset import ChosenBank, ConcatenatedBank
from kernelweave.kernels import Gaussian, Linear, UnitTrace

TABLE, Y = mixed_table(60)


def test_every_type_is_a_block_and_all_columns_together_are_one():
    fitted = KernelBank.by_type(scales=[1.0]).fit(TABLE)
    assert list(dict.fromkeys(fitted.view_names)) == [
        "x",
        "age+smokes",
        "city",
        "stage",
        "seen",
        "note",
        "drugs",
    ]
    kernels = "laplacian(scale=1)", "gaussian(scale=0.25)", "gaussian(scale=1)", "gaussian(scale=4)"
    assert fitted.names[:4] == tuple(f"x·{kernel}" for kernel in kernels)
    assert [name for name in fitted.names if name.startswith("city")] == [
        "city·linear",
        "city·gaussian(scale=1)",
    ]


def test_blocks_of_views_are_called_by_view_and_columns():
    many = pd.DataFrame(np.random.default_rng(0).choice(list("abc"), (60, 5)), columns=list("vwxyz"))
    views = Views(
        {"clinical": TABLE[["age", "city", "stage"]], "genes": many, "both": many.assign(n=np.arange(60.0))}
    )
    labels = dict.fromkeys(KernelBank.by_type().fit(views).view_names)
    assert list(labels) == [
        *("clinical", "clinical.age", "clinical.city", "clinical.stage"),
        *("genes", "both", "both.n", "both (categories)"),
    ]  # fmt: skip


def test_numbers_are_the_kernels_of_z_scores():
    numbers = TABLE[["age"]].fillna(60.0).assign(b=np.arange(60.0), c=7.0)
    found = list(KernelBank.by_type().fit(numbers).grams())
    scaled = StandardScaler().fit_transform(numbers[["age", "b"]])
    expected = list(KernelBank.distances().fit(scaled).grams())
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_bank_of_any_kernels_has_every_column_by_its_type_where_it_says_so(rng):
    X = rng.normal(size=(20, 3)) * [1, 10, 100]
    plain, typed = KernelBank.per_view(Gaussian()), KernelBank.per_view(Gaussian(), transform="by_type")
    np.testing.assert_allclose(
        next(typed.fit(X).grams()), next(plain.fit(StandardScaler().fit_transform(X)).grams())
    )
    fitted = typed.fit(TABLE)
    assert fitted.names == ("x·gaussian(scale=1)",)
    told = {row.column: row.encoding for row in fitted.columns}
    assert told == {row.column: row.encoding for row in KernelBank.by_type().fit(TABLE).columns}
    words = sparse.random(20, 5, 0.3, format="csr", random_state=0)
    np.testing.assert_allclose(next(typed.fit(words).grams()), next(plain.fit(words).grams()))


def test_plain_numbers_keep_the_kernels_of_the_raw_columns_by_default(rng):
    X = rng.normal(size=(20, 4)) * [1, 10, 100, 1]
    gone = np.vstack([X, np.full(4, np.nan)])
    for data in (X, pd.DataFrame(X), sparse.csr_matrix(X), Views({"a": X, "b": X[:, :2]})):
        default, distances = KernelBank.default().fit(data), KernelBank.distances().fit(data)
        assert default.names == distances.names
        np.testing.assert_array_equal(list(default.grams()), list(distances.grams()))
    with pytest.raises(ValueError, match="no view at all"):
        MKLClassifier(KernelBank.default()).fit(gone, np.arange(21) % 2)


def test_a_gap_or_a_word_makes_the_default_follow_the_types(rng):
    X = rng.normal(size=(20, 4)) * [1, 10, 100, 1]
    X[3, 1] = np.nan
    np.testing.assert_array_equal(
        list(KernelBank.default().fit(X).grams()), list(KernelBank.by_type().fit(X).grams())
    )
    assert "city·linear" in KernelBank.default().fit(TABLE).names


def test_wide_sparse_tables_are_counts(rng):
    X = sparse.csr_matrix(rng.poisson(0.02, (30, 1200)))
    fitted = KernelBank.default().fit(X)
    assert fitted.names == ("x·linear", "x·gaussian(scale=1)")
    assert sparse.issparse(fitted.training(0))
    assert [row.encoding for row in fitted.columns][:1] == ["log1p x idf, unit rows"]
    signed = KernelBank.default().fit(X - 2 * X.multiply(X > 1))
    assert signed.names == fitted.names
    assert signed.columns[0].encoding == "as it is"


def test_scaling_is_that_of_the_bank_or_the_mean_of_linear_kernels():
    for K, name in zip(*(lambda f: (f.grams(), f.names))(KernelBank.by_type().fit(TABLE)), strict=True):
        assert np.trace(K) == pytest.approx(60.0), name
    for K in KernelBank.by_type(scaling=UnitTrace()).fit(TABLE).grams():
        assert np.trace(K) == pytest.approx(1.0)


def test_declared_views_of_one_table_are_views():
    bank = KernelBank.by_type(views={"who": ["age", "city"], "ill": ["stage"]})
    fitted = bank.fit(TABLE)
    assert list(dict.fromkeys(fitted.view_names)) == ["who", "who.age", "who.city", "ill"]
    assert [row.column for row in fitted.columns] == ["age", "city", "stage"]


def test_columns_that_teach_nothing_are_left_out_and_named():
    odd = TABLE.assign(
        pid=[f"P{k}" for k in range(60)], one=1.0, void=None, target=Y, code=np.where(Y == "ill", 3, 8)
    )
    with pytest.warns(UserWarning, match="Column") as caught:
        model = MKLClassifier().fit(odd, Y)
    told = [str(one.message) for one in caught]
    assert len(told) == 3
    assert told[0].startswith(
        "Column 'pid' has a different value in every row and is taken for the name of the row"
    )
    assert told[0].endswith("drop it; convert dates and numbers first.")
    assert told[1].startswith("Columns 'one', 'void' have one value in all rows and cannot help")
    assert told[2].startswith("Columns 'target', 'code' have the target, or one value per class")
    notes = {row.column: (row.encoding, row.note) for row in model.columns_ if row.note}
    assert notes == {
        "pid": ("left out", "identifier"),
        "one": ("left out", "constant"),
        "void": ("left out", "constant"),
        "target": ("indicators", "equals the target"),
        "code": ("z-scores", "equals the target"),
    }


def test_a_real_target_among_the_columns_is_named():
    y = np.random.default_rng(0).normal(size=60)
    with pytest.warns(UserWarning, match="Column 'copy' has the target"):
        MKLRegressor().fit(pd.DataFrame({"age": np.arange(60.0) % 11, "copy": y}), y)


def test_a_table_of_nothing_but_identifiers_is_refused():
    with pytest.raises(
        ValueError, match=r"X has only columns that are constant or number the rows: 'pid', 'one'"
    ):
        KernelBank.by_type().fit(pd.DataFrame({"pid": [f"P{k}" for k in range(9)], "one": "x"}))


def test_a_constant_with_gaps_is_known_by_its_gaps():
    table = pd.DataFrame({"a": np.arange(20.0), "done": ["yes", None] * 10, "n": [1.0, None] * 10})
    fitted = KernelBank.by_type().fit(table)
    assert [row.encoding for row in fitted.columns] == ["z-scores", "indicators", "z-scores, gaps marked"]
    K = dict(zip(fitted.names, fitted.grams(), strict=True))["done·linear"]
    np.testing.assert_allclose(K[0, :4], [1, 0, 1, 0])


def test_the_table_of_columns_reads_well_and_is_a_frame():
    columns = KernelBank.by_type().fit(TABLE).columns
    head, first, *_ = repr(columns).splitlines()
    assert head.split() == ["column", "view", "type", "encoding", "filled", "lacking", "note"]
    assert first.split()[:3] == ["age", "number", "z-scores,"]
    assert columns.as_frame()["type"].tolist()[:2] == ["number", "boolean"]
    assert "and 70 columns more" in repr(KernelBank.default().fit(np.eye(100)).columns)


def test_banks_made_of_a_bank_by_type_take_over_its_encoders():
    whole = KernelBank.by_type()
    names = whole.fit(TABLE).names
    chosen = ChosenBank(whole, [4, 26]).fit(TABLE)
    assert chosen.names == (names[4], names[26])
    together = ConcatenatedBank(whole, Gaussian()).fit(TABLE)
    assert len(together) == 1
    assert np.isfinite(next(together.grams())).all()


def test_single_columns_of_words_are_encoded_for_kernels_on_them():
    fitted = KernelBank.per_feature(widths=[1.0], degrees=[1]).fit(TABLE[["smokes", "stage"]])
    kernels = "gaussian(width=1)", "polynomial(degree=1)"
    assert fitted.names == tuple(f"{label}·{one}" for label in ("x", "smokes", "stage") for one in kernels)


def test_encoders_are_learnt_from_the_samples_that_have_the_view(rng):
    here = np.arange(60) >= 15
    part = TABLE[["age", "city", "smokes"]].astype({"smokes": object})
    views = Views({"a": rng.normal(size=(60, 2)), "b": part.where(np.tile(here[:, None], 3))})
    those = Views({"a": rng.normal(size=(45, 2)), "b": part[here].reset_index(drop=True)})
    alone = KernelBank.by_type(scales=[1.0]).fit(those)
    blocks = {label: alone.training(b) for b, label in enumerate(dict.fromkeys(alone.view_names))}
    fitted = fit_with_missing_views(KernelBank.by_type(scales=[1.0]), views)
    [found] = [group.fitted.fitted for group in fitted.groups if group.fitted.view_names[0] == "b"]
    np.testing.assert_allclose(found.training(0), blocks["b"], atol=1e-12)


def test_gaps_that_only_new_rows_have_are_filled_by_the_training_median(rng):
    X = rng.normal(3.0, 1.0, size=(21, 3))
    gap, filled = X[:1].copy(), X[:1].copy()
    gap[0, 1], filled[0, 1] = np.nan, np.median(X[:, 1])
    for bank in (KernelBank([Linear()]), KernelBank.default(), KernelBank.by_type()):
        model = MKLClassifier(bank).fit(X, np.arange(21) % 2)
        np.testing.assert_allclose(model.decision_function(gap), model.decision_function(filled), atol=1e-12)


def test_a_view_nobody_has_is_refused_by_name():
    views = Views({"a": TABLE[["age"]].fillna(1.0), "b": TABLE[["city"]].assign(city=None)})
    with pytest.raises(ValueError, match=r"View .b. has no value in any row"):
        MKLClassifier().fit(views, Y)
    with pytest.raises(ValueError, match="has values for 0 samples"):
        MKLClassifier(KernelBank.per_view(Linear())).fit(views, Y)
