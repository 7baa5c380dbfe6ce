"""`python -m benchmarks`: time and memory as ratios, every comparison in one interleaved run.

Without a name all parts run but defaults, which compares what the classifiers reach with no arguments and reads its
sets from `--data`. Tables are printed, what was measured is written to benchmarks/results, one file a part, and
docs/speed.md and docs/defaults.md are made of all files there; `--page` does only that. With
`--against ENVIRONMENT` this version is compared with the one installed there instead, in the parts given, raw,
search and predict.
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
from benchmarks import (
    against,
    defaults,
    evidence,
    fisher,
    given,
    growth,
    landmarks,
    large,
    metric,
    obscure,
    peers,
    privileged,
    raw,
    search,
    stream,
    tables,
    weak,
)
from benchmarks.page import defaults_page, page

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "speed.md"
DEFAULTS_PAGE = PAGE.with_name("defaults.md")
PARTS = {
    "given": given,
    "raw": raw,
    "search": search,
    "large": large,
    "landmarks": landmarks,
    "growth": growth,
    "peers": peers,
    "fisher": fisher,
    "privileged": privileged,
    "weak": weak,
    "obscure": obscure,
    "stream": stream,
    "metric": metric,
    "evidence": evidence,
    "tables": tables,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", help=f"any of {', '.join(PARTS)}, defaults; none means all but the last"
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="interleaved rounds; the fastest of each counts"
    )
    parser.add_argument("--sizes", nargs="*", default=list(given.SIZES), help=f"any of {list(given.SIZES)}")
    parser.add_argument("--costs", nargs="*", type=float, default=[1.0, 100.0], help="values of C")
    parser.add_argument("--jobs", type=int, default=2, help="threads of our passes")
    parser.add_argument(
        "--most", type=int, default=None, help="most samples of the parts large, landmarks and obscure"
    )
    parser.add_argument("--data", help="a folder of data sets, for the part defaults")
    parser.add_argument("--role", help="only sets of this role in the part defaults: tune or confirm")
    parser.add_argument("--page", action="store_true", help="only write docs/speed.md and docs/defaults.md")
    parser.add_argument("--against", metavar="ENVIRONMENT", help="an environment with another version")
    options = parser.parse_args()
    if options.against:
        unknown = set(options.parts) - set(against.PARTS)
        if unknown:
            parser.error(f"--against knows {', '.join(against.PARTS)}; got {', '.join(sorted(unknown))}")
        console = Console(width=150)
        console.print(against.table(against.run(options, console)))
        return
    every = {**PARTS, "defaults": defaults}
    unknown = set(options.parts) - set(every)
    if unknown:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    if "defaults" in options.parts and options.data is None:
        parser.error(
            "the part defaults needs --data FOLDER, a folder of data sets; see benchmarks/defaults.py"
        )
    console = Console(width=150)
    RESULTS.mkdir(exist_ok=True)
    for name in () if options.page else options.parts or PARTS:
        rows = every[name].run(options, console)
        console.print(every[name].table(rows))
        if rows:
            content = {"versions": versions(), "rows": rows}
            (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
    PAGE.write_text(page(PARTS, RESULTS), encoding="utf-8")
    DEFAULTS_PAGE.write_text(defaults_page(defaults, RESULTS), encoding="utf-8")
    console.print(f"written to {RESULTS}, {PAGE} and {DEFAULTS_PAGE}")


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
