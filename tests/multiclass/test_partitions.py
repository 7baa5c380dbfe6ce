"""Training on partitions, on batches from files, and on a cluster that loses a worker."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from tests.reference.pnorm import pnorm_optimum

from kernelweave import KernelBank, ObscureClassifier, RandomFourier, batches
from kernelweave.kernels import Gaussian, Linear
from kernelweave.solvers import DualAscent


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900] / 16.0, y[:900]


def model(tol=1e-2):
    bank = KernelBank.per_view([Gaussian()], views={"up": slice(0, 32), "down": slice(32, 64)})
    return ObscureClassifier(
        bank, C=1.0, p=1.5, features=RandomFourier(60), solver=DualAscent(tol=tol), random_state=0
    )


def test_partitions_solve_the_problem_of_the_whole(rng):
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)
    X[:, 0] += y
    bank = KernelBank([Linear(), Gaussian(gamma=0.2)])
    one = ObscureClassifier(bank, features=RandomFourier(20), solver=DualAscent(tol=1e-2), random_state=0)
    one.fit_partitions(np.array_split(X, 3), np.array_split(y, 3))
    assert one.duality_gap_ <= 1e-2
    Phi = one.scorer_.features.transform(X)
    ends = one.scorer_.features.offsets
    Ks = [Phi[:, a:b] @ Phi[:, a:b].T for a, b in pairwise(ends)]
    optimum = pnorm_optimum(Ks, y, 1.0, 1.5)
    assert one.bounds_.lower <= optimum * (1 + 1e-8)
    assert optimum <= one.bounds_.upper * (1 + 1e-8)
    f = one.decision_function(X)
    loss = np.maximum(0, 1 + np.sort(np.where(np.eye(3)[y] > 0, -np.inf, f))[:, -1] - f[np.arange(90), y])
    value = np.linalg.norm(one.kernel_norms_, 1.5) ** 2 / (2 * 90) + loss.mean()
    assert value == pytest.approx(one.objective_)


def test_the_way_samples_are_cut_changes_the_way_not_the_optimum(digits):
    X, y = digits
    found = [model().fit_partitions(np.array_split(X, k), np.array_split(y, k)) for k in (1, 3)]
    assert found[0].duality_gap_ <= 1e-2
    assert found[1].score(X, y) > 0.9


def test_partitions_need_features_and_agreeing_labels(digits):
    X, y = digits
    with pytest.raises(ValueError, match="needs explicit features"):
        ObscureClassifier().fit_partitions([X], [y])
    with pytest.raises(ValueError, match="X has 1 partitions and y has 2"):
        model().fit_partitions([X], [y, y])
    with pytest.raises(TypeError, match="Dask array or frame, or a list"):
        model().fit_partitions(X, y)
    with pytest.raises(ValueError, match="1 class only"):
        model().fit_partitions([X], [0 * y])
    with pytest.warns(ConvergenceWarning, match="max_rounds=1"):
        model(1e-6).fit_partitions([X], [y], max_rounds=1)


def test_batches_come_from_arrays_memory_maps_and_parquet(digits, tmp_path):
    X, y = digits
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    frame = pd.DataFrame(X, columns=[f"pixel {k}" for k in range(64)]).assign(label=y)
    frame.to_parquet(tmp_path / "digits.parquet")
    sources = {
        "array": (X, y),
        "map": (tmp_path / "X.npy", tmp_path / "y.npy"),
        "parquet": (tmp_path / "digits.parquet", "label"),
    }
    values = {}
    for name, source in sources.items():
        stream = ObscureClassifier(KernelBank([Gaussian()]), features=RandomFourier(50), random_state=0)
        for part, labels in batches(*source, size=200):
            stream.partial_fit(part, labels, classes=range(10))
        values[name] = stream.decision_function(frame.drop(columns="label") if name == "parquet" else X)
        assert stream.score(X if name != "parquet" else frame.drop(columns="label"), y) > 0.8
    np.testing.assert_allclose(values["array"], values["map"], atol=1e-12)
    np.testing.assert_allclose(values["array"], values["parquet"], atol=1e-12)
    with pytest.raises(ValueError, match="name of the column"):
        next(batches(tmp_path / "digits.parquet", y))


def test_batches_come_from_dask(digits):
    array = pytest.importorskip("dask.array", reason="needs the extra [distributed]")
    X, y = digits
    A, b = array.from_array(X, chunks=(300, 64)), array.from_array(y, chunks=300)
    parts = list(batches(A, b, size=200))
    assert [len(labels) for _, labels in parts] == [200, 100] * 3
    np.testing.assert_array_equal(np.vstack([part for part, _ in parts]), X)
    with pytest.raises(ValueError, match="rechunk"):
        list(batches(array.from_array(X, chunks=(300, 32)), b))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore:Sending large")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_that_loses_a_worker_gives_the_same_model(digits):
    array = pytest.importorskip("dask.array", reason="needs the extra [distributed]")
    distributed = pytest.importorskip("dask.distributed", reason="needs the extra [distributed]")
    X, y = digits
    expected = model(3e-2).fit_partitions(np.array_split(X, 3), np.array_split(y, 3))
    A, b = array.from_array(X, chunks=(300, 64)), array.from_array(y, chunks=300)
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rounds, real = [], client.gather

        def gather(values, *args, **kwargs):
            rounds.append(1)
            if len(rounds) == 3:  # in the middle of a round, its work already given out
                next(iter(cluster.workers.values())).process.process.kill()
            return real(values, *args, **kwargs)

        client.gather = gather
        found = model(3e-2).fit_partitions(A, b, client=client)
    assert len(rounds) > 3
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-9)
    assert found.bounds_ == pytest.approx(expected.bounds_, rel=1e-9)
