"""Kernels as float64 matrices: our fits against "average + one SVC" and against the plain loop.

All start from the same list and include what they do to bring it into their form.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.baselines import average_and_svc, plain_loop
from benchmarks.measure import peak_megabytes, round_order, seconds
from benchmarks.problems import SIZES, simple_bank
from kernelweave import MKLClassifier
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.learners import Hinge

TOL = 1e-3
OURS = {"lp p=2": LpBall(2.0), "simplex": Simplex(), "box simplex nu=0.3": BoxSimplex(nu=0.3)}
PLAIN = {"lp p=2": 2.0, "simplex": 1.0}
# The plain loop holds all kernels twice: beyond this many bytes it is not run.
PLAIN_BYTES = 3e9


def run(options: argparse.Namespace, console: Console) -> list[dict]:
    rows = []
    for size in options.sizes:
        Ks, y = simple_bank(*SIZES[size])
        for C in options.costs:
            rows += measure(size, Ks, y, C, options, console)
    return rows


def measure(
    size: str, Ks: list, y: np.ndarray, C: float, options: argparse.Namespace, console: Console
) -> list[dict]:
    """Time every method in turn, several rounds; keep the fastest time of each."""
    solves: dict[str, int] = {}

    def ours(name: str) -> None:
        model = MKLClassifier(
            "precomputed", learner=Hinge(C=C), geometry=OURS[name], tol=TOL, n_jobs=options.jobs
        )
        solves[name] = model.fit(Ks, y).n_iter_

    def plain(name: str) -> None:
        solves[f"plain {name}"] = plain_loop(Ks, y, C, PLAIN[name], TOL)

    every_round: dict[str, Callable[[], None]] = {"average": lambda: average_and_svc(Ks, y, C)}
    every_round |= {name: (lambda name=name: ours(name)) for name in OURS}
    small = sum(K.nbytes for K in Ks) <= PLAIN_BYTES
    if small:
        every_round["plain lp p=2"] = lambda: plain("lp p=2")
    once = {"plain simplex": lambda: plain("simplex")} if small else {}  # hundreds of SVMs
    times: dict[str, float] = {}
    for round_ in range(options.rounds):
        console.log(f"{size} C={C:g} round {round_ + 1}")
        calls = every_round | (once if round_ == 0 else {})
        for name in round_order(calls, round_):
            with threadpool_limits(options.jobs):
                times[name] = min(times.get(name, np.inf), seconds(calls[name]))
    memory = {name: peak_megabytes(every_round[name]) for name in ("average", *OURS)}
    return [
        {
            "size": size,
            "C": C,
            "method": name,
            "seconds": times[name],
            "machines": solves[name],
            "average_seconds": times["average"],
            "to_average": times[name] / times["average"],
            "megabytes": memory[name],
            "average_megabytes": memory["average"],
            "plain_seconds": times.get(f"plain {name}"),
            "plain_machines": solves.get(f"plain {name}"),
            "plain_to_ours": times[f"plain {name}"] / times[name] if f"plain {name}" in times else None,
        }
        for name in OURS
    ]


def table(rows: list[dict]) -> Table:
    out = Table(title=f"Fit to a relative gap of {TOL:g}, float64 kernels as given, conversion included")
    titles = ("size", "C", "method", "ours", "SVMs", "÷ average + SVC", "memory", "average's")
    for column in (*titles, "plain loop", "SVMs", "plain ÷ ours"):
        out.add_column(column, justify="left" if column in ("size", "method") else "right")
    for row in rows:
        plain = row["plain_seconds"]
        out.add_row(
            row["size"],
            f"{row['C']:g}",
            row["method"],
            f"{1e3 * row['seconds']:.0f} ms",
            str(row["machines"]),
            f"{row['to_average']:.2f}",
            f"{row['megabytes']:.0f} MB",
            f"{row['average_megabytes']:.0f} MB",
            f"{plain:.2f} s" if plain else "–",
            str(row["plain_machines"] or "–"),
            f"{row['plain_to_ours']:.1f}×" if plain else "–",
        )
    return out
