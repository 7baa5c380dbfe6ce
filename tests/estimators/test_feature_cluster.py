"""Models on explicit features on a cluster: one machine's answer, a worker that dies, a cluster that does."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from kernelweave import KernelBank, Landmarks, MKLClassifier, MKLRegressor
from kernelweave.estimators.sample_blocks import ClusterBlocks
from kernelweave.kernels import Gaussian, Linear
from kernelweave.learners import Square, SquaredHinge

array = pytest.importorskip("dask.array", reason="needs the extra [distributed]")
distributed = pytest.importorskip("dask.distributed", reason="needs the extra [distributed]")
psutil = pytest.importorskip("psutil", reason="needs the extra [distributed]")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
BANK = KernelBank([Gaussian(width=1.0), Gaussian(width=3.0), Linear()])
LIMIT = 120  # seconds until a fit counts as hanging


@contextmanager
def two_workers(*, processes):
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=processes,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
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


def during_passes(monkeypatch, **acts):
    """Do something while the passes of these numbers run; return a list that grows by one with each pass."""
    usual, begun = ClusterBlocks._result, []

    def result(self, future):
        begun.append(1)
        acts.get(f"pass_{len(begun)}", lambda: None)()
        return usual(self, future)

    monkeypatch.setattr(ClusterBlocks, "_result", result)
    return begun


def test_two_workers_find_what_one_machine_does_though_both_are_killed_on_the_way(monkeypatch):
    X, score, y = problem()
    Xs, ys, scores = in_chunks(X, y, score)
    with two_workers(processes=True) as cluster:
        one, other = (psutil.Process(nanny.pid) for nanny in cluster.workers.values())
        how = {"learner": Square(), "features": Landmarks(20), "tol": 1e-8, "random_state": 0}
        found = within_the_limit(lambda: MKLRegressor(BANK, **how).fit(Xs, scores))
        np.testing.assert_allclose(
            found.kernel_weights_, MKLRegressor(BANK, **how).fit(X, score).kernel_weights_, atol=1e-6
        )
        begun = during_passes(monkeypatch, pass_4=one.kill, pass_7=other.kill)
        found, alone = within_the_limit(lambda: classifier().fit(Xs, ys)), classifier().fit(X, y)
    assert len(begun) > 7
    assert not one.is_running()
    assert not other.is_running()
    np.testing.assert_allclose(found.kernel_weights_, alone.kernel_weights_, atol=1e-6)
    np.testing.assert_allclose(found.decision_function(X), alone.decision_function(X), atol=1e-5)
    assert list(found.classes_) == ["no", "yes"]


@pytest.mark.parametrize("what", ["scheduler", "workers"])
def test_a_cluster_that_is_gone_is_said_in_one_sentence(monkeypatch, what):
    monkeypatch.setattr("kernelweave.estimators.sample_blocks.PATIENCE", 0.3)
    X, _, y = problem()
    with two_workers(processes=False) as cluster:
        during_passes(
            monkeypatch, pass_2={"scheduler": cluster.close, "workers": lambda: cluster.scale(0)}[what]
        )
        with pytest.raises(
            ConnectionError, match=r"^The Dask cluster is gone: .*; start it again and fit once more\.$"
        ):
            within_the_limit(lambda: classifier().fit(*in_chunks(X, y)))
