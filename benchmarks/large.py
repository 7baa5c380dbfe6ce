"""Twenty thousand samples, fifty kernels, from raw X; beside one LIBSVM fit on the learnt kernel."""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.svm import SVC

from benchmarks.given import TOL
from benchmarks.measure import peak_megabytes, seconds
from benchmarks.problems import first_kernels, samples
from kernelweave import MKLClassifier
from kernelweave.geometry import LpBall, Simplex
from kernelweave.learners import Hinge

N, M, LIMIT = 20_000, 50, 3.5e9
GEOMETRIES = {"simplex": Simplex(), "lp p=2": LpBall(2.0)}


def run(options: argparse.Namespace, console: Console) -> list[dict]:
    X, y = samples(N)
    rows = []
    for name, geometry in GEOMETRIES.items():
        model = MKLClassifier(
            first_kernels(X, M),
            learner=Hinge(C=1.0),
            geometry=geometry,
            tol=TOL,
            n_jobs=options.jobs,
            memory_limit=LIMIT,
        )
        row: dict = {"method": name}
        console.log(f"large: {name}")

        def fit(model: MKLClassifier = model, row: dict = row) -> None:
            row["seconds"] = seconds(lambda: model.fit(X, y))

        # What the child learns is lost with it, so the fit runs once more here.
        row["megabytes"] = peak_megabytes(fit)
        fit()
        row |= {"machines": model.n_iter_, "gap": model.duality_gap_, "support": len(model.support_)}
        rows.append(row)
    console.log("large: LIBSVM on the last learnt kernel")
    K = model.combined_kernel(X).astype(np.float64)
    libsvm = seconds(lambda: SVC(C=1.0, kernel="precomputed", cache_size=500).fit(K, y))
    return [row | {"libsvm_seconds": libsvm} for row in rows]


def table(rows: list[dict]) -> Table:
    out = Table(title=f"From raw X, n={N}, M={M}, relative gap {TOL:g}, memory_limit={LIMIT / 1e9:g} GB")
    for column in ("method", "ours", "SVMs", "gap", "peak memory", "one LIBSVM fit on the learnt kernel"):
        out.add_column(column, justify="left" if column == "method" else "right")
    for row in rows:
        out.add_row(
            row["method"],
            f"{row['seconds']:.0f} s",
            str(row["machines"]),
            f"{row['gap']:.1e}",
            f"{row['megabytes'] / 1e3:.2f} GB",
            f"{row['libsvm_seconds']:.0f} s",
        )
    return out
