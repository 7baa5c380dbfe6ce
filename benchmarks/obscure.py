"""Twelve kernels on Fashion-MNIST: error, time and memory against size, and the cost of a pair of samples."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from benchmarks.resident import raised_megabytes
from kernelweave._threads import blas_threads
from kernelweave.datasets.fashion_mnist import fashion_mnist
from kernelweave.errors import DataError
from kernelweave.experiments.papers.obscure import SIZES, SizesStudy
from kernelweave.multiclass.rows import ComputedRows

STUDY = SizesStudy()


def run(options: Any, console: Any) -> list[dict[str, float]]:
    try:
        train, test = fashion_mnist("train"), fashion_mnist("t10k")
    except DataError as error:
        console.print(f"skipped: {error}")
        return []
    most = getattr(options, "most", None) or SIZES[-1]
    rows = []
    for n in [size for size in SIZES if size <= most]:
        rows.append(
            measured(train.X[:n], train.y[:n], test.X[: STUDY.n_test], test.y[: STUDY.n_test], options.jobs)
        )
        console.print(rows[-1])
    return rows


def measured(X: Any, y: Any, X_test: Any, y_test: Any, jobs: int) -> dict[str, float]:
    n, model = len(y), STUDY.certified(jobs)
    wall, spent = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        memory = raised_megabytes(lambda: model.fit(X, y))
    row = {"n": n, "wall": time.perf_counter() - wall, "processor": time.process_time() - spent}
    row |= {"memory": memory, "gap": model.duality_gap_}
    row |= {"passes": model.n_passes_, "support": model.n_support_}
    row["error"] = 1.0 - model.score(X_test, y_test)
    row["pair"], row["limit"] = pair_costs(X[: min(n, 5_000)])
    if n <= STUDY.svc_samples:
        start = time.process_time()
        row["svc_error"] = float(np.mean(STUDY.average_svc(X, y, X_test) != y_test))
        row["svc_processor"] = time.process_time() - start
    return row


def pair_costs(X: Any) -> tuple[float, float]:
    """Return the processor time of a row pass per pair of samples in ns, and that of its arithmetic alone.

    The latter computes the same tile again and again: one product per block of features, the kernels, and
    their products with ten columns, all in cache.
    """
    computed = ComputedRows(STUDY.bank().fit(X))
    n = len(X)
    V, every = np.random.default_rng(0).normal(size=(n, 10)), np.arange(n)
    start = time.process_time()
    computed.products(every, every, V)
    pair = (time.process_time() - start) / n**2
    rows, columns, tiles = every[:256], every[: min(n, 1024)], 8
    blocks = [(block.at(rows), block.at(columns)) for block in computed._blocks]
    out, W = np.zeros((12, rows.size, 10)), V[columns].astype(np.float32)
    with blas_threads(1):
        start = time.process_time()
        for _ in range(tiles):
            for X_rows, Z in blocks:
                for m, K in X_rows.kernels_with(Z, slice(0, columns.size)):
                    out[m] += K @ W
    limit = (time.process_time() - start) / (tiles * rows.size * columns.size)
    return 1e9 * pair, 1e9 * limit


def exponent(rows: list[dict[str, float]]) -> float:
    """Return the slope of log time against log size."""
    logs = np.log([[row["n"], row["processor"]] for row in rows])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def table(rows: list[dict[str, float]]) -> Table:
    grown = f"; processor time grows like n^{exponent(rows):.2f}" if len(rows) > 2 else ""
    out = Table(title=f"Fashion-MNIST, 12 kernels, p = 1.1, C = 1, within {STUDY.memory / 1e9:g} GB{grown}")
    names = ("n", "test error", "gap", "row passes", "support", "processor s", "wall s", "MB")
    for name in (*names, "ns per pair", "limit ns", "SVC error", "SVC s"):
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
            f"{row['memory']:.0f}",
            f"{row['pair']:.1f}",
            f"{row['limit']:.1f}",
            *svc,
        )
    return out
