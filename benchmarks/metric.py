"""ITML at the size of CurtinFaces against metric-learn, which runs in an environment of its own.

`make peers-metric` sets that up (metric-learn 0.7 needs scikit-learn < 1.6). Both get the same pairs, bounds
and gamma. Per sweep: the time of one visit to every pair. Full: until our relative duality gap is 1e-4,
against metric-learn with as many sweeps, and the objective each one ends with.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import seconds
from kernelweave.metric import ITML, LogDetProblem, PairSpace

PYTHON = Path(__file__).parents[1] / ".venv-metric" / "bin" / "python"
WORKER = Path(__file__).with_name("metric_worker.py")
SIZES = {"n=5000 d=50": (5000, 50), "n=30000 d=150": (30000, 150)}
TOL = 1e-4


def problem(n_pairs: int, dim: int) -> dict[str, np.ndarray]:
    """Faces as Gaussian clouds: 26 people, in most directions more spread inside a person than between."""
    rng = np.random.default_rng(0)
    people = rng.normal(size=(26, dim)) * np.linspace(1.5, 0.1, dim)
    who = rng.integers(0, 26, 2000)
    X = people[who] + rng.normal(size=(2000, dim))
    ends = rng.integers(0, 2000, size=(n_pairs, 2))
    similar = rng.random(n_pairs) < 0.3
    for k in np.flatnonzero(similar):
        ends[k, 1] = rng.choice(np.flatnonzero(who == who[ends[k, 0]]))
    ends = ends[ends[:, 0] != ends[:, 1]]
    y = np.where(who[ends[:, 0]] == who[ends[:, 1]], 1, -1)
    D = ((X[ends[:, 0]] - X[ends[:, 1]]) ** 2).sum(axis=1)
    return {"X": X, "ends": ends, "y": y, "bounds": np.percentile(D, [3, 97])}


def objective(M: np.ndarray, given: dict[str, np.ndarray]) -> float:
    """The objective of (5.2) at gamma = 1, slacks minimised out."""
    V = given["X"][given["ends"][:, 0]] - given["X"][given["ends"][:, 1]]
    p, goal = np.einsum("ij,ij->i", V @ M, V), np.where(given["y"] > 0, *given["bounds"])
    ratio = np.where(given["y"] * (p - goal) > 0, p / goal, 1.0)
    return float(np.trace(M) - np.linalg.slogdet(M)[1] - len(M) + (ratio - np.log(ratio) - 1.0).sum())


def sweep(given: dict[str, np.ndarray]) -> object:
    """One sweep of ours, without the certificate."""
    n, d = len(given["y"]), given["X"].shape[1]
    space = PairSpace(given["X"], given["ends"], np.eye(d))
    bounds = float(given["bounds"][0]), float(given["bounds"][1])
    task = LogDetProblem.itml(space, given["y"].astype(float), bounds, np.ones(n))
    state, order = task.initial_state(), np.random.default_rng(0).permutation(n)
    task.sweep(state, order)  # multipliers that are all zero make a first sweep cheap
    return lambda: task.sweep(state, order)


def run(options: argparse.Namespace, console: Console) -> list[dict]:
    rows = []
    for size, (n_pairs, dim) in SIZES.items():
        given = problem(n_pairs, dim)
        one = sweep(given)
        ours = {"sweep": min(seconds(one) for _ in range(options.rounds))}
        model = ITML(bounds=given["bounds"], tol=TOL, preprocessor=given["X"], random_state=0)
        ours["full"] = seconds(lambda m=model, g=given: m.fit(g["ends"], g["y"]))
        ours |= {"sweeps": model.n_iter_, "objective": objective(model.get_mahalanobis_matrix(), given)}
        ours |= {"relative_gap": model.duality_gap_}
        console.log(f"metric {size}: metric-learn")
        rows += [{"size": size, "method": "ours"} | ours, {"size": size} | ask(given, model.n_iter_)]
    return rows


def ask(given: dict[str, np.ndarray], sweeps: int) -> dict:
    """Let metric-learn's environment time it; a reason stands in for figures that cannot be had."""
    row = {"method": "metric-learn"}
    if not PYTHON.exists():
        return row | {"skipped": "its environment is not there; `make peers-metric` sets it up"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.npz"
        np.savez(file, **given)
        env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        command = [str(PYTHON), str(WORKER), str(file), str(sweeps)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        if done.returncode:
            return row | {"skipped": (done.stderr.strip().splitlines() or ["it failed"])[-1][:80]}
        measured = json.loads(done.stdout.strip().splitlines()[-1])
        M = np.load(Path(folder) / "pairs.npz.M.npy")
    return row | measured | {"objective": objective(M, given)}


def table(rows: list[dict]) -> Table:
    out = Table(title=f"ITML, gamma = 1, same pairs and bounds; ours to a relative gap of {TOL:g}")
    for column in ("size", "method", "one sweep", "full training", "sweeps", "objective"):
        out.add_column(column, justify="left" if column in ("size", "method") else "right")
    for row in rows:
        if "skipped" in row:
            out.add_row(row["size"], row["method"], f"skipped: {row['skipped']}", "–", "–", "–")
            continue
        cells = (
            f"{row['sweep']:.3f} s",
            f"{row['full']:.2f} s",
            str(row["sweeps"]),
            f"{row['objective']:.3f}",
        )
        out.add_row(row["size"], row["method"], *cells)
    return out


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    screen = Console(width=120)
    screen.print(table(run(argparse.Namespace(rounds=5), screen)))
