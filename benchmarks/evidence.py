"""Regression by evidence against himalaya's two searches for kernel weights: R², time, and how much intervals hold.

All methods get the same kernels, centred and with a trace of n, and targets without their mean; himalaya's are in
single precision, as it advises, with 100 steps from its ridge start, and 100 draws. Each runs once per split, on one
thread; times are those of the processor. The generator is himalaya's own, at its own noise. Needs `make peers`; sets
of files need KERNELWEAVE_DATA. A set that is not there is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from benchmarks.peers import PYTHON
from kernelweave import EvidenceMKLRegressor
from kernelweave.datasets.dataset import read_arrays
from kernelweave.errors import DataError
from kernelweave.kernels import Gaussian

WORKER = Path(__file__).with_name("evidence_worker.py")
PEERS = {"hyper-gradient": "hyper_gradient", "random search": "random_search"}
# Seconds of computing after which a method is given up, as the worker has it.
LIMIT = 150
COVERAGE = 0.9
Views = list[np.ndarray]
Split = tuple[Views, Views, np.ndarray, np.ndarray]


# -- sets: views of training and test samples, and their targets


def generated(n_samples: int, n_kernels: int, n_targets: int) -> Callable[[int], Split]:
    """himalaya's generate_multikernel_dataset, made in its own environment: 1,000 columns a view, noise 0.1."""

    def make(seed: int) -> Split:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "made.npz"
            options = {"n_kernels": n_kernels, "n_targets": n_targets, "n_samples_train": n_samples}
            asked("make", path, options | {"random_state": seed})
            found = np.load(path)
            X, Z = (np.split(found[name].astype(np.float64), n_kernels, axis=1) for name in ("X", "Z"))
            return X, Z, found["Y"].astype(np.float64), found["T"].astype(np.float64)

    return make


def proteins(n_noise: int) -> Callable[[int], Split]:
    """Proteins of tumours from their genes and micro-RNA, and from views of noise."""

    def make(seed: int) -> Split:
        found, rng = read_arrays("tcga_breast_mixomics"), np.random.default_rng(seed)
        views = [found["view_mrna"], found["view_mirna"]]
        views += [rng.normal(size=views[0].shape) for _ in range(n_noise)]
        return split(views, found["view_protein"], 100, rng)

    return make


def moments(seed: int) -> Split:
    """Zernike moments of digits from five other sets of features."""
    found = read_arrays("mfeat")
    views = [found[f"view_{name}"] for name in ("fac", "fou", "kar", "mor", "pix")]
    return split(views, found["view_zer"], 400, np.random.default_rng(seed), 800)


def diabetes(seed: int) -> Split:
    X, y = load_diabetes(return_X_y=True)
    return split(columns(X), y[:, None], 300, np.random.default_rng(seed))


def friedman(seed: int) -> Split:
    X, y = make_friedman1(700, noise=1.0, random_state=seed)
    return split(columns(X), y[:, None], 200, np.random.default_rng(seed))


def steps(seed: int) -> Split:
    """A rule of thresholds: nothing that smooth kernels of single columns are made for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(800, 8))
    y = np.sign(X[:, 0] * X[:, 1]) + (X[:, 2] > 0.5) + 0.3 * rng.normal(size=800)
    return split([X[:, :4], X[:, 4:]], y[:, None], 300, rng)


def columns(X: np.ndarray) -> Views:
    return [X[:, j : j + 1] for j in range(X.shape[1])]


def split(
    views: Views, Y: np.ndarray, n_train: int, rng: np.random.Generator, n_test: int | None = None
) -> Split:
    """Training and test samples, every column brought to mean 0 and variance 1 of the training samples."""
    order = rng.permutation(len(Y))
    train, test = order[:n_train], order[n_train:][:n_test]
    parts = [scaled(np.asarray(one, dtype=np.float64), train, test) for one in [*views, Y]]
    X, Z = [one[0] for one in parts], [one[1] for one in parts]
    return X[:-1], Z[:-1], X[-1], Z[-1]


def scaled(A: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean, std = A[train].mean(axis=0), A[train].std(axis=0)
    kept = std > 0.0
    return tuple(((A[rows] - mean) / np.where(kept, std, 1.0))[:, kept] for rows in (train, test))  # type: ignore[return-value]


SETS: dict[str, tuple[Callable[[int], Split], str, int]] = {
    "generator, 600 samples, 3 kernels, 50 targets": (generated(600, 3, 50), "linear", 5),
    "generator, 1,000 samples, 4 kernels, 1,000 targets": (generated(1000, 4, 1000), "linear", 5),
    "TCGA proteins (142 targets)": (proteins(0), "linear", 5),
    "TCGA proteins, 3 views of noise added": (proteins(3), "linear", 5),
    "digits: Zernike moments (47 targets)": (moments, "Gaussian", 2),
    "diabetes, one kernel a column": (diabetes, "Gaussian", 5),
    "Friedman 1, one kernel a column": (friedman, "Gaussian", 5),
    "products of signs, two kernels": (steps, "Gaussian", 5),
}


def kernels(X: Views, Z: Views, kind: str) -> tuple[Views, Views, np.ndarray]:
    """Training and test kernels, centred and with a trace of n, and k(x, x) of the test samples."""
    train, test, diagonals = [], [], []
    for A, B in zip(X, Z, strict=True):
        kernel = Gaussian(scale=1.0).resolve(A) if kind == "Gaussian" else None
        K = A @ A.T if kernel is None else kernel(A, A)
        L = B @ A.T if kernel is None else kernel(B, A)
        own = np.sum(B**2, axis=1) if kernel is None else np.ones(len(B))
        means, mean = K.mean(axis=0), K.mean()
        own = own - 2.0 * L.mean(axis=1) + mean
        K, L = K - means - means[:, None] + mean, L - L.mean(axis=1, keepdims=True) - means + mean
        size = len(K) / np.trace(K)
        train.append(K * size), test.append(L * size), diagonals.append(own * size)
    return train, test, np.stack(diagonals, axis=1)


# -- the methods


def ours(K: Views, L: Views, diagonals: np.ndarray, Y: np.ndarray, T: np.ndarray) -> dict:
    model = EvidenceMKLRegressor("precomputed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = process_time()
        model.fit(K, Y)
        took = process_time() - start
    lower, upper = (one.reshape(T.shape) for one in model.predict_interval(L, COVERAGE, diagonals=diagonals))
    held = float(((lower <= T) & (upper >= T)).mean())
    return {"seconds": took, "r2": r2_score(T, model.predict(L)), "held": held}


def peer(solver: str, K: Views, L: Views, Y: np.ndarray, T: np.ndarray) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        single = {"K": np.array(K), "L": np.array(L), "Y": Y - Y.mean(axis=0)}
        np.savez(path, **{name: values.astype(np.float32) for name, values in single.items()})
        found = asked(solver, path, {})
        if "skipped" in found:
            return found
        predicted = np.load(path.with_suffix(".out.npy")) + Y.mean(axis=0)
        return {"seconds": found["seconds"], "r2": r2_score(T, predicted)}


def asked(task: str, path: Path, options: dict) -> dict:
    """Let the other environment do something on one thread; a reason stands in for what cannot be had."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [str(PYTHON), str(WORKER), task, str(path), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"skipped": f"over {LIMIT} s"}
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def run(options: argparse.Namespace, console: Console) -> list[dict]:  # noqa: ARG001 - sets have their own sizes
    if not PYTHON.exists():
        console.log("evidence: the environment of other packages is not there; `make peers` sets it up")
        return []
    rows = []
    for name, (make, kind, n_splits) in SETS.items():
        try:
            rows += list(compared(name, make, kind, n_splits, console))
        except DataError as error:
            console.log(f"evidence: {error}")
    return rows


def compared(
    name: str, make: Callable[[int], Split], kind: str, n_splits: int, console: Console
) -> Iterator[dict]:
    slow: set[str] = set()  # what ran out of time is not tried again
    for seed in range(n_splits):
        X, Z, Y, T = make(seed)
        K, L, diagonals = kernels(X, Z, kind)
        yield {"set": name, "split": seed, "method": "evidence"} | ours(K, L, diagonals, Y, T)
        for title, solver in PEERS.items():
            console.log(f"evidence {name} {seed}: {title}")
            found = {"skipped": f"over {LIMIT} s"} if title in slow else peer(solver, K, L, Y, T)
            if "skipped" in found:
                slow.add(title)
            yield {"set": name, "split": seed, "method": title} | found


def table(rows: list[dict]) -> Table:
    title = "By evidence and by himalaya: mean R² and processor seconds of one run a split, one thread; 90 % intervals"
    out = Table(title=title)
    heads = ["set", "splits", "evidence", "s", "intervals hold"]
    for name in PEERS:
        heads += [name, "s", "ours ÷ its time", "splits it wins"]
    for place, head in enumerate(heads):
        out.add_column(head, justify="right" if place else "left")
    for name in dict.fromkeys(row["set"] for row in rows):
        own = {row["split"]: row for row in rows if row["set"] == name and row["method"] == "evidence"}
        time = np.mean([one["seconds"] for one in own.values()])
        cells = [name, str(len(own)), f"{np.mean([one['r2'] for one in own.values()]):.3f}", f"{time:.2f}"]
        cells.append(f"{np.mean([one['held'] for one in own.values()]):.1%}")
        for method in PEERS:
            cells += against(method, [row for row in rows if row["set"] == name], own)
        out.add_row(*cells)
    return out


def against(method: str, rows: list[dict], own: dict[int, dict]) -> list[str]:
    theirs = {row["split"]: row for row in rows if row["method"] == method and "r2" in row}
    if not theirs:
        reason = next((row["skipped"] for row in rows if row["method"] == method), "–")
        return [reason, "–", "–", "–"]
    time = np.mean([one["seconds"] for one in theirs.values()])
    ratio = np.mean([own[split]["seconds"] for split in theirs]) / time
    wins = sum(one["r2"] > own[split]["r2"] for split, one in theirs.items())
    r2 = f"{np.mean([one['r2'] for one in theirs.values()]):.3f}"
    return [r2, f"{time:.1f}", f"{ratio:.3f}", f"{wins} of {len(theirs)}"]
