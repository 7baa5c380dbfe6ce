"""A table of means, with printed figures that have no deviation beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave.experiments.experiment import Grid, Records

PrintedMeans = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Means:
    """Mean ± deviation over the splits by row and method; in brackets what the paper printed."""

    measure: str
    rows: Mapping[Any, str]
    methods: tuple[str, ...]
    printed: PrintedMeans
    row_key: str = "dataset"
    scale: float = 100.0
    title: str = ""

    def tables(self, records: Records) -> list[Grid]:
        lines, counts = [], set()
        for row, title in self.rows.items():
            cells = []
            for method in self.methods:
                mine = [r for r in records if r[self.row_key] == row and r["method"] == method]
                values = [r[self.measure] for r in mine if self.measure in r]
                printed = self.printed.get(row, {}).get(method)
                beside = "" if printed is None else f" [{printed:.2f}]"
                counts |= {len(values)} if values else set()
                cells.append(self._cell(values) + beside)
            if any(not cell.startswith("–") for cell in cells):
                lines.append((title, *cells))
        if not lines:
            return []
        splits = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        title = f"{self.title or self.measure}: mean ± standard deviation over {splits} splits"
        title = title if counts != {1} else f"{self.title or self.measure}, one split"
        title += "; in brackets the printed figures" if self.printed else ""
        return [Grid(title, ("", *self.methods), tuple(lines))]

    def draw(self, records: Records, file: Path) -> bool:  # noqa: ARG002 - the table says it all
        return False

    def _cell(self, values: list[float]) -> str:
        if not values:
            return "–"
        deviation = f" ± {self.scale * np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
        return f"{self.scale * np.mean(values):.2f}{deviation}"
