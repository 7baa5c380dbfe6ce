"""Other packages on the same kernels, each timed in their own environment (`make peers` sets it up)."""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.given import OURS, TOL
from benchmarks.measure import peak_megabytes, seconds
from benchmarks.problems import SIZES, simple_bank
from kernelweave import MKLClassifier
from kernelweave.learners import Hinge

PYTHON = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
WORKER = Path(__file__).with_name("peer_worker.py")
PEERS = {"EasyMKL": "MKLpy's EasyMKL", "himalaya": "himalaya, 5 random draws"}
TIMEOUT = 600.0
COMPARED = ("n=538 M=117", "n=2000 M=50")


def run(options: argparse.Namespace, console: Console) -> list[dict]:
    rows = []
    for size in (size for size in options.sizes if size in COMPARED):
        Ks, y = simple_bank(*SIZES[size])
        for name, geometry in OURS.items():
            model = MKLClassifier(
                "precomputed", learner=Hinge(C=1.0), geometry=geometry, tol=TOL, n_jobs=options.jobs
            )
            fit = lambda m=model, Ks=Ks, y=y: m.fit(Ks, y)  # noqa: E731
            best = min(seconds(fit) for _ in range(options.rounds))
            rows.append({"size": size, "method": name, "seconds": best, "megabytes": peak_megabytes(fit)})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "problem.npz"
            np.savez(path, K=np.array(Ks), y=y)
            for peer, title in PEERS.items():
                console.log(f"peers {size}: {title}")
                rows.append({"size": size, "method": title} | ask(peer, path, options.rounds))
    return rows


def ask(peer: str, problem: Path, rounds: int) -> dict:
    """Let the other environment time its package; a reason stands in for figures that cannot be had."""
    if not PYTHON.exists():
        return {"skipped": "its environment is not there; `make peers` sets it up"}
    command = [str(PYTHON), str(WORKER), peer, str(problem), str(rounds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    except subprocess.TimeoutExpired:
        return {"skipped": f"not done after {TIMEOUT:g} s"}
    except subprocess.CalledProcessError as error:
        return {"skipped": (error.stderr.strip().splitlines() or ["it failed"])[-1][:80]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def table(rows: list[dict]) -> Table:
    out = Table(title=f"Other packages on the same kernels; ours at C=1 and a relative gap of {TOL:g}")
    for column in ("size", "method", "time", "extra memory"):
        out.add_column(column, justify="left" if column in ("size", "method") else "right")
    for row in rows:
        if "skipped" in row:
            out.add_row(row["size"], row["method"], f"skipped: {row['skipped']}", "–")
        else:
            out.add_row(
                row["size"], row["method"], f"{1e3 * row['seconds']:.0f} ms", f"{row['megabytes']:.0f} MB"
            )
    return out
