"""Fits on a Dask cluster of two worker processes: the model of one machine, also where a worker is lost."""

import numpy as np
import pandas as pd
import pytest

from kernelweave import KernelBank, Landmarks, MKLClassifier, MKLRegressor
from kernelweave.kernels import Gaussian, Linear

array = pytest.importorskip("dask.array", reason="needs the extra [distributed]")
frames = pytest.importorskip("dask.dataframe", reason="needs the extra [distributed]")
distributed = pytest.importorskip("dask.distributed", reason="needs the extra [distributed]")

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore:Sending large"
    ),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
BANK = KernelBank([Gaussian(width=1.0), Gaussian(width=3.0), Linear()])
N = 300


def cluster_of_two():
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )


@pytest.fixture(scope="module")
def client():
    with cluster_of_two() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def data(rng):
    X = rng.normal(size=(N, 3))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.3 * rng.normal(size=N)
    return X, score, np.array(["a", "b", "c"])[np.digitize(score, [-0.5, 0.5])]


def classifier(**params):
    return MKLClassifier(BANK, features=Landmarks(20), random_state=0, tol=1e-2, **params)


@pytest.mark.parametrize("kind", ["array", "frame", "unknown chunks"])
def test_the_model_is_that_of_one_machine(client, data, kind):
    X, score, _ = data
    y = np.digitize(score, [-0.5, 0.5])
    expected = classifier(multiclass="shared", class_weight="balanced").fit(X, y)
    A, b = array.from_array(X, (150, 3)), array.from_array(y, 150)
    table = X
    if kind == "unknown chunks":
        everything = array.ones(N, chunks=150) > 0
        A, b = A[everything], b[everything]
    if kind == "frame":
        table = pd.DataFrame(X, columns=list("abc"))
        whole = frames.from_pandas(table.assign(y=y), npartitions=3)
        A, b = whole[list("abc")], whole["y"]
    model = classifier(multiclass="shared", class_weight="balanced").fit(A, b)
    np.testing.assert_allclose(model.kernel_weights_, expected.kernel_weights_, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(table), expected.decision_function(X), atol=1e-5)
    assert model.certificate_.upper == pytest.approx(expected.certificate_.upper, rel=1e-6)


def test_a_regression_and_labels_of_text_are_learnt_on_a_cluster_too(client, data):
    X, score, y = data
    A = array.from_array(X, (150, 3))
    expected = MKLRegressor(BANK, features=Landmarks(20), random_state=0, tol=1e-6).fit(X, score)
    model = clone_of(expected).fit(A, array.from_array(score, 150))
    np.testing.assert_allclose(model.kernel_weights_, expected.kernel_weights_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-5)
    two = np.where(y == "a", "no", "yes")
    assert list(classifier().fit(A, array.from_array(two, 150)).classes_) == ["no", "yes"]


def clone_of(model):
    return type(model)(**model.get_params(deep=False))


def test_without_a_cluster_partitions_are_computed_one_after_the_other(data):
    X, _, y = data
    y = y == "a"
    expected = classifier().fit(X, y)
    model = classifier().fit(array.from_array(X, (150, 3)), array.from_array(y, 150))
    np.testing.assert_allclose(model.kernel_weights_, expected.kernel_weights_, atol=1e-6)


def test_partitions_that_do_not_fit_are_named(client, data):
    X, _, y = data
    y = y == "a"
    A, b = array.from_array(X, (150, 3)), array.from_array(y, 150)
    with pytest.raises(ValueError, match=r"rechunk\(\{1: -1\}\)"):
        classifier().fit(array.from_array(X, (150, 2)), b)
    with pytest.raises(ValueError, match="X has 2 partitions and y has 3"):
        classifier().fit(A, array.from_array(y, 100))
    with pytest.raises(ValueError, match="labels of a Dask collection are one too"):
        classifier().fit(A, y)
    broken = X.copy()
    broken[200] = np.nan
    with pytest.raises(ValueError, match=r"NaN|no view"):
        classifier().fit(array.from_array(broken, (150, 3)), b)
