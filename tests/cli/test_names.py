"""Names of files, columns and classes are the user's: they come back as they were written."""

import io
import json

import pytest
from rich.console import Console
from tests.cli.typed import frame, run

from kernelweave.cli import progress
from kernelweave.estimators.progress import gap_bars

pytest.importorskip("skops")


def test_brackets_and_colons_in_names_are_printed_as_they_are(tmp_path):
    file = tmp_path / "a[bold].csv"
    frame().rename(columns={"a1": "[/b]", "a2": "x:a:y"}).to_csv(file, index=False)
    for word, title in ((file, "60 rows of a[bold]"), (f"[/b]={file}", "60 rows of [/b]")):
        done = run("fit", word, "--target", "label", "--view", "[i]=[/b],x:a:y", "--model", tmp_path / "m.kw")
        assert done.exit_code == 0, done.output
        for words in (title, "view [i]", "[/b], x:a:y"):
            assert words in done.output
            assert words in run("inspect", tmp_path / "m.kw").output


def test_bars_take_any_name(monkeypatch):
    monkeypatch.setattr(progress, "Console", lambda **_: Console(file=io.StringIO(), force_terminal=True))
    with progress.fits_bar(True) as begin:
        begin(1)("without [/b]")
    monkeypatch.setattr("rich._console", Console(file=io.StringIO(), force_terminal=True))
    with gap_bars(1) as bar:
        bar("class [/b]", 1e-4)


@pytest.mark.parametrize(
    "classes", [("None", "Some"), ("NA", "nan"), ("01", "02"), ("true", "false"), ("1", "2"), ("-0.5", "x")]
)
def test_classes_come_back_as_they_were_written(classes, tmp_path):
    table, one, two = frame(classes=classes), tmp_path / "one.csv", tmp_path / "two.csv"
    table.to_csv(one, index=False)
    table.drop(columns=["label", "b1"]).to_csv(two, index=False)
    for files, target in (([one], "label"), ([one, two], "one:label")):
        done = run("fit", *files, "--target", target, "--id", "key", "--model", tmp_path / "m.kw", "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["classes"] == table["label"].value_counts().to_dict()
        lines = run("predict", tmp_path / "m.kw", *files).stdout.splitlines()[1:]
        assert {line.split(",")[1] for line in lines} == set(classes)


def test_numbers_are_numbers_and_a_cell_without_one_is_empty(tmp_path):
    file = tmp_path / "t.csv"
    words = ["fit", file, "--target", "amount", "--view", "v=a*", "--model", tmp_path / "m.kw"]
    amounts = [f"{k / 10:.2f}" for k in range(60)]
    frame().assign(amount=amounts).to_csv(file, index=False)
    assert "amount (regression)" in run(*words).output
    frame().assign(amount=["NA", "", *amounts[2:]]).to_csv(file, index=False)
    assert "2 empty cells" in run(*words).stderr


def test_ids_may_be_words_that_stand_for_nothing_elsewhere(tmp_path):
    table = frame().assign(key=["NA", "None", "nan", *frame()["key"][3:]])
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--target", "label", "--id", "key", "--model", tmp_path / "m.kw"]
    assert run("fit", tmp_path / "t.csv", *words).exit_code == 0
    lines = run("predict", tmp_path / "m.kw", tmp_path / "t.csv").stdout.splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == table["key"].tolist()
