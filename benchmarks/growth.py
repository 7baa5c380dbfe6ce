"""How the cost of a fit grows with the number of samples and of kernels: exponents fitted in one run."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.given import OURS, TOL
from benchmarks.measure import seconds
from benchmarks.problems import simple_bank
from kernelweave import MKLClassifier
from kernelweave.learners import Hinge

SAMPLES, KERNELS = (500, 1000, 2000, 4000), (12, 25, 50, 100)
FIXED_KERNELS, FIXED_SAMPLES = 20, 1000


def run(options: argparse.Namespace, console: Console) -> list[dict]:
    points = [("n", n, n, FIXED_KERNELS) for n in SAMPLES] + [("M", m, FIXED_SAMPLES, m) for m in KERNELS]
    rows: dict[tuple[str, str], dict] = {
        (name, axis): {"method": name, "grows": axis, "at": [], "seconds": [], "machines": []}
        for name in OURS
        for axis in ("n", "M")
    }
    for axis, at, n, m in points:
        console.log(f"growth {axis}={at}")
        Ks, y = simple_bank(n, 8, m)
        for name, geometry in OURS.items():
            model = MKLClassifier(
                "precomputed", learner=Hinge(C=1.0), geometry=geometry, tol=TOL, n_jobs=options.jobs
            )
            row = rows[name, axis]
            row["at"].append(at)
            row["seconds"].append(min(seconds(partial(model.fit, Ks, y)) for _ in range(3)))
            row["machines"].append(model.n_iter_)
    for row in rows.values():
        slope, _ = np.polyfit(np.log(row["at"]), np.log(row["seconds"]), 1)
        row["exponent"] = float(slope)
    return list(rows.values())


def table(rows: list[dict]) -> Table:
    out = Table(
        title=f"Growth: time ~ n^a at M={FIXED_KERNELS}, time ~ M^b at n={FIXED_SAMPLES}; C=1, gap {TOL:g}"
    )
    for column in ("method", "grows", "times", "SVMs", "exponent"):
        out.add_column(column, justify="right" if column == "exponent" else "left")
    for row in rows:
        times = ", ".join(f"{at}: {1e3 * t:.0f} ms" for at, t in zip(row["at"], row["seconds"], strict=True))
        solves = " ".join(str(count) for count in row["machines"])
        out.add_row(row["method"], row["grows"], times, solves, f"{row['exponent']:.2f}")
    return out
