"""A search against GridSearchCV, and a path against fits from scratch.

Both sides have the same table, bank, folds and tolerance; everything from the table on is timed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from kernelweave import KernelBank, MKLClassifier, MKLClassifierCV, path
from kernelweave.geometry import BoxSimplex
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge

VIEWS = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
COSTS = np.logspace(-1, 2, 5).tolist()
FOLDS = StratifiedKFold(5)
CASES = ((300, 8), (300, 16), (569, 16))  # samples, Gaussian widths per view
TOL, ROUNDS = 1e-4, 2


def run(options: argparse.Namespace, console: Console) -> list[dict[str, float]]:
    return [measure(*case, min(options.rounds, ROUNDS), console) for case in CASES]


def data(n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:n_samples]
    return scale(X[rows]), y[rows]


def measure(n_samples: int, widths: int, rounds: int, console: Console) -> dict[str, float]:
    """Time every call in turn, several rounds; keep the fastest time of each."""
    X, y = data(n_samples)
    bank = KernelBank.per_view([Gaussian(scale=s) for s in np.geomspace(1 / 32, 4.0, widths)], views=VIEWS)
    n_kernels = widths * len(VIEWS)
    thetas = np.geomspace(1.0 / n_kernels, 1.0, 10).tolist()
    model = MKLClassifier(bank, learner=Hinge(C=10.0), geometry=BoxSimplex(), tol=TOL)
    found: dict[str, float] = {}

    def search() -> None:
        fast = MKLClassifierCV(bank, learner_values=COSTS, geometry_values=thetas, cv=FOLDS, tol=TOL).fit(
            X, y
        )
        found.update(search_score=fast.best_score_, search_machines=int(fast.cv_results_["machines"].sum()))

    def exhaustive() -> None:
        grid = {"learner__C": COSTS, "geometry__theta": thetas}
        found["grid_score"] = GridSearchCV(model, grid, cv=FOLDS).fit(X, y).best_score_

    def along() -> None:
        found["path_machines"] = sum(path(model, X, y, param="geometry__theta", values=thetas).machines)

    def cold() -> None:
        fits = [model.set_params(geometry__theta=theta).fit(X, y).n_iter_ for theta in thetas]
        found["cold_machines"] = sum(fits)

    calls: dict[str, Callable[[], None]] = {
        "search": search,
        "exhaustive": exhaustive,
        "path": along,
        "cold": cold,
    }
    times: dict[str, float] = {}
    for round_ in range(rounds):
        for name, run in calls.items():
            console.log(f"n={n_samples} M={n_kernels} round {round_ + 1}: {name}")
            with threadpool_limits(1):
                start = time.perf_counter()
                run()
            times[name] = min(times.get(name, np.inf), time.perf_counter() - start)
    return {
        "n_samples": n_samples,
        "n_kernels": n_kernels,
        **{f"{name}_seconds": seconds for name, seconds in times.items()},
        **found,
        "search_to_exhaustive": times["search"] / times["exhaustive"],
        "path_to_one_fit": times["path"] / (times["cold"] / len(thetas)),
    }


def table(rows: list[dict[str, float]]) -> Table:
    out = Table(title=f"5 C × 10 θ × 5 folds and a path of 10 θ, relative gap {TOL:g}, one thread")
    for column in (
        "n",
        "M",
        "search",
        "GridSearchCV",
        "ratio",
        "path of 10",
        "10 cold fits",
        "path ÷ one fit",
    ):
        out.add_column(column, justify="right")
    for row in rows:
        out.add_row(
            str(row["n_samples"]),
            str(row["n_kernels"]),
            f"{row['search_seconds']:.2f} s",
            f"{row['exhaustive_seconds']:.2f} s",
            f"1/{1.0 / row['search_to_exhaustive']:.1f}",
            f"{row['path_seconds']:.2f} s, {row['path_machines']} SVMs",
            f"{row['cold_seconds']:.2f} s, {row['cold_machines']} SVMs",
            f"{row['path_to_one_fit']:.1f}",
        )
    return out
