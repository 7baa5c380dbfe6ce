"""From the table itself: our fit against scikit-learn making the same kernels and fitting one SVC."""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from benchmarks.given import OURS, TOL
from benchmarks.measure import peak_megabytes, round_order, seconds
from benchmarks.problems import samples
from kernelweave import KernelBank, MKLClassifier
from kernelweave.bank.rule_banks import WIDTHS
from kernelweave.learners import Hinge

N = 2000


def run(options: argparse.Namespace, console: Console) -> list[dict]:
    X, y = samples(N)
    rows = []
    for C in options.costs:
        models = {
            name: MKLClassifier(
                KernelBank.per_feature(), learner=Hinge(C=C), geometry=geometry, tol=TOL, n_jobs=options.jobs
            )
            for name, geometry in OURS.items()
        }
        calls = {name: (lambda model=model: model.fit(X, y)) for name, model in models.items()}
        calls["scikit-learn"] = lambda C=C: average_of_kernels(X, y, C)
        times: dict[str, float] = {}
        for round_ in range(max(1, options.rounds // 2)):
            console.log(f"raw n={N} C={C:g} round {round_ + 1}")
            for name in round_order(calls, round_):
                times[name] = min(times.get(name, np.inf), seconds(calls[name]))
        rows += [
            {
                "C": C,
                "method": name,
                "seconds": times[name],
                "machines": models[name].n_iter_,
                "gap": models[name].duality_gap_,
                "sklearn_seconds": times["scikit-learn"],
                "to_sklearn": times[name] / times["scikit-learn"],
                "megabytes": peak_megabytes(calls[name]),
            }
            for name in OURS
        ]
    return rows


def average_of_kernels(X: np.ndarray, y: np.ndarray, C: float) -> None:
    """The 117 kernels of SimpleMKL's bank by scikit-learn, summed as they come, and one SVC on the mean."""
    total, count = np.zeros((len(X), len(X))), 0
    for columns in (X, *(X[:, [j]] for j in range(X.shape[1]))):
        for width in WIDTHS:
            total += rbf_kernel(columns, gamma=0.5 / width**2)
            count += 1
        for degree in (1, 2, 3):
            K = polynomial_kernel(columns, degree=degree, gamma=1.0, coef0=1.0)
            total += K / np.diagonal(K).mean()
            count += 1
    SVC(C=C, kernel="precomputed").fit(total / count, y)


def table(rows: list[dict]) -> Table:
    out = Table(title=f"From raw X, n={N}, SimpleMKL's bank (117 kernels), relative gap {TOL:g}")
    for column in ("method", "C", "ours", "SVMs", "scikit-learn", "ratio", "memory"):
        out.add_column(column, justify="left" if column == "method" else "right")
    for row in rows:
        out.add_row(
            row["method"],
            f"{row['C']:g}",
            f"{row['seconds']:.2f} s",
            str(row["machines"]),
            f"{row['sklearn_seconds']:.2f} s",
            f"{row['to_sklearn']:.3f}",
            f"{row['megabytes']:.0f} MB",
        )
    return out
