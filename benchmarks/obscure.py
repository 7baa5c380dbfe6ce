"""Twelve kernels on Fashion-MNIST: error and time against size, and the cost of a pair of samples."""

from __future__ import annotations

import gzip
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from benchmarks.measure import peak_megabytes
from kernelweave import KernelBank, ObscureClassifier
from kernelweave._threads import blas_threads
from kernelweave.bank.made_rows import MadeRows
from kernelweave.kernels import Gaussian, Linear, Polynomial, UnitMean
from kernelweave.solvers import DualAscent

FOLDER = Path("/usr/share/datasets/fashion-mnist")  # Debian's package dataset-fashion-mnist
SIZES, SVC_MOST = (1_000, 2_000, 5_000, 10_000, 20_000, 60_000), 10_000
MEMORY, PASSES, TOL = 2e9, 5.0, 2e-2


def run(options: Any, console: Any) -> list[dict[str, float]]:
    if not FOLDER.is_dir():
        console.print(f"skipped: no {FOLDER}; install Debian's dataset-fashion-mnist")
        return []
    X, y = images("train")
    X_test, y_test = (part[:2_000] for part in images("t10k"))
    most = getattr(options, "most", None) or SIZES[-1]
    rows = []
    for n in [size for size in SIZES if size <= most]:
        rows.append(measured(X[:n], y[:n], X_test, y_test, options.jobs))
        console.print(rows[-1])
    return rows


def measured(X: Any, y: Any, X_test: Any, y_test: Any, jobs: int) -> dict[str, float]:
    n = len(y)
    model = ObscureClassifier(
        bank(), C=1.0, p=1.1, solver=DualAscent(TOL, PASSES), memory_limit=MEMORY, n_jobs=jobs, random_state=0
    )
    wall, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    row = {"n": n, "wall": time.perf_counter() - wall, "processor": time.process_time() - spent}
    row |= {"gap": model.duality_gap_, "passes": model.n_passes_, "support": model.n_support_}
    row["error"] = 1.0 - model.score(X_test, y_test)
    row["pair"], row["limit"] = pair_costs(X[: min(n, 5_000)])
    if n <= SVC_MOST:
        row["svc_processor"], row["svc_error"] = average_svc(X, y, X_test, y_test)
    return row


def pair_costs(X: Any) -> tuple[float, float]:
    """Return the processor time of a row pass per pair of samples in ns, and that of its arithmetic alone.

    The latter makes the same tile again and again: one product per block of features, the kernels, and their
    products with ten columns, all in cache.
    """
    made = MadeRows(bank().fit(X))
    n = len(X)
    V, every = np.random.default_rng(0).normal(size=(n, 10)), np.arange(n)
    start = time.process_time()
    made.products(every, every, V)
    pair = (time.process_time() - start) / n**2
    rows, columns, tiles = every[:256], every[: min(n, 1024)], 8
    taken = [(block, block.taken(columns)) for block in made._blocks]
    out, W = np.zeros((12, rows.size, 10)), V[columns].astype(np.float32)
    with blas_threads(1):
        start = time.process_time()
        for _ in range(tiles):
            for block, Z in taken:
                block.add_products(rows, Z, columns, W, out)
    limit = (time.process_time() - start) / (tiles * rows.size * columns.size)
    return 1e9 * pair, 1e9 * limit


def average_svc(X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, float]:
    fitted = bank().fit(X)
    start = time.process_time()
    K = sum(fitted.grams()) / len(fitted)
    machine = SVC(C=1.0, kernel="precomputed").fit(K, y)
    spent = time.process_time() - start
    K_test = sum(K for _, K in fitted.cross(X_test)) / len(fitted)
    return spent, float(np.mean(machine.predict(K_test) != y_test))


def peak(n: int, jobs: int) -> float:
    """Return how far training on n samples raises the memory of a process, in MB."""
    X, y = images("train")
    X, y = X[:n], y[:n]
    model = ObscureClassifier(
        bank(), p=1.1, solver=DualAscent(TOL, 0.05), memory_limit=MEMORY, n_jobs=jobs, random_state=0
    )

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)

    return peak_megabytes(fit)


def bank() -> KernelBank:
    """Return a linear, a polynomial and a Gaussian kernel on each quarter [Orabona10, Sec. 4.3]."""
    pixels = np.arange(784).reshape(28, 28)
    quarters = {f"{a}{b}": pixels[a : a + 14, b : b + 14].ravel() for a in (0, 14) for b in (0, 14)}
    return KernelBank.per_view(
        [Linear(), Polynomial(degree=2), Gaussian()], views=quarters, scaling=UnitMean()
    )


def images(part: str) -> tuple[Any, Any]:
    with gzip.open(FOLDER / f"{part}-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FOLDER / f"{part}-labels-idx1-ubyte.gz") as file:
        y = np.frombuffer(file.read(), np.uint8, offset=8)
    return X / np.float32(255.0), y


def exponent(rows: list[dict[str, float]]) -> float:
    """Return the slope of log time against log size."""
    logs = np.log([[row["n"], row["processor"]] for row in rows])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def table(rows: list[dict[str, float]]) -> Table:
    grown = f"; processor time grows like n^{exponent(rows):.2f}" if len(rows) > 2 else ""
    out = Table(title=f"Fashion-MNIST, 12 kernels, p = 1.1, C = 1, within {MEMORY / 1e9:g} GB{grown}")
    names = (
        "n",
        "test error",
        "gap",
        "row passes",
        "support",
        "processor s",
        "wall s",
        "ns per pair",
        "limit ns",
    )
    for name in (*names, "SVC error", "SVC s"):
        out.add_column(name, justify="right")
    for row in rows:
        svc = (f"{row['svc_error']:.3f}", f"{row['svc_processor']:.1f}") if "svc_error" in row else ("–", "–")
        out.add_row(
            f"{row['n']:,}",
            f"{row['error']:.3f}",
            f"{row['gap']:.1e}",
            f"{row['passes']:.2f}",
            f"{row['support']:,}",
            f"{row['processor']:.1f}",
            f"{row['wall']:.1f}",
            f"{row['pair']:.1f}",
            f"{row['limit']:.1f}",
            *svc,
        )
    return out
