"""What was put is there whatever happens, and of two the first stays."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelweave.errors import DataError
from kernelweave.experiments import Store
from kernelweave.experiments.store import key

CELL = {"dataset": "a", "split": 1}


def test_records_come_back_as_they_were_put(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    store.put("study", "p", CELL, {"accuracy": 0.1 + 0.2}, {"numpy": "2"})
    again = Store(tmp_path / "s.sqlite")
    assert again.records("study", "p") == [{**CELL, "accuracy": 0.1 + 0.2}]
    assert again.done("study", "p") == {key(CELL)}
    assert again.contexts("study", "p") == [{"numpy": "2"}]


def test_other_studies_and_protocols_do_not_count(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    store.put("study", "p", CELL, {"accuracy": 0.5}, {})
    assert store.records("study", "q") == []
    assert store.done("other", "p") == set()


def test_the_first_of_two_records_stays(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    for value in (0.5, 0.6):
        store.put("study", "p", dict(reversed(CELL.items())), {"accuracy": value}, {})
    assert [record["accuracy"] for record in store.records("study", "p")] == [0.5]


def test_many_writers_at_once_lose_nothing(tmp_path):
    def write(split):
        Store(tmp_path / "s.sqlite").put("study", "p", {"split": split}, {"accuracy": split}, {})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(60)))
    assert len(Store(tmp_path / "s.sqlite").records("study", "p")) == 60


def test_records_survive_export(tmp_path):
    first, second = Store(tmp_path / "a.sqlite"), Store(tmp_path / "b.sqlite")
    first.put("study", "p", CELL, {"accuracy": 0.5}, {"numpy": "2"})
    second.restore(first.export("study", "p"))
    assert second.records("study", "p") == first.records("study", "p")
    with pytest.raises(DataError, match="no exported record"):
        second.restore(["{}"])


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be taken for one" * 20])
def test_a_broken_store_is_named(tmp_path, content):
    file = tmp_path / "s.sqlite"
    file.write_bytes(content)
    with pytest.raises(DataError, match=r"cannot be used .*; give another --store, or delete it"):
        Store(file)


def test_a_store_of_another_format_is_named(tmp_path):
    file = tmp_path / "s.sqlite"
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(DataError, match="format 7, this version writes 1"):
        Store(file)


def test_a_store_without_a_folder_is_named(tmp_path):
    with pytest.raises(DataError, match="its folder does not exist"):
        Store(tmp_path / "nowhere" / "s.sqlite")
