"""SVM+ against the same quadratic program in CVXPY (Clarabel), at several prices of slacks."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from benchmarks.measure import seconds
from kernelweave.privileged import SVMPlus

CASES = ((1.0, 1.0, "linear"), (1.0, 1.0, "gaussian"), (10.0, 0.1, "gaussian"))
# The conic solver takes minutes for 2,000 samples: one case has to do.
SIZES = {1_000: CASES, 2_000: CASES[:1]}
TOL = 1e-6


def run(options: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    rows = []
    for n, cases in SIZES.items():
        K, stars, y = problem(n)
        for C, lam, name in cases:
            G = stars[name] / lam
            row: dict[str, Any] = {"n": n, "C": C, "lam": lam, "privileged": name}
            found: dict[str, Any] = {}
            with threadpool_limits(options.jobs):
                times = [
                    [seconds(partial(way, K, G, y, C, found)) for way in (ours, conic)]
                    for _ in range(min(options.rounds, 2))
                ]
            row["seconds"], row["cvxpy_seconds"] = (min(column) for column in zip(*times, strict=True))
            row["relative_gap"] = found["result"].relative_gap
            row["encloses"] = bool(
                found["result"].dual <= found["optimum"] * (1 + 1e-6)
                and found["optimum"] <= found["result"].primal * (1 + 1e-6)
            )
            rows.append(row)
            console.print(row)
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    columns = ("n", "C", "λ", "K*", "ours", "CVXPY", "ratio", "gap", "encloses")
    out = Table(*columns, title="SVM+ to a gap of 1e-6")
    for row in rows:
        out.add_row(
            *(str(row[name]) for name in ("n", "C", "lam", "privileged")),
            f"{row['seconds']:.2f} s",
            f"{row['cvxpy_seconds']:.2f} s",
            f"{row['cvxpy_seconds'] / row['seconds']:.1f}",
            f"{row['relative_gap']:.0e}",
            str(row["encloses"]),
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


def conic(K: np.ndarray, G: np.ndarray, y: np.ndarray, C: float, found: dict[str, Any]) -> None:
    """The dual as a user would write it: factors by eigenvalues, two sums of squares, two equations."""
    n = y.size
    a, b = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
    e = a + b - C
    energy = cp.sum_squares(root(K).T @ cp.multiply(y, a)) + cp.sum_squares(root(G).T @ e)
    task = cp.Problem(cp.Maximize(cp.sum(a) - energy / 2.0), [y @ a == 0, cp.sum(e) == 0])
    found["optimum"] = task.solve(solver=cp.CLARABEL, tol_gap_rel=TOL, tol_gap_abs=TOL)


def root(K: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-12 * values[-1]
    return vectors[:, keep] * np.sqrt(values[keep])
