"""SVM+ and SVM-2K beside scikit-learn's SVC on the same kernels, and SVM+ against CVXPY (Clarabel)."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.measure import round_order, seconds
from kernelweave.privileged import SVMPlus
from kernelweave.privileged.svm_2k_problem import SVM2KPrices, TwoViews
from kernelweave.privileged.svm_2k_solver import TwoViewSolver

# The conic solver takes minutes for 2,000 samples: small cases have to do.
PLUS = (
    (1_000, 1.0, 1.0, "linear"),
    (1_000, 1.0, 1.0, "gaussian"),
    (1_000, 10.0, 0.1, "gaussian"),
    (2_000, 1.0, 1.0, "gaussian"),
    (4_000, 1.0, 1.0, "gaussian"),
)
CONIC = {(1_000, 1.0, 1.0)}
VIEWS = ((500, 1.0), (1_000, 1.0), (2_000, 1.0), (2_000, 10.0))
TOL = 1e-4


def run(options: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    rows = []
    for case in PLUS:
        rows.append(plus_row(*case, options))
        console.print(rows[-1])
    for case in VIEWS:
        rows.append(views_row(*case, options))
        console.print(rows[-1])
    return rows


def plus_row(n: int, C: float, lam: float, name: str, options: argparse.Namespace) -> dict[str, Any]:
    K, stars, y = problem(n)
    G, found = stars[name] / lam, {}
    ways = {"seconds": partial(ours, K, G, y, C, found), "svc_seconds": partial(svcs, [K], y, C)}
    if (n, C, lam) in CONIC:
        ways["cvxpy_seconds"] = partial(conic, K, G, y, C, found)
    row: dict[str, Any] = {"method": "SVM+", "n": n, "C": C, "lam": lam, "kernels": name}
    row |= fastest(ways, min(options.rounds, 2), options.jobs)
    row["relative_gap"] = found["result"].relative_gap
    if "optimum" in found:
        below = found["result"].dual <= found["optimum"] * (1 + 1e-6)
        row["encloses"] = bool(below and found["optimum"] <= found["result"].primal * (1 + 1e-6))
    return row


def views_row(n: int, C: float, options: argparse.Namespace) -> dict[str, Any]:
    K, stars, y = problem(n)
    views, found = [K, stars["gaussian"]], {}
    ways = {"seconds": partial(both_views, views, y, C, found), "svc_seconds": partial(svcs, views, y, C)}
    row: dict[str, Any] = {"method": "SVM-2K", "n": n, "C": C, "lam": None, "kernels": "gaussian"}
    row |= fastest(ways, options.rounds, options.jobs)
    row["relative_gap"] = found["result"].relative_gap
    return row


def fastest(ways: dict[str, Any], rounds: int, jobs: int) -> dict[str, float]:
    """Return the fastest of interleaved rounds of each."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    with threadpool_limits(jobs):
        for number in range(rounds):
            for name in round_order(ways, number):
                times[name].append(seconds(ways[name]))
    return {name: min(taken) for name, taken in times.items()}


def table(rows: list[dict[str, Any]]) -> Table:
    columns = ("method", "n", "C", "λ", "kernels", "ours", "SVCs", "to SVCs", "CVXPY", "gap", "encloses")
    title = f"To a gap of {TOL:g}, beside scikit-learn's SVC of the same kernel (SVM+) or kernels (SVM-2K)"
    out = Table(*columns, title=title)
    for row in rows:
        conic_time = row.get("cvxpy_seconds")
        out.add_row(
            *(
                "–" if row[name] is None else str(row[name])
                for name in ("method", "n", "C", "lam", "kernels")
            ),
            f"{row['seconds']:.2f} s",
            f"{row['svc_seconds']:.2f} s",
            f"{row['seconds'] / row['svc_seconds']:.1f} x",
            "–" if conic_time is None else f"{conic_time:.1f} s",
            f"{row['relative_gap']:.0e}",
            str(row.get("encloses", "–")),
        )
    return out


def problem(n: int) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    clean = rng.normal(size=(n, 8))
    noisy = clean + rng.normal(size=(n, 8))
    y = np.where(clean[:, 0] + 0.5 * np.sin(2.0 * clean[:, 1]) > 0.0, 1.0, -1.0)
    stars = {"linear": clean @ clean.T / 8.0, "gaussian": rbf_kernel(clean, gamma=0.1)}
    return rbf_kernel(noisy, gamma=0.05), stars, y


def ours(K: np.ndarray, G: np.ndarray, y: np.ndarray, C: float, found: dict[str, Any]) -> None:
    found["result"] = SVMPlus(C=C).solve(np.array([K, G]), y, tol=TOL)


def both_views(Ks: list[np.ndarray], y: np.ndarray, C: float, found: dict[str, Any]) -> None:
    price = np.full(y.size, C)
    views = TwoViews(Ks[0], Ks[1], y, SVM2KPrices(price, price, price, epsilon=0.1))
    found["result"] = TwoViewSolver(TOL).solve(views)


def svcs(Ks: list[np.ndarray], y: np.ndarray, C: float) -> None:
    for K in Ks:
        SVC(C=C, kernel="precomputed").fit(K, y)


def conic(K: np.ndarray, G: np.ndarray, y: np.ndarray, C: float, found: dict[str, Any]) -> None:
    """The dual as a user would write it: factors by eigenvalues, two sums of squares, two equations."""
    n = y.size
    a, b = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
    e = a + b - C
    energy = cp.sum_squares(root(K).T @ cp.multiply(y, a)) + cp.sum_squares(root(G).T @ e)
    task = cp.Problem(cp.Maximize(cp.sum(a) - energy / 2.0), [y @ a == 0, cp.sum(e) == 0])
    found["optimum"] = task.solve(solver=cp.CLARABEL, tol_gap_rel=1e-6, tol_gap_abs=1e-6)


def root(K: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-12 * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])
