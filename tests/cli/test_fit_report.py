"""fit --report writes a page about the model, and says what it kept when it is stopped."""

import json
import os
import signal

import pytest
from tests.cli.typed import frame, run

from kernelweave import MKLClassifier, load

pytest.importorskip("skops")
pytest.importorskip("jinja2")


@pytest.fixture
def words(tmp_path):
    frame(40).to_csv(tmp_path / "t.csv", index=False)
    views = ["--view", "a=a1,a2", "--view", "b=b*", "--bank", "linear"]
    out = ["--model", tmp_path / "m.kw", "--report", tmp_path / "r.html"]
    return ["fit", tmp_path / "t.csv", "--target", "label", "--id", "key", *views, *out]


def test_the_page_names_the_files_the_columns_and_the_rows(words, tmp_path):
    done = run(*words)
    assert done.exit_code == 0, done.output
    assert "Model written to" in done.output
    assert "Report written to" in done.output
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for text in (
        "label, from t",
        "View a",
        "a1, a2",
        "z-scores",
        "default",
        "average kernel",
        "concatenation",
    ):
        assert text in page
    assert any(f'<th scope="row">{k:03d}</th>' in page for k in range(40))
    assert json.loads(run(*words, "--json").stdout)["report"] == str(tmp_path / "r.html")


def test_ctrl_c_during_the_report_keeps_the_model_and_says_so(words, tmp_path, monkeypatch):
    fits, fit = [], MKLClassifier.fit

    def press(self, *args):
        fits.append(self)
        done = fit(self, *args)
        if len(fits) == 3:
            try:  # a fit that catches the interrupt and stops early
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                return done
        return done

    monkeypatch.setattr(MKLClassifier, "fit", press)
    done = run(*words)
    assert done.exit_code == 130
    assert "m.kw is written" in done.stderr
    assert "r.html is not" in done.stderr
    assert len(fits) == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.kw", "t.csv"]
    assert load(tmp_path / "m.kw").kernel_weights_.shape == (2,)


def test_a_disk_that_fills_up_at_the_report_keeps_the_model(words, tmp_path, monkeypatch):
    calls, sync = [], os.fsync

    def full(number):
        calls.append(number)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        sync(number)

    monkeypatch.setattr(os, "fsync", full)
    done = run(*words)
    assert done.exit_code == 2
    sentence = f"kernelweave: {tmp_path / 'r.html'} cannot be written: No space left on device."
    assert done.stderr.strip() == sentence
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.kw", "t.csv"]
