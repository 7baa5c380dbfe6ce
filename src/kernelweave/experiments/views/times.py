"""Training times as multiples of a baseline's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelweave.evaluation import average_ranks
from kernelweave.experiments.experiment import Grid, Records
from kernelweave.experiments.published import Published
from kernelweave.experiments.views.cells import gather


@dataclass(frozen=True)
class Times:
    """Mean time by data set and method over the baseline's mean; in brackets the same ratio as printed."""

    measure: str
    datasets: Mapping[str, str]
    methods: tuple[str, ...]
    published: Published
    baseline: str

    def tables(self, records: Records) -> list[Grid]:
        cells = gather(records, self.measure, self.methods, tuple(self.datasets))
        if not cells.rows:
            return []
        lines: list[tuple[str, ...]] = []
        for dataset in cells.rows:
            base = cells.summary(dataset, self.baseline).mean
            ours = [f"{cells.summary(dataset, method).mean / base:.2f}" for method in cells.methods]
            ours[cells.methods.index(self.baseline)] = f"1 ({1e3 * base:.0f} ms)"
            printed = self.published.get(dataset, {})
            theirs = [
                f"[{printed[method][0] / printed[self.baseline][0]:.1f}]" if method in printed else "–"
                for method in cells.methods
            ]
            lines += [(self.datasets[dataset], *ours), ("", *theirs)]
        ranked = average_ranks(cells.means(), larger_is_better=False)
        lines.append(("average rank", *(f"{rank:.2f}" for rank in ranked)))
        return [
            Grid(
                f"Mean training time over {cells.count} splits as a multiple of {self.baseline}'s; "
                "in brackets the printed ratio",
                ("", *cells.methods),
                tuple(lines),
            )
        ]

    def draw(self, records: Records, file: Path) -> bool:  # noqa: ARG002 - the table says it all
        return False
