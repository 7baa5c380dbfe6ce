"""This version against another one, installed in an environment of its own; both take turns in one run."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.against_worker import cells

WORKER = Path(__file__).with_name("against_worker.py")
PARTS = ("given", "raw", "search", "predict")


class Version:
    """A version of the package, in a process of its own."""

    def __init__(self, python: str, path: str | None = None) -> None:
        command, own = [python, str(WORKER)], {} if path is None else {"PYTHONPATH": path}
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | own
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environment, **pipes)

    def ask(self, **request: object) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def run(options: argparse.Namespace, console: Console) -> list[dict]:
    """Time every cell in turn, several rounds; keep the fastest time of each."""
    python = Path(options.against) / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"--against needs an environment with bin/python; {python} is not there.")
    parts = [part for part in PARTS if not options.parts or part in options.parts]
    versions = {"old": Version(str(python)), "new": Version(sys.executable, os.environ.get("PYTHONPATH"))}
    rows, last = [], None
    for cell in cells(parts):
        if last is not None and cell[:2] != last:
            for version in versions.values():
                version.ask(forget=True)
        last = cell[:2]
        console.log(" ".join(map(str, cell)))
        times = dict.fromkeys(versions, math.inf)
        for round_ in range(options.rounds):
            for name in versions if round_ % 2 == 0 else reversed(versions):
                times[name] = min(times[name], versions[name].ask(cell=cell, memory=False))
        memory = {name: version.ask(cell=cell, memory=True) for name, version in versions.items()}
        rows.append(
            {
                "cell": list(cell),
                "old_seconds": times["old"],
                "new_seconds": times["new"],
                "ratio": times["new"] / times["old"],
                "old_megabytes": memory["old"],
                "new_megabytes": memory["new"],
            }
        )
    for version in versions.values():
        version.close()
    return rows


def table(rows: list[dict]) -> Table:
    out = Table(title=f"new ÷ old, fastest of each; {summary(rows)}")
    for column in ("what", "size", "C", "how", "old", "new", "new ÷ old", "old MB", "new MB"):
        out.add_column(column, justify="left" if column in ("what", "size", "how") else "right")
    for row in rows:
        part, size, C, how = row["cell"]
        out.add_row(
            part,
            size,
            f"{C:g}",
            how,
            f"{1e3 * row['old_seconds']:.1f} ms",
            f"{1e3 * row['new_seconds']:.1f} ms",
            f"{row['ratio']:.2f}",
            f"{row['old_megabytes']:.0f}",
            f"{row['new_megabytes']:.0f}",
        )
    return out


def summary(rows: list[dict]) -> str:
    """Return the geometric mean of the ratios of fits and searches, and the worst; predictions apart."""
    fits = [row["ratio"] for row in rows if row["cell"][0] != "predict"]
    parts = []
    if fits:
        mean = math.exp(sum(map(math.log, fits)) / len(fits))
        parts.append(f"fits: geometric mean {mean:.2f}, worst {max(fits):.2f}")
    predictions = [row["ratio"] for row in rows if row["cell"][0] == "predict"]
    if predictions:
        parts.append(f"predictions: worst {max(predictions):.2f}")
    return "; ".join(parts)
