"""Views: several tables that slice like one array, also for scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample

from kernelweave.bank import KernelBank, Views
from kernelweave.kernels import ExpDistance, Gaussian, Linear, Precomputed

rng = np.random.default_rng(0)
A = np.arange(20.0).reshape(10, 2)
B = 100.0 + np.arange(30.0).reshape(10, 3)


def every_kind():
    return Views(
        {
            "array": A,
            "pandas": pd.DataFrame(B, columns=["a", "b", "c"], index=list("qwertyuiop")),
            "polars": pl.DataFrame({"u": A[:, 0], "v": A[:, 1]}),
            "sparse": sparse.coo_matrix(B),
        }
    )


def test_the_shape_counts_samples_once_and_columns_of_all_views():
    views = every_kind()
    assert views.shape == (10, 10)
    assert views.shape[0] == len(views) == 10
    assert views.ndim == 2
    assert views.names == ("array", "pandas", "polars", "sparse")
    assert [name for name, _ in views.items()] == list(views.names)
    assert "pandas" in views
    assert repr(views) == "Views(array: 10 x 2, pandas: 10 x 3, polars: 10 x 2, sparse: 10 x 3)"


KEYS = {
    "slice": slice(2, 7, 2),
    "list": [3, 1, 1],
    "negative": [-1, 0],
    "integers": np.array([9, 0], dtype=np.int32),
    "mask": np.arange(10) % 3 == 0,
    "list mask": [True] * 4 + [False] * 6,
    "one row": 4,
    "numpy scalar": np.int64(4),
    "series": pd.Series([5, 6]),
    "range": range(2, 5),
}


@pytest.mark.parametrize("name", KEYS)
def test_every_key_takes_the_same_rows_of_every_table(name):
    key, views = KEYS[name], every_kind()
    whole = np.hstack([A, B, A, B])
    expected = np.atleast_2d(whole[np.asarray(key) if not isinstance(key, slice) else key])
    for sliced in (views[key], views[key, ...], views[key, :]):
        np.testing.assert_array_equal(sliced.concatenate().toarray(), expected)
        assert type(sliced["pandas"]) is pd.DataFrame
        assert type(sliced["polars"]) is pl.DataFrame
        assert sparse.issparse(sliced["sparse"])


def test_slices_of_slices_remember_the_rows_of_the_first():
    views = Views({"a": A})
    assert views.origin is None
    rows, n = views[[8, 6, 4, 2]][1:][[2, 0]].origin
    assert rows.tolist() == [2, 6]
    assert n == 10


def test_concatenate_is_one_plain_float_array():
    whole = Views({"a": A.astype(int), "b": pd.DataFrame(B)}).concatenate()
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(whole, np.hstack([A, B]))


def test_views_survive_pickle():
    views = pickle.loads(pickle.dumps(every_kind()[2:5]))
    assert len(views) == 3
    assert views.origin[0].tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("mapping", "error", "message"),
    [
        ({}, ValueError, "empty dict"),
        ([A, B], TypeError, "dict of name to table, received list"),
        ({0: A}, TypeError, "name of a view is text, received 0"),
        ({"a": A, "b": B[:7]}, ValueError, "View 'a' has 10 samples and view 'b' has 7"),
        ({"a": A, "b": B[:, 0]}, ValueError, r"view 'b' has to be 2-D .*shape \(10,\)\. Reshape your data"),
        ({"a": pd.Series([1.0, 2.0])}, ValueError, "Reshape your data"),
        ({"a": A[:0]}, ValueError, r"0 sample\(s\) \(shape=\(0, 2\)\) for view 'a'"),
        ({"a": A[:, :0]}, ValueError, r"0 feature\(s\) \(shape=\(10, 0\)\) for view 'a'"),
        ({"a": pl.DataFrame({"u": [1.0]}).lazy()}, TypeError, r"view 'a' is a LazyFrame.*collect\(\)"),
    ],
)
def test_views_that_make_no_sense_are_refused_in_one_sentence(mapping, error, message):
    with pytest.raises(error, match=message):
        Views(mapping)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ([10], "Row 10 is out of range for 10 samples"),
        ([-11], "Row -11 is out of range"),
        ([True, False], r"mask of rows needs shape \(10,\), received \(2,\)"),
        (([0], [1]), "indexed by rows only"),
        ([0.5], "a name, a slice, a mask or whole numbers"),
    ],
)
def test_bad_rows_are_refused(key, message):
    with pytest.raises(IndexError, match=message):
        every_kind()[key]


def test_an_unknown_view_names_its_neighbours():
    with pytest.raises(KeyError, match="no view 'panda'; did you mean 'pandas'"):
        every_kind()["panda"]


def test_views_do_not_turn_into_an_array_or_a_loop_silently():
    with pytest.raises(TypeError, match=r"several tables, not one array; use views.concatenate\(\)"):
        np.asarray(every_kind())
    with pytest.raises(TypeError, match=r"use views.concatenate\(\)"):
        StandardScaler().fit(every_kind())
    with pytest.raises(TypeError, match="not iterable"):
        list(every_kind())


class NearestByKernel(ClassifierMixin, BaseEstimator):
    """Predict the label of the training sample with the largest sum of kernels."""

    def __init__(self, bank=None):
        self.bank = bank

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.bank_ = self.bank.fit(X)
        self.y_ = np.asarray(y)
        return self

    def predict(self, X):
        return self.y_[sum(K for _, K in self.bank_.cross(X)).argmax(axis=1)]


class Identity(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):  # noqa: ARG002
        return self

    def transform(self, X):
        return X


@pytest.fixture
def problem():
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    left, right = rng.normal(y[:, None] * 3.0, 1.0, (60, 2)), rng.normal(0.0, 1.0, (60, 3))
    return Views({"left": pd.DataFrame(left, columns=["a", "b"]), "right": right}), y


def test_scikit_learn_splits_and_searches_views_like_one_array(problem):
    views, y = problem
    model = make_pipeline(Identity(), NearestByKernel(KernelBank.per_view()))
    scores = cross_val_score(model, views, y, cv=KFold(4, shuffle=True, random_state=0))
    assert scores.shape == (4,)
    assert scores.mean() > 0.85
    grid = {
        "nearestbykernel__bank": [KernelBank([("left", Gaussian())]), KernelBank([("right", Gaussian())])]
    }
    search = GridSearchCV(model, grid, cv=3).fit(views, y)
    assert search.best_index_ == 0
    assert search.predict(views).shape == (60,)


def test_scikit_learn_cuts_views_into_training_and_test_parts(problem):
    views, y = problem
    train, test, y_train, _ = train_test_split(views, y, test_size=0.25, random_state=0, stratify=y)
    assert (len(train), len(test)) == (45, 15)
    assert train["left"]["a"].iloc[0] == views["left"]["a"].iloc[train.origin[0][0]]
    assert NearestByKernel(KernelBank.distances()).fit(train, y_train).predict(test).shape == (15,)
    assert len(resample(views, n_samples=7, random_state=0)) == 7


def test_the_columns_of_a_kernel_view_follow_the_training_rows_through_cross_validation(problem):
    views, y = problem
    left = views["left"].to_numpy()
    square = Views({"k": left @ left.T, "left": left})
    folds = KFold(5, shuffle=True, random_state=3)
    by_matrix = NearestByKernel(KernelBank([("k", Precomputed())]))
    by_features = NearestByKernel(KernelBank([("left", Linear())]))
    np.testing.assert_array_equal(
        cross_val_predict(by_matrix, square, y, cv=folds), cross_val_predict(by_features, square, y, cv=folds)
    )


def test_a_distance_view_learns_its_scale_on_the_training_rows_of_a_slice(problem):
    views, _ = problem
    left = views["left"].to_numpy()
    D = np.sqrt(((left[:, None] - left[None]) ** 2).sum(axis=2))
    train, test = np.arange(0, 60, 2), np.arange(1, 60, 7)
    square = Views({"d": D})
    fitted = KernelBank([("d", ExpDistance())]).fit(square[train])
    inner = D[np.ix_(train, train)]
    gamma = inner.sum() / (30 * 29)
    (K,) = fitted.grams()
    np.testing.assert_allclose(K, np.exp(-inner / gamma))
    for new in (square[test], Views({"d": D[np.ix_(test, train)]})):
        ((_, rows),) = fitted.cross(new)
        np.testing.assert_allclose(rows, np.exp(-D[np.ix_(test, train)] / gamma))


def test_rows_may_be_absent_from_a_view(rng):
    A, B = rng.normal(size=(6, 2)), rng.normal(size=(4, 3))
    for table in (B, pd.DataFrame(B, columns=list("xyz")), pl.DataFrame(B, schema=list("xyz"))):
        views = Views({"a": A, "b": table}, rows={"b": [0, 2, 3, 5]})
        assert repr(views) == "Views(a: 6 x 2, b: 6 x 3)"
        np.testing.assert_array_equal(np.isnan(np.asarray(views["b"])).all(axis=1), [0, 1, 0, 0, 1, 0])
        np.testing.assert_array_equal(np.asarray(views["b"])[[0, 2, 3, 5]], B)
    longer = Views({"a": A[:3], "b": B}, rows={"a": [0, 1, 2], "b": np.array([1, 2, 4, 6])})
    assert longer.shape == (7, 5)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"c": [0]}, "no view 'c'"),
        ({"b": [0, 1]}, "4 different places"),
        ({"b": [0, 1, 1, 2]}, "4 different places"),
        ({"b": [0, 1, 2, -1]}, "from 0 on"),
        ({"b": [0.0, 1.0, 2.0, 3.0]}, "4 different places"),
    ],
)
def test_wrong_places_are_named(rows, message):
    with pytest.raises(ValueError, match=message):
        Views({"a": np.ones((6, 2)), "b": np.ones((4, 3))}, rows=rows)


def test_sparse_views_cannot_lack_rows():
    with pytest.raises(TypeError, match="sparse"):
        Views({"b": sparse.csr_array(np.eye(3))}, rows={"b": [0, 2, 3]})
