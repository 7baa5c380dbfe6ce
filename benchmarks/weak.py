"""One semi-supervised split: 1,500 samples, 10 labels, four kernels; time and memory in Gram matrices."""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import make_classification

from benchmarks.measure import peak_megabytes, seconds
from kernelweave import KernelBank, MKLClassifier, SemiSupervisedMKLClassifier

N, D, LABELS, M = 1500, 241, 10, 4
GRAM = 8.0 * N * N / 1e6


def run(options: argparse.Namespace, console: Console) -> list[dict]:  # noqa: ARG001 - one thread, one run
    X, truth = make_classification(N, D, n_informative=20, n_clusters_per_class=1, random_state=0)
    y = np.full(N, -1)
    labelled = np.concatenate([np.flatnonzero(truth == c)[: LABELS // 2] for c in (0, 1)])
    y[labelled] = truth[labelled]
    bank = KernelBank.distances(scales=(1.0,))
    supervised = seconds(lambda: MKLClassifier(bank).fit(X, truth))
    rows = []
    for name, theta in {"soft margin": 1.2, "hard margin": None}.items():
        console.log(f"weak: {name}")
        model = SemiSupervisedMKLClassifier(bank, theta=theta)
        megabytes = peak_megabytes(lambda model=model: model.fit(X, y))
        took = seconds(lambda model=model: model.fit(X, y))
        rows.append(
            {
                "method": name,
                "seconds": took,
                "ratio": took / supervised,
                "grams": megabytes / GRAM,
                "candidates": len(model.candidates_),
                "machines": model.n_iter_,
                "gap": model.duality_gap_,
            }
        )
    return rows


def table(rows: list[dict]) -> Table:
    out = Table(
        title=f"Semi-supervised, n={N}, {LABELS} labels, M={M}: memory in Gram matrices, M + 2 = {M + 2}"
    )
    for column in (
        "method",
        "time",
        "to MKL with all labels",
        "peak memory",
        "candidates",
        "SVMs",
        "gap",
    ):
        out.add_column(column, justify="left" if column == "method" else "right")
    for row in rows:
        out.add_row(
            row["method"],
            f"{row['seconds']:.1f} s",
            f"{row['ratio']:.1f} x",
            f"{row['grams']:.1f} matrices",
            str(row["candidates"]),
            str(row["machines"]),
            f"{row['gap']:.1e}",
        )
    return out
