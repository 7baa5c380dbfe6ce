"""Twelve kernels on Fashion-MNIST: error, time and memory against size, and the cost of a pair of samples."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from rich.table import Table
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning

from benchmarks.resident import raised_megabytes
from kernelweave import KernelBank, MKLClassifier, ObscureClassifier
from kernelweave.datasets.fashion_mnist import fashion_mnist
from kernelweave.errors import DataError
from kernelweave.experiments.papers.obscure import SIZES, SizesStudy
from kernelweave.multiclass.rows import ComputedRows

STUDY = SizesStudy()


def run(options: Any, console: Any) -> list[dict[str, float]]:
    console.print(ratios())
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
    row["pair"] = pair_cost(X[: min(n, 5_000)])
    if n <= STUDY.svc_samples:
        start = time.process_time()
        row["svc_error"] = float(np.mean(STUDY.average_svc(X, y, X_test) != y_test))
        row["svc_processor"] = time.process_time() - start
    return row


def pair_cost(X: Any) -> float:
    """Return the processor time of a row pass per pair of samples in ns."""
    computed = ComputedRows(STUDY.bank().fit(X))
    n = len(X)
    V, every = np.random.default_rng(0).normal(size=(n, 10)), np.arange(n)
    start = time.process_time()
    computed.products(every, every, V)
    pair = (time.process_time() - start) / n**2
    return 1e9 * pair


def ratios(sizes: tuple[int, ...] = (5_000, 10_000), repeats: int = 3) -> Table:
    """Return the time of ObscureClassifier beside MKLClassifier, same bank, defaults, fits in turn, minima."""
    out = Table(title="OBSCURE / MKLClassifier, 10 classes, defaults, least of three fits in turn")
    for name in ("samples", "OBSCURE s", "gap", "MKLClassifier s", "ratio"):
        out.add_column(name, justify="right")
    tasks = [load_digits(return_X_y=True)]
    tasks += [make_classification(n, 16, n_informative=12, n_classes=10, random_state=0) for n in sizes]
    for X, y in tasks:
        bank, least, gap = KernelBank.distances(), [np.inf, np.inf], 1.0
        for _ in range(repeats):
            for k, model in enumerate((ObscureClassifier(bank, random_state=0), MKLClassifier(bank))):
                start = time.process_time()
                model.fit(X, y)
                least[k] = min(least[k], time.process_time() - start)
                gap = model.duality_gap_ if k == 0 else gap
        times = f"{least[0]:.2f}", f"{gap:.1e}", f"{least[1]:.2f}", f"{least[0] / least[1]:.2f}"
        out.add_row(f"{len(y):,}", *times)
    return out


def exponent(rows: list[dict[str, float]]) -> float:
    """Return the slope of log time against log size."""
    logs = np.log([[row["n"], row["processor"]] for row in rows])
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def table(rows: list[dict[str, float]]) -> Table:
    grown = f"; processor time grows like n^{exponent(rows):.2f}" if len(rows) > 2 else ""
    out = Table(title=f"Fashion-MNIST, 12 kernels, p = 1.1, C = 1, within {STUDY.memory / 1e9:g} GB{grown}")
    names = ("n", "test error", "gap", "row passes", "support", "processor s", "wall s", "MB")
    for name in (*names, "ns per pair", "SVC error", "SVC s"):
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
            *svc,
        )
    return out
