"""Models on explicit features on a cluster: one machine's answer, a worker that dies, a cluster that does."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kernelweave import KernelBank, Landmarks, MKLClassifier, MKLRegressor
from kernelweave.estimators.sample_blocks import ClusterBlocks
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import Square, SquaredHinge

array = pytest.importorskip("dask.array", reason="needs the extra [distributed]")
distributed = pytest.importorskip("dask.distributed", reason="needs the extra [distributed]")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
BANK = KernelBank([Gaussian(width=1.0), Gaussian(width=3.0), Linear()])
LIMIT = 120  # seconds until a fit counts as hanging


@pytest.fixture
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


def problem(n=500):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + X[:, 1] ** 2 - 1.0 + 0.3 * rng.normal(size=n)
    return X, score, np.where(score > 0.0, "yes", "no")


def in_chunks(*tables):
    return [array.from_array(one, chunks=(100, *one.shape[1:])) for one in tables]


def classifier():
    return MKLClassifier(BANK, learner=SquaredHinge(), features=Landmarks(20), tol=1e-8, random_state=0)


def within_the_limit(work):
    """Return what a function returns, or raise what it raises; fail if it does not end."""
    done = threading.Event()
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    future.add_done_callback(lambda _: done.set())
    pool.shutdown(wait=False)
    assert done.wait(LIMIT), f"the fit had not ended after {LIMIT} seconds"
    return future.result()


def at_pass(number, monkeypatch, act):
    """Do something when so many passes have begun; return the list that grows by one with each."""
    usual, begun = ClusterBlocks._result, []

    def result(self, future):
        begun.append(1)
        if len(begun) == number:
            act()
        return usual(self, future)

    monkeypatch.setattr(ClusterBlocks, "_result", result)
    return begun


def kill(*nannies):
    for nanny in nannies:
        nanny.process.process.kill()


def test_two_workers_find_what_one_machine_does(cluster):
    X, score, y = problem()
    Xs, ys, scores = in_chunks(X, y, score)
    alone, found = classifier().fit(X, y), within_the_limit(lambda: classifier().fit(Xs, ys))
    np.testing.assert_allclose(found.kernel_weights_, alone.kernel_weights_, atol=1e-6)
    np.testing.assert_allclose(found.decision_function(X), alone.decision_function(X), atol=1e-5)
    assert list(found.classes_) == ["no", "yes"]
    how = {"learner": Square(), "features": Landmarks(20), "tol": 1e-8, "random_state": 0}
    alone = MKLRegressor(BANK, **how).fit(X, score)
    found = within_the_limit(lambda: MKLRegressor(BANK, **how).fit(Xs, scores))
    np.testing.assert_allclose(found.kernel_weights_, alone.kernel_weights_, atol=1e-6)


@pytest.mark.parametrize("n_killed", [1, 2])
def test_a_fit_survives_workers_that_are_killed(cluster, monkeypatch, n_killed):
    X, _, y = problem()
    begun = at_pass(4, monkeypatch, lambda: kill(*list(cluster.workers.values())[:n_killed]))
    found = within_the_limit(lambda: classifier().fit(*in_chunks(X, y)))
    assert len(begun) > 4
    np.testing.assert_allclose(found.kernel_weights_, classifier().fit(X, y).kernel_weights_, atol=1e-6)


@pytest.mark.parametrize("what", ["scheduler", "workers"])
def test_a_cluster_that_is_gone_is_said_in_one_sentence(cluster, monkeypatch, what):
    monkeypatch.setattr("kernelweave.estimators.sample_blocks.PATIENCE", 0.3)
    X, _, y = problem()
    stop = {"scheduler": cluster.close, "workers": lambda: cluster.scale(0)}[what]
    at_pass(2, monkeypatch, stop)
    with pytest.raises(ConnectionError, match=r"The Dask cluster is gone: .*; start it again and fit once more\.$"):
        within_the_limit(lambda: classifier().fit(*in_chunks(X, y)))
