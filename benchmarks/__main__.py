"""`python -m benchmarks`: time and memory as ratios, every comparison in one interleaved run.

Without a name all parts run: given, raw, large, growth, peers, fisher, privileged, weak, obscure, stream,
metric. Tables are printed and everything is written to benchmarks/results/latest.json.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import numpy as np
import sklearn
from rich.console import Console

import kernelweave
from benchmarks import fisher, given, growth, large, metric, obscure, peers, privileged, raw, stream, weak

RESULTS = Path(__file__).parent / "results"
PARTS = {
    "given": given,
    "raw": raw,
    "large": large,
    "growth": growth,
    "peers": peers,
    "fisher": fisher,
    "privileged": privileged,
    "weak": weak,
    "obscure": obscure,
    "stream": stream,
    "metric": metric,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"any of {', '.join(PARTS)}; none means all")
    parser.add_argument(
        "--rounds", type=int, default=5, help="interleaved rounds; the fastest of each counts"
    )
    parser.add_argument("--sizes", nargs="*", default=list(given.SIZES), help=f"any of {list(given.SIZES)}")
    parser.add_argument("--costs", nargs="*", type=float, default=[1.0, 100.0], help="values of C")
    parser.add_argument("--jobs", type=int, default=2, help="threads of our passes")
    parser.add_argument("--most", type=int, default=None, help="most samples of the part obscure")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    console = Console(width=150)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "latest.json"
    found = {"versions": versions()}
    for name in options.parts or PARTS:
        rows = PARTS[name].run(options, console)
        console.print(PARTS[name].table(rows))
        found[name] = rows
        path.write_text(json.dumps(found, indent=1))
    console.print(f"written to {path}")


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
