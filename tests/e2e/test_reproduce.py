"""The experiments from the command line: lists, mistakes, a run, its page."""

import json
from pathlib import Path

import pytest
from tests.experiments.toy import toy
from typer.testing import CliRunner

from kernelweave.cli import app
from kernelweave.experiments import Store, command, experiments, render, study
from kernelweave.experiments.render import results_page


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture
def only_toy(tmp_path, monkeypatch):
    (tmp_path / "marks").mkdir()
    chosen = {"toy": toy(tmp_path / "marks")}
    for module in (study, command, render):
        monkeypatch.setattr(module, "experiments", lambda: chosen)
    return tmp_path


def test_without_an_id_all_are_listed():
    done = call("reproduce")
    assert done.exit_code == 0
    assert all(name in done.output for name in experiments())


def test_mistakes_get_one_sentence(tmp_path):
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"no database" * 100)
    store = tmp_path / "s.sqlite"
    for words, sentence in {
        ("reproduce", "sm-tabel1"): "Did you mean 'sm-table1'?",
        ("reproduce", "sm-table1", "--data", tmp_path, "--store", store): "heart.npz",
        ("reproduce", "sm-table1", "--data", tmp_path / "no", "--store", store): "does not exist",
        ("reproduce", "sm-table1", "--store", broken): "give another --store",
        ("reproduce", "sm-table1", "--records", tmp_path / "no", "--store", store): "no folder of records",
        ("reproduce", "ob-digits", "--jobs", "0", "--store", store): "got 0 (--jobs)",
        (
            *("results", "--records", tmp_path / "r", "--out", tmp_path / "p"),
            *("--store", tmp_path / "typo.sqlite"),
        ): "There is no store",
        (
            "results",
            "--records",
            tmp_path / "r",
            "--store",
            broken,
            "--out",
            tmp_path / "p",
        ): "another --store",
    }.items():
        done = call(*words)
        assert done.exit_code == 2, done.output
        lines = [line for line in done.stderr.splitlines() if line]
        assert len(lines) == 1
        assert sentence in lines[0]


def test_a_run_prints_its_tables_and_its_records_make_the_page(only_toy):
    pytest.importorskip("matplotlib")
    store, out, records = only_toy / "s.sqlite", only_toy / "out", only_toy / "records"
    done = call("reproduce", "toy", "--store", store, "--out", out)
    assert done.exit_code == 0, done.output
    assert "Set A" in done.output
    assert "24/24" in done.output
    assert (out / "toy.html").exists()
    page = only_toy / "results.md"
    assert call("results", "--store", store, "--records", records, "--out", page).exit_code == 0
    assert "## toy" in page.read_text()
    assert "Begun" not in page.read_text()
    lines = (records / "toy.jsonl").read_text().splitlines()
    assert len(lines) == 24
    assert json.loads(lines[0])["study"] == "toy"
    first = page.read_text()
    fresh = only_toy / "fresh.sqlite"
    assert call("reproduce", "toy", "--store", fresh, "--out", out, "--records", records).exit_code == 0
    assert {len(mark.read_text()) for mark in (only_toy / "marks").iterdir()} == {1}  # nothing was run again
    assert call("results", "--records", records, "--out", page).exit_code == 0  # from the records alone
    assert page.read_text() == first


def test_the_results_page_is_what_the_records_say(tmp_path):
    """No figure of it is typed: made again from the records it is the same."""
    pytest.importorskip("matplotlib")
    docs = Path(__file__).parents[2] / "docs"
    store = Store(tmp_path / "s.sqlite")
    for file in sorted((docs / "records").glob("*.jsonl")):
        store.restore(file.read_text(encoding="utf-8").splitlines())
    assert results_page(store, tmp_path) == (docs / "results.md").read_text(encoding="utf-8")


def test_what_is_begun_is_named_and_not_shown(only_toy):
    store, records, page = only_toy / "s.sqlite", only_toy / "records", only_toy / "results.md"
    call("reproduce", "toy", "--quick", "--store", store, "--out", only_toy / "out")
    assert call("results", "--store", store, "--records", records, "--out", page).exit_code == 0
    assert "toy (6 of 24 cells)" in page.read_text()
    assert "## toy" not in page.read_text()


def test_cells_of_another_grid_do_not_count(only_toy):
    store = Store(only_toy / "s.sqlite")
    call("reproduce", "toy", "--quick", "--store", only_toy / "s.sqlite", "--out", only_toy / "out")
    for split in range(100, 130):  # of a run with more splits, under the same protocol
        store.put("toy", "1", {"dataset": "a", "split": split, "method": "one"}, {"accuracy": 0.0}, {})
    page = only_toy / "results.md"
    words = ("--store", only_toy / "s.sqlite", "--records", only_toy / "records", "--out", page)
    assert call("results", *words).exit_code == 0
    assert "toy (6 of 24 cells)" in page.read_text()


def test_all_runs_what_has_its_data(only_toy):
    done = call("reproduce", "all", "--quick", "--store", only_toy / "s.sqlite", "--out", only_toy / "out")
    assert done.exit_code == 0, done.output
    assert "6/6" in done.output
