"""One number per data set and method, as a table and as bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelweave.experiments.experiment import Grid, Records
from kernelweave.experiments.views.cells import gather


@dataclass(frozen=True)
class Bars:
    """The mean of a measure by data set and method."""

    measure: str
    datasets: Mapping[str, str]
    methods: tuple[str, ...]
    label: str

    def tables(self, records: Records) -> list[Grid]:
        cells = gather(records, self.measure, self.methods, tuple(self.datasets))
        if not cells.rows:
            return []
        lines = tuple(
            (
                self.datasets[row],
                *(f"{(s := cells.summary(row, m)).mean:.1f} ± {s.deviation:.1f}" for m in cells.methods),
            )
            for row in cells.rows
        )
        title = f"{self.label.capitalize()}: mean ± standard deviation over {cells.count} splits"
        return [Grid(title, ("", *cells.methods), lines)]

    def draw(self, records: Records, file: Path) -> bool:
        from kernelweave.plots import GroupedBarsDisplay

        cells = gather(records, self.measure, self.methods, tuple(self.datasets))
        if not cells.rows:
            return False
        names = tuple(self.datasets[row] for row in cells.rows)
        GroupedBarsDisplay(names, cells.methods, cells.means(), self.label).save(file)
        return True
