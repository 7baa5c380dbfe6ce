"""Ctrl-C as the system sends it, to the command as it is installed."""

import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import kernelweave

pytest.importorskip("skops")
pytest.importorskip("jinja2")
PATIENCE = 120.0


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_ctrl_c_while_the_report_is_made_keeps_the_model(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 8)), columns=[f"x{k}" for k in range(8)])
    table.assign(label=np.where(table["x0"] + table["x4"] > 0, "yes", "no")).to_csv(
        tmp_path / "t.csv", index=False
    )
    words = [
        "fit",
        "t.csv",
        "--target",
        "label",
        "--view",
        "a=x0:x3",
        "--view",
        "b=x4:x7",
        "--bank",
        "gaussians",
    ]
    running = subprocess.Popen(
        [sys.executable, "-m", "kernelweave", *words, "--model", "m.kw", "--report", "r.html"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + PATIENCE
    while not (tmp_path / "m.kw").exists() and running.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)  # the report has begun, and takes seconds
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130, errors
    assert errors.strip() == "kernelweave: stopped; m.kw is written, r.html is not."
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.kw", "t.csv"]
    assert kernelweave.load(tmp_path / "m.kw").kernel_weights_.shape == (6,)
