"""docs/speed.md: the tables of all results that are there, as they were measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

HEAD = """# Speed and memory

Made by `python -m benchmarks` from the files of `benchmarks/results`; nothing here is typed. Unless its title says
otherwise, the methods of a table took turns in one run, there and back, each after a short pause, and the fastest
time of each counts: ratios can be compared, times only within their table. Two threads unless the title names
another number.
"""

DEFAULTS_HEAD = """# What the defaults reach

Made by `python -m benchmarks defaults --data FOLDER` from `benchmarks/results/defaults.json`; nothing here is typed.
`benchmarks/defaults.py` says what was run. Everything was chosen on the sets of role tune; those of role confirm
were looked at when it was done. Losses are in the table like gains.
"""


def defaults_page(part: Any, results: Path) -> str:
    """Return the page of what the estimators reach without arguments."""
    content = json.loads((results / "defaults.json").read_text(encoding="utf-8"))
    tables = [*part.summaries(content["rows"]), part.table(content["rows"])]
    return "\n".join([DEFAULTS_HEAD, *(f"{markdown(table)}\n" for table in tables), _versions(content)])


def _versions(content: Mapping[str, Any]) -> str:
    known = content["versions"]
    versions = ", ".join(f"{what} {known[what]}" for what in ("python", "numpy", "scikit-learn"))
    return f"({versions})\n"


def page(parts: Mapping[str, Any], results: Path) -> str:
    """Return the page of all parts whose results are there, in the order of the parts."""
    sections = []
    for name, part in parts.items():
        file = results / f"{name}.json"
        if file.is_file():
            content = json.loads(file.read_text(encoding="utf-8"))
            sections.append(f"## {name}\n\n{markdown(part.table(content['rows']))}\n\n{_versions(content)}")
    return "\n".join([HEAD, *sections])


def markdown(table: Table) -> str:
    """Return a table of text for a page."""
    columns = [[str(cell).replace("|", "\\|") for cell in column.cells] for column in table.columns]
    lines = [[str(column.header) for column in table.columns], ["---:"] * len(columns)]
    lines[1][0] = "---"
    lines += [list(cells) for cells in zip(*columns, strict=True)]
    rows = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table.title}\n\n{rows}"
