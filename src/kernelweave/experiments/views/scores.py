"""A table of scores with ranks, the printed ones beside them, and what the differences mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelweave.evaluation import friedman_nemenyi, paired, ranks
from kernelweave.experiments.experiment import Grid, Records
from kernelweave.experiments.published import Published
from kernelweave.experiments.views.cells import Cells, gather


@dataclass(frozen=True)
class Scores:
    """Mean ± deviation (rank) by data set and method; below them, in brackets, what the paper printed.

    Without printed figures there are no brackets. A second table compares every method with ``baseline``
    split by split; Friedman's test and Nemenyi's critical difference stand below the first, and are drawn.
    ``label`` is the measure in words.
    """

    measure: str
    datasets: Mapping[str, str]
    methods: tuple[str, ...]
    published: Published
    baseline: str
    scale: float = 100.0
    test_share: float = 0.3
    label: str = ""

    @property
    def title(self) -> str:
        """What is measured, and in which unit, as the beginning of a caption."""
        name = self.label or self.measure.replace("_", " ")
        return f"{name[:1].upper()}{name[1:]}{' in %' if self.scale == 100.0 else ''}"

    def tables(self, records: Records) -> list[Grid]:
        cells = gather(records, self.measure, self.methods, tuple(self.datasets))
        if not cells.rows:
            return []
        return [self._scores(cells), self._differences(cells)]

    def draw(self, records: Records, file: Path) -> bool:
        from kernelweave.plots import CriticalDifferenceDisplay

        cells = gather(records, self.measure, self.methods, tuple(self.datasets))
        if len(cells.rows) < 2 or len(cells.methods) < 3:
            return False
        test = friedman_nemenyi(cells.means())
        CriticalDifferenceDisplay(cells.methods, test.average_ranks, test.critical_difference).save(file)
        return True

    def _scores(self, cells: Cells) -> Grid:
        means = cells.means()
        place = ranks(means.round(6))
        lines: list[tuple[str, ...]] = []
        agree, compared = 0, 0
        for i, dataset in enumerate(cells.rows):
            ours, theirs = [], []
            for j, method in enumerate(cells.methods):
                s = cells.summary(dataset, method)
                mean = self.scale * s.mean
                ours.append(f"{mean:.2f} ± {self.scale * s.deviation:.2f} ({place[i, j]:g})")
                printed = self.published.get(dataset, {}).get(method)
                theirs.append("–" if printed is None else f"[{printed[0]:.2f} ± {printed[1]:.2f}]")
                if printed is not None:
                    compared += 1
                    agree += abs(mean - printed[0]) <= printed[1]
            lines += [(self.datasets[dataset], *ours), *([("", *theirs)] if self.published else [])]
        lines.append(("average rank", *(f"{rank:.2f}" for rank in place.mean(axis=0))))
        caption = f"{self.title}: mean ± standard deviation over {cells.count} splits (rank)"
        remark = f"{agree} of {compared} means lie within one printed standard deviation of the printed mean."
        return Grid(
            f"{caption}; in brackets the printed figures" if self.published else caption,
            ("", *cells.methods),
            tuple(lines),
            (*([remark] if compared else []), *self._verdict(cells)),
        )

    def _verdict(self, cells: Cells) -> tuple[str, ...]:
        if len(cells.rows) < 2 or len(cells.methods) < 3:
            return ()
        test = friedman_nemenyi(cells.means())
        return (
            f"Friedman's test over {test.n_datasets} data sets: χ² = {test.statistic:.2f}, "
            f"p = {test.p_value:.2g}; "
            f"average ranks differ beyond chance (Nemenyi, 5 %) from {test.critical_difference:.2f} on.",
        )

    def _differences(self, cells: Cells) -> Grid:
        lines = []
        for dataset in cells.rows:
            base = cells.values[dataset, self.baseline]
            line = [self.datasets[dataset]]
            for method in cells.methods:
                mine = cells.values[dataset, method]
                if method == self.baseline or len(mine) < 2 or len(mine) != len(base):
                    line.append("–")
                    continue
                d = paired(mine, base, test_share=self.test_share)
                if not d.is_known:
                    line.append(f"{self.scale * d.difference:+.2f} on every split")
                    continue
                low, high = (self.scale * bound for bound in d.interval)
                line.append(f"{self.scale * d.difference:+.2f} [{low:+.2f}, {high:+.2f}], d = {d.effect:.2f}")
            lines.append(tuple(line))
        return Grid(
            f"{self.title}: difference to {self.baseline}, split by split, with its 95 % interval and effect "
            "size",
            ("", *cells.methods),
            tuple(lines),
            ("The intervals allow for the overlap of the training sets (Nadeau and Bengio).",),
        )
