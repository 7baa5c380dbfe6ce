"""The command line, as a user types it."""

import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from kernelweave.cli import app


@pytest.fixture
def run():
    return lambda *words: CliRunner().invoke(app, list(words), env={"COLUMNS": "120"})


def test_the_demo_compares_with_the_baselines_and_writes_the_report(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo", "--splits", "2")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "kernelweave-report.html").read_text(encoding="utf-8")
    assert f"Report: {tmp_path / 'kernelweave-report.html'}" in result.output.replace("\n", "")
    assert "Breast cancer: three views" in page
    assert len(page.encode()) < 5_000_000
    for method in ("MKL, simplex", "average kernel", "best single kernel", "concatenation"):
        assert method in result.output
    assert "worst·laplacian(scale=1)" in result.output
    assert "█" in result.output
    assert "relative duality gap" in result.output


def test_the_demo_scores_every_method_on_the_same_splits():
    import numpy as np
    from rich.console import Console

    from kernelweave import demo

    scores = demo.run(2, Console(quiet=True))
    assert len(scores) == 7
    for score in scores.values():
        assert score.accuracy.shape == (2,)
        assert (score.accuracy > 0.85).all()
        assert score.gap <= 1e-3
    assert scores["best single kernel"].kernels == 1.0
    assert np.isclose(scores["average kernel"].kernels, 9.0)


def test_the_demo_says_at_once_that_it_cannot_write(run, tmp_path):
    result = run("demo", "--report", str(tmp_path / "none" / "r.html"))
    assert result.exit_code == 2
    assert "There is no folder" in result.stderr


def test_too_few_splits_are_a_mistake_of_the_user(run):
    result = run("demo", "--splits", "1")
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_it_knows_its_version(run):
    assert run("version").output.strip() == version("kernelweave")


def test_the_command_is_installed():
    out = subprocess.run(
        [sys.executable, "-m", "kernelweave", "--help"], capture_output=True, text=True, check=True
    )
    assert "demo" in out.stdout
