"""Experiments on a Dask cluster: ``kernelweave reproduce ID --cluster ADDRESS``."""

import threading

import pytest
from tests.experiments.toy import Toy, toy

from kernelweave.errors import DataError
from kernelweave.experiments import Store, run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture
def address():
    distributed = pytest.importorskip("dask.distributed", reason="needs the extra [distributed]")
    how = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0", "processes": False}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **how) as cluster:
        yield cluster.scheduler_address


def test_a_cluster_measures_every_cell_once_with_the_same_numbers(tmp_path, address, monkeypatch):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here = run(toy(tmp_path / "here"), Store(tmp_path / "here.sqlite"))
    seen, threads, measure = [], [], Toy.measure

    def watched(study, cell, data):
        threads.append(threading.current_thread().name)
        return measure(study, cell, data)

    monkeypatch.setattr(Toy, "measure", watched)
    store = Store(tmp_path / "there.sqlite")
    there = run(
        toy(tmp_path / "there"), store, cluster=address, done=lambda count, total: seen.append((count, total))
    )
    assert there == here
    assert len(threads) == 24
    assert all("Dask" in name for name in threads)  # its workers' threads, not ours
    assert {len(file.read_text()) for file in (tmp_path / "there").iterdir()} == {1}
    assert seen == [(count, 24) for count in range(25)]
    assert run(toy(tmp_path / "there"), store, cluster=address) == here


def test_an_address_where_nobody_listens_is_named(tmp_path, monkeypatch):
    distributed = pytest.importorskip("dask.distributed", reason="needs the extra [distributed]")
    real = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, timeout: real(address, timeout=timeout / 20))
    with pytest.raises(DataError, match=r"No Dask cluster at '127.0.0.1:1'"):
        run(toy(tmp_path), Store(tmp_path / "s.sqlite"), cluster="127.0.0.1:1")
