"""A measure along an axis, one line per method, with the interval of its mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelweave.evaluation.statistics import interval_of_mean
from kernelweave.experiments.experiment import Grid, Records
from kernelweave.experiments.views.cells import Cells, gather


@dataclass(frozen=True)
class Bands:
    """The mean of ``measure`` at every value of ``x``, with its 95 % interval over the splits."""

    measure: str
    methods: tuple[str, ...]
    x: str
    x_label: str
    y_label: str
    scale: float = 100.0

    def tables(self, records: Records) -> list[Grid]:
        cells = self._cells(records)
        if not cells.rows:
            return []
        lines = tuple(
            (
                f"{row:g}",
                *(f"{self.scale * (s := cells.summary(row, m)).mean:.2f} ± {self.scale * s.deviation:.2f}"
                  for m in cells.methods),
            )
            for row in cells.rows
        )  # fmt: skip
        title = f"{self.y_label.capitalize()}: mean ± standard deviation over {cells.count} splits"
        return [Grid(title, (self.x_label, *cells.methods), lines)]

    def draw(self, records: Records, file: Path) -> bool:
        from kernelweave.plots import BandsDisplay

        cells = self._cells(records)
        if not cells.rows:
            return False
        bands = {
            method: self.scale
            * np.array(
                [
                    (cells.summary(x, method).mean, *interval_of_mean(cells.values[x, method]))
                    for x in cells.rows
                ]
            )
            for method in cells.methods
        }
        BandsDisplay(np.array(cells.rows, dtype=float), bands, self.x_label, self.y_label).save(file)
        return True

    def _cells(self, records: Records) -> Cells:
        places = sorted({record[self.x] for record in records})
        return gather(records, self.measure, self.methods, places, by=self.x)
