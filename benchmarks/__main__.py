"""`python -m benchmarks`: our fits against "average + one SVC" and against the plain loop, in one run.

All start from the same list of float64 kernels and include what they do to bring it into their form.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

import kernelweave
from benchmarks.baselines import average_and_svc, plain_loop
from benchmarks.problems import SIZES, simple_bank
from kernelweave import MKLClassifier
from kernelweave.geometry import BoxSimplex, LpBall, Simplex
from kernelweave.learners import Hinge

TOL = 1e-3
OURS = {"lp p=2": LpBall(2.0), "simplex": Simplex(), "box simplex nu=0.3": BoxSimplex(nu=0.3)}
PLAIN = {"lp p=2": 2.0, "simplex": 1.0}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=5, help="interleaved rounds; the fastest of each counts"
    )
    parser.add_argument(
        "--plain-rounds",
        type=int,
        default=1,
        help="rounds that include the plain loop on the simplex, which takes hundreds of machines",
    )
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), help=f"any of {list(SIZES)}")
    parser.add_argument("--costs", nargs="*", type=float, default=[1.0, 100.0], help="values of C")
    parser.add_argument("--jobs", type=int, default=2, help="threads of our passes")
    options = parser.parse_args()
    console = Console()
    rows = []
    for size in options.sizes:
        Ks, y = simple_bank(*SIZES[size])
        for C in options.costs:
            rows += measure(size, Ks, y, C, options, console)
    console.print(table(rows))
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "latest.json"
    path.write_text(json.dumps({"machine": versions(), "tol": TOL, "rows": rows}, indent=1))
    console.print(f"written to {path}")


def measure(
    size: str, Ks: list, y: np.ndarray, C: float, options: argparse.Namespace, console: Console
) -> list:
    """Time every contestant in turn, several rounds; keep the fastest time of each."""
    solves: dict[str, int] = {}

    def ours(name: str) -> None:
        model = MKLClassifier(
            "precomputed", learner=Hinge(C=C), geometry=OURS[name], tol=TOL, n_jobs=options.jobs
        )
        solves[name] = model.fit(Ks, y).n_iter_

    def plain(name: str) -> None:
        solves[f"plain {name}"] = plain_loop(Ks, y, C, PLAIN[name], TOL)

    contestants: dict[str, Callable[[], None]] = {"average": lambda: average_and_svc(Ks, y, C)}
    contestants |= {name: (lambda name=name: ours(name)) for name in OURS}
    contestants["plain lp p=2"] = lambda: plain("lp p=2")
    slow = {"plain simplex": lambda: plain("simplex")}
    times: dict[str, float] = {}
    for round_ in range(options.rounds):
        for name, run in (contestants | (slow if round_ < options.plain_rounds else {})).items():
            console.log(f"{size} C={C:g} round {round_ + 1}: {name}")
            with threadpool_limits(options.jobs):
                start = time.perf_counter()
                run()
            times[name] = min(times.get(name, np.inf), time.perf_counter() - start)
    return [
        {
            "size": size,
            "C": C,
            "method": name,
            "seconds": times[name],
            "machines": solves[name],
            "to_average": times[name] / times["average"],
            "plain_seconds": times.get(f"plain {name}"),
            "plain_machines": solves.get(f"plain {name}"),
            "plain_to_ours": times[f"plain {name}"] / times[name] if f"plain {name}" in times else None,
        }
        for name in OURS
    ]


def table(rows: list) -> Table:
    out = Table(title=f"Fit to a relative gap of {TOL:g}, float64 kernels as given, conversion included")
    for column in (
        "size",
        "C",
        "method",
        "ours",
        "machines",
        "÷ average + SVC",
        "plain loop",
        "machines",
        "plain ÷ ours",
    ):
        out.add_column(column, justify="left" if column in ("size", "method") else "right")
    for row in rows:
        out.add_row(
            row["size"],
            f"{row['C']:g}",
            row["method"],
            f"{1e3 * row['seconds']:.0f} ms",
            str(row["machines"]),
            f"{row['to_average']:.2f}",
            f"{row['plain_seconds']:.2f} s" if row["plain_seconds"] else "–",
            str(row["plain_machines"] or "–"),
            f"{row['plain_to_ours']:.1f}×" if row["plain_to_ours"] else "–",
        )
    return out


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "processor": platform.processor() or platform.machine(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "kernelweave": kernelweave.__version__,
    }


if __name__ == "__main__":
    main()
