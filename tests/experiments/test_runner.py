"""Cells are run once, wherever and whenever the run stops."""

import os
import signal
import subprocess
import sys
import time

import pytest
from tests.experiments.toy import METHODS, TITLES, toy

from kernelweave.errors import DataError
from kernelweave.experiments import Store, experiments, run
from kernelweave.experiments.render import write
from kernelweave.experiments.study import Study
from kernelweave.experiments.views import Scores
from kernelweave.experiments.views.split_values import split_values


def marks(folder):
    return {file.name: len(file.read_text()) for file in folder.iterdir()}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "marks").mkdir()
    return tmp_path


def test_every_cell_is_measured_once_and_kept(place):
    store, seen = Store(place / "s.sqlite"), []
    records = run(toy(place / "marks"), store, done=lambda count, total: seen.append((count, total)))
    assert len(records) == 24
    assert set(marks(place / "marks").values()) == {1}
    assert seen == [(count, 24) for count in range(25)]
    again = run(toy(place / "marks"), store)
    assert again == records
    assert set(marks(place / "marks").values()) == {1}


def test_quick_cells_count_for_the_full_run(place):
    store = Store(place / "s.sqlite")
    assert len(run(toy(place / "marks"), store, quick=True)) == 6
    assert len(run(toy(place / "marks"), store)) == 24
    assert len(run(toy(place / "marks"), store, quick=True)) == 6
    assert set(marks(place / "marks").values()) == {1}


def test_workers_give_the_same_numbers(place):
    one = run(toy(place / "marks"), Store(place / "a.sqlite"))
    two = run(toy(place / "marks"), Store(place / "b.sqlite"), n_jobs=2)
    assert one == two


SCRIPT = """
import sys
from tests.experiments.toy import METHODS, TITLES, toy
from kernelweave.experiments import Store, run
run(toy(sys.argv[1], pause=0.05), Store(sys.argv[2]))
"""


def start(place):
    command = [sys.executable, "-c", SCRIPT, str(place / "marks"), str(place / "s.sqlite")]
    return subprocess.Popen(command, cwd=os.getcwd())


def test_a_killed_run_goes_on_without_repeating_and_with_the_same_numbers(place):
    process = start(place)
    deadline = time.monotonic() + 60
    while not (place / "s.sqlite").exists() or len(Store(place / "s.sqlite").done("toy", "1")) < 3:
        assert time.monotonic() < deadline, "the run did not start"
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    store = Store(place / "s.sqlite")
    kept = len(store.done("toy", "1"))
    assert 3 <= kept < 24
    before = marks(place / "marks")
    records = run(toy(place / "marks"), store)
    after = marks(place / "marks")
    assert len(records) == 24
    # only the cell that was being measured when the run died may have been measured twice
    assert sum(after[name] > 1 for name in before) <= 1
    assert sum(after.values()) <= 25
    (place / "fresh").mkdir()
    assert records == run(toy(place / "fresh"), Store(place / "fresh.sqlite"))


def test_two_runs_at_once_share_a_store(place):
    first, second = start(place), start(place)
    assert first.wait(timeout=120) == 0
    assert second.wait(timeout=120) == 0
    assert len(Store(place / "s.sqlite").records("toy", "1")) == 24


def test_missing_data_is_named_before_anything_is_run(place):
    with pytest.raises(DataError, match=r"heart\.npz, tiger\.npz not in"):
        run(
            toy(place / "marks", datasets=("heart", "tiger")),
            Store(place / "s.sqlite"),
            data=place,
        )
    assert marks(place / "marks") == {}


def test_tables_come_as_markdown_and_html_with_the_printed_figures(place):
    pytest.importorskip("matplotlib")
    chosen = toy(place / "marks")
    records = run(chosen, Store(place / "s.sqlite"))
    files = write(chosen, records, place / "out", command="do it", contexts=[{"numpy": "2"}])
    assert {file.suffix for file in files} == {".md", ".html", ".svg"}
    text = (place / "out" / "toy.md").read_text()
    assert "[80.00 ± 1.00]" in text  # as printed
    assert "**Accuracy in %: mean ± standard deviation over 4 splits (rank); in brackets the printed" in text
    assert "0 of 1 means lie within one printed standard deviation" in text
    assert "81.50 ± 1.29 (3)" in text  # 0.8 + 0.01 * mean(0, 1, 2, 3), the worst of three
    assert "[3.0]" in text
    assert "Friedman" in text
    assert "numpy 2" in text
    page = (place / "out" / "toy.html").read_text()
    assert "It is &lt;not&gt; in print." in page
    assert "<script" not in page


def test_captions_name_the_measure_and_nothing_is_said_of_figures_that_are_not_printed():
    records = [
        {"dataset": name, "split": split, "method": method, "accuracy": 0.5, "roc_auc": 0.6}
        for name in TITLES
        for split in range(2)
        for method in METHODS
    ]
    plain = Scores("accuracy", TITLES, METHODS, {}, baseline="one")
    named = Scores("roc_auc", TITLES, METHODS, {}, baseline="one", label="area under the curve")
    for view, name in ((plain, "Accuracy in %"), (named, "Area under the curve in %")):
        scores, differences = view.tables(records)
        assert scores.title == f"{name}: mean ± standard deviation over 2 splits (rank)"
        assert differences.title.startswith(f"{name}: difference to one, split by split")
        assert [row[0] for row in scores.rows] == ["Set A", "Set B", "average rank"]
        assert not any("printed" in remark for remark in scores.remarks)


def test_tables_of_one_experiment_have_captions_of_their_own():
    metrics = experiments()["itml-plus"]
    records = [
        cell | {"average_precision": 0.5, "roc_auc": 0.6, "relative_gap": 0.0}
        for cell in metrics.study.cells(quick=True)
    ]
    titles = [table.title for table in metrics.tables(records)]
    assert len(set(titles)) == len(titles) == 4


def test_means_near_the_printed_ones_are_counted():
    records = [
        {"dataset": dataset, "split": split, "method": method, "accuracy": 0.8 + 0.01 * split}
        for dataset in ("a", "b")
        for split in range(3)
        for method in ("one", "two", "three")
    ]
    printed = {"a": {"one": (80.5, 1.0)}, "b": {"one": (85.0, 1.0), "two": (80.0, 1.0)}}  # ours: 81
    view = Scores("accuracy", {"a": "A", "b": "B"}, ("one", "two", "three"), printed, baseline="one")
    remarks = next(iter(view.tables(records))).remarks
    assert remarks[0].startswith("2 of 3 means lie within one printed standard deviation")


@pytest.mark.parametrize("one", experiments().values(), ids=lambda e: e.id)
def test_every_experiment_has_its_cells_and_its_words(one):
    study: Study = one.study
    full, quick = study.cells(quick=False), study.cells(quick=True)
    assert 0 < len(quick) < len(full)
    keys = {tuple(sorted(cell.items())) for cell in full}
    assert len(keys) == len(full)
    assert all(tuple(sorted(cell.items())) in keys for cell in quick)
    assert one.title
    assert one.source
    assert study.protocol


def test_an_unfinished_run_is_shown_on_the_splits_all_methods_have():
    records = [
        {"dataset": "a", "split": split, "method": method, "accuracy": 0.1 * split}
        for method, splits in {"one": (0, 1, 2), "two": (1, 2)}.items()
        for split in splits
    ]
    records += [{"dataset": "b", "split": 0, "method": "one", "accuracy": 0.0}]
    found = split_values(records, "accuracy", ("one", "two", "three"), ("a", "b"))
    assert found.rows == ("a",)
    assert found.methods == ("one", "two")
    assert found.values["a", "one"] == found.values["a", "two"] == (0.1, 0.2)
    assert found.count == "2"
