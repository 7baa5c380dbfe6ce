"""Names of files, columns and classes are the user's: they come back as they were written."""

import io

import pytest
from rich.console import Console
from tests.command.typed import frame, run

from kernelweave.command import waiting
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
    monkeypatch.setattr(waiting, "Console", lambda **_: Console(file=io.StringIO(), force_terminal=True))
    with waiting.fits_bar(True) as begin:
        begin(1)("without [/b]")
    monkeypatch.setattr("rich._console", Console(file=io.StringIO(), force_terminal=True))
    with gap_bars(1) as bar:
        bar("class [/b]", 1e-4)
