"""Columns of strings, sets and other objects on their way to kernels: banks, estimators, files."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import kernelweave
from kernelweave import Entry, KernelBank, Landmarks, MKLClassifier, Views
from kernelweave.gram import StreamedGrams
from kernelweave.kernels import (
    FromFunction,
    Gaussian,
    Jaccard,
    Linear,
    MinMax,
    Spectrum,
    Subsequence,
    UnitDiagonal,
)

RNG = np.random.default_rng(8)
N = 60
Y = np.arange(N) % 2
DNA = np.array(
    [
        "".join(RNG.choice(list("ACGT"), RNG.integers(15, 25), p=[0.45, 0.05, 0.05, 0.45] if c else None))
        for c in Y
    ]
)
TAGS = [set(RNG.choice(list("abcdef"), 2 + c).tolist()) for c in Y]
NUMBERS = RNG.normal(size=(N, 2)) + 0.4 * Y[:, None]
BANK = KernelBank([("dna", Spectrum(2)), ("dna", Subsequence(2)), ("tags", Jaccard()), ("x", Gaussian())])


def column(cells):
    out = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        out[i] = cell
    return out


def views(dna=DNA, tags=TAGS):
    return Views({"dna": dna, "tags": column(tags), "x": NUMBERS})


def test_a_column_of_objects_is_a_view_of_one_column():
    for dna in (
        DNA,
        DNA.astype(object),
        DNA.tolist(),
        DNA[:, None],
        pd.Series(DNA),
        pl.Series(DNA),
        pd.DataFrame({"s": DNA}),
    ):
        X = views(dna)
        assert X.shape == (N, 4)
        fitted = KernelBank([("dna", Spectrum(2))]).fit(X)
        np.testing.assert_array_equal(next(fitted.grams()), Spectrum(2)(DNA))
        [(_, rows)] = fitted.cross(X[5:9])
        np.testing.assert_array_equal(rows, Spectrum(2)(DNA[5:9], DNA))


def test_kernels_of_objects_and_of_numbers_are_those_called_alone():
    fitted = BANK.fit(views())
    assert fitted.names == (
        "dna·spectrum(k=2)",
        "dna·subsequence(length=2, decay=0.5)",
        "tags·jaccard",
        "x·gaussian(scale=1)",
    )
    expected = [Spectrum(2)(DNA), Subsequence(2)(DNA), Jaccard()(TAGS), Gaussian().resolve(NUMBERS)(NUMBERS)]
    for K, E in zip(fitted.grams(), expected, strict=True):
        np.testing.assert_allclose(K, E, rtol=1e-12)


def frame(kind):
    return kind(
        {"dna": DNA.tolist(), "tags": [sorted(tags) for tags in TAGS], "a": NUMBERS[:, 0], "b": NUMBERS[:, 1]}
    )


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_frame_with_such_columns_is_read_by_name(kind):
    bank = KernelBank(
        [("dna", Spectrum(2)), Entry(Jaccard(), columns="tags"), ("x", Gaussian())],
        views={"dna": "dna", "x": ["a", "b"]},
    )
    X = frame(kind)
    fitted = bank.fit(X)
    expected = [Spectrum(2)(DNA), Jaccard()(TAGS), Gaussian().resolve(NUMBERS)(NUMBERS)]
    for K, E in zip(fitted.grams(), expected, strict=True):
        np.testing.assert_allclose(K, E, rtol=1e-12)
    other = X[["b", "tags", "a", "dna"]]
    for m, K in fitted.cross(other):
        np.testing.assert_allclose(K, expected[m], rtol=1e-12)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_one_kernel_reads_columns_of_different_kinds(kind):
    kernel = Gaussian().on(["a", "b"]) * Spectrum(2).normalized().on("dna") + 0.5 * Jaccard().on("tags")
    X, K2 = frame(kind), Spectrum(2).normalized()(DNA)
    expected = Gaussian().resolve(NUMBERS)(NUMBERS) * K2 + 0.5 * Jaccard()(TAGS)
    fitted = KernelBank([kernel]).fit(X)
    np.testing.assert_allclose(next(fitted.grams()), expected, rtol=1e-12)
    [(_, rows)] = fitted.cross(X[7:12])
    np.testing.assert_allclose(rows, expected[7:12], rtol=1e-12)
    assert kernel == Gaussian().on(["a", "b"]) * Spectrum(2).normalized().on("dna") + 0.5 * Jaccard().on(
        "tags"
    )


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_kernels_of_either_read_what_the_training_columns_are(kind):
    X = frame(kind)
    bank = KernelBank([Entry(MinMax(), columns=["a", "b"]), Entry(Jaccard(), columns="tags")])
    X = (
        X.with_columns(pl.col("a").abs(), pl.col("b").abs())
        if kind is pl.DataFrame
        else X.assign(a=X.a.abs(), b=X.b.abs())
    )
    first, second = bank.fit(X).grams()
    np.testing.assert_allclose(first, MinMax()(np.abs(NUMBERS)), rtol=1e-12)
    np.testing.assert_allclose(second, Jaccard()(TAGS), rtol=1e-12)
    assert type(bank.fit(X).training(0)[0, 0]) is np.float64


def test_streamed_kernels_are_the_stored_ones():
    kernel = Gaussian(gamma=1.0).on(1) * Spectrum(2).on(0) + Subsequence(2).on(0)
    cells = np.column_stack([DNA.astype(object), NUMBERS[:, 0].astype(object)])
    bank = KernelBank(
        [Entry(kernel, view="m"), ("dna", Spectrum(2)), ("tags", Jaccard())], scaling=UnitDiagonal()
    )
    fitted = bank.fit(Views({"m": cells, "dna": DNA, "tags": column(TAGS)}))
    grams = np.array(list(fitted.grams()))
    streamed, V = StreamedGrams(fitted.sources(), 3, N), RNG.normal(size=(N, 2))
    np.testing.assert_allclose(streamed.matvecs(V), grams @ V, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        streamed.combine(np.array([1.0, 2.0, 0.5])), np.tensordot([1.0, 2.0, 0.5], grams, 1)
    )
    np.testing.assert_allclose(np.diagonal(grams, axis1=1, axis2=2), 1.0)


def test_a_model_learns_predicts_and_is_saved(tmp_path):
    X = views()
    model = MKLClassifier(BANK).fit(X[:40], Y[:40])
    assert model.score(X[40:], Y[40:]) > 0.8
    kernelweave.save(model, tmp_path / "model.kw")
    again = kernelweave.load(tmp_path / "model.kw")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.kernel_names_ == model.kernel_names_


@pytest.mark.parametrize(
    "kind", [np.array, list, pd.Series, pl.Series, lambda c: np.array(c, dtype=object)[:, None]]
)
def test_one_column_of_text_is_all_a_model_needs(kind):
    model = MKLClassifier(KernelBank([Spectrum(2)])).fit(kind(DNA.tolist()), Y)
    expected = MKLClassifier(KernelBank([("dna", Spectrum(2))])).fit(Views({"dna": DNA}), Y)
    np.testing.assert_array_equal(
        model.decision_function(kind(DNA[:9].tolist())), expected.decision_function(Views({"dna": DNA[:9]}))
    )
    assert MKLClassifier().fit(kind(DNA.tolist()), Y).score(kind(DNA.tolist()), Y) > 0.8  # read by its words


def test_rows_of_text_are_placed_among_the_samples():
    X = Views({"dna": DNA[:50], "x": NUMBERS}, rows={"dna": np.arange(10, 60)})
    assert X["dna"][9, 0] is None
    assert X["dna"][10, 0] == DNA[0]
    X = Views({"dna": pl.DataFrame({"s": DNA[:50]}), "x": NUMBERS}, rows={"dna": np.arange(10, 60)})
    assert X["dna"]["s"].to_list() == [None] * 10 + DNA[:50].tolist()


def test_models_of_composed_kernels_are_saved(tmp_path):
    kernel = (2.0 * Gaussian().on(["a", "b"]) * Spectrum((1, 3)).on("dna")).normalized() ** 2
    X = frame(pd.DataFrame)
    model = MKLClassifier(KernelBank([kernel])).fit(X, Y)
    kernelweave.save(model, tmp_path / "model.kw")
    again = kernelweave.load(tmp_path / "model.kw")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.bank == model.bank


def test_cross_validation_and_search_reach_kernels_of_objects():
    model = MKLClassifier(KernelBank([Entry(Spectrum(1), view="dna")], scaling=UnitDiagonal()))
    assert cross_val_score(model, views(), Y, cv=3).mean() > 0.7
    model = clone(model).set_params(bank__entries=[("dna", Spectrum(2))])
    assert cross_val_score(model, views(), Y, cv=3).mean() > 0.7
    grid = {"bank": [KernelBank([("dna", Spectrum(k))]) for k in (1, 2)]}
    assert GridSearchCV(model, grid, cv=3).fit(views(), Y).best_score_ > 0.7


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_an_empty_cell_is_a_missing_view(missing):
    dna = DNA.astype(object)
    dna[::7] = missing
    model = MKLClassifier(BANK).fit(views(dna), Y)
    assert model.score(views(), Y) > 0.8
    assert model.score(views(dna), Y) > 0.7
    assert cross_val_score(model, views(dna), Y, cv=3).mean() > 0.6
    with_none = MKLClassifier(BANK).fit(views(DNA.astype(object)), Y)
    assert with_none.decision_function(views(dna)).shape == (N,)
    with pytest.raises(ValueError, match="Column 0 of view 'dna' has no value in row 0; leave such rows out"):
        BANK.fit(views(dna))


def test_samples_that_lack_one_of_two_columns_of_a_kernel_are_named():
    X = frame(pd.DataFrame)
    X.loc[4, "dna"] = None
    bank = KernelBank([Linear().on("a") * Spectrum(2).on("dna")])
    with pytest.raises(ValueError, match="Column 'dna' of view 'x' has no value in row 4"):
        MKLClassifier(bank).fit(X, Y)


@pytest.mark.parametrize(
    ("bank", "message"),
    [
        (KernelBank([("x", Spectrum())]), r"spectrum\(k=3\) reads one column of objects, received 2"),
        (KernelBank([("tags", Spectrum())]), r"spectrum\(k=3\) reads text, received set"),
        (KernelBank([("dna", Jaccard())]), "give separator= for text"),
        (KernelBank([("dna", Spectrum().on("seq"))]), "needs one column named 'seq'"),
        (KernelBank([Spectrum()]), "reads one column of objects, received 4"),
    ],
)
def test_a_kernel_on_columns_of_another_kind_says_so(bank, message):
    with pytest.raises((TypeError, ValueError), match=message):
        MKLClassifier(bank).fit(views(), Y)


def test_strings_in_new_samples_that_are_no_text_are_named():
    model = MKLClassifier(KernelBank([("dna", Spectrum(2))])).fit(Views({"dna": DNA}), Y)
    wrong = DNA.astype(object)
    wrong[3] = 7
    with pytest.raises(TypeError, match="reads text, received int 7 in row 3"):
        model.predict(Views({"dna": wrong}))


def test_landmarks_stand_for_kernels_of_strings():
    X = Views({"dna": DNA})
    fitted = KernelBank([("dna", Spectrum(2) + Subsequence(2))]).fit(X)
    Phi = Landmarks(N).fit(fitted, X, np.random.default_rng(0)).transform(X)
    K = next(fitted.grams())
    np.testing.assert_allclose(Phi @ Phi.T, K, atol=1e-6 * K.max())


def test_functions_of_graphs_reach_a_model():
    def common(X, Z):
        return np.array([[float(len(x & z)) for z in Z] for x in X])

    X = Views({"graph": column([frozenset(tags) for tags in TAGS])})
    model = MKLClassifier(KernelBank([("graph", FromFunction(common))])).fit(X, Y)
    same = MKLClassifier(KernelBank([Linear()])).fit(
        np.array([[t in tags for t in "abcdef"] for tags in TAGS]).astype(float), Y
    )
    assert max(model.certificate_.lower, same.certificate_.lower) <= min(
        model.certificate_.upper, same.certificate_.upper
    )


def test_columns_of_numbers_in_one_dimension_are_still_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for wrong in (np.ones(3), [1.0, 2.0], pd.Series([1.0, 2.0]), np.array([1, 2], dtype=object)):
            with pytest.raises(ValueError, match="has to be 2-D"):
                Views({"a": wrong})


def test_a_column_of_digits_is_read_as_numbers_and_as_text_side_by_side():
    cells = column([str(number) for number in RNG.integers(10, 9999, 20)])
    fitted = KernelBank([("d", Linear()), ("d", Spectrum(2))]).fit(Views({"d": cells}))
    first, second = fitted.grams()
    np.testing.assert_array_equal(first, np.outer(cells.astype(float), cells.astype(float)))
    np.testing.assert_array_equal(second, Spectrum(2)(cells))


def test_sparse_rows_take_memory_for_their_entries_only():
    S = sparse.random_array((30, 5000), density=0.001, rng=RNG, format="csr")
    [source] = KernelBank([Linear()]).fit(S).sources()
    assert source.n_columns <= 2 * S.nnz / 30 + 1
