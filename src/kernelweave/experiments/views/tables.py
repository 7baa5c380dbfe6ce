"""Views that are tables only: means, times, and accuracies with their differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.evaluation import average_ranks
from kernelweave.experiments.study import Records, ResultTable
from kernelweave.experiments.views.split_values import Published, split_values

# Figures as printed in a paper, without deviations, by row and method.
PrintedMeans = Mapping[str, Mapping[str, float]]


class TablesOnly:
    """A view without a figure."""

    def draw(self, records: Records, file: Path) -> bool:  # noqa: ARG002 - the tables say it all
        return False


@dataclass(frozen=True)
class Means(TablesOnly):
    """Mean ± deviation over the splits by row and method; in brackets what the paper printed."""

    measure: str
    rows: Mapping[Any, str]
    methods: tuple[str, ...]
    printed: PrintedMeans
    row_key: str = "dataset"
    scale: float = 100.0
    title: str = ""

    def tables(self, records: Records) -> list[ResultTable]:
        lines, counts = [], set()
        for row, title in self.rows.items():
            cells = []
            for method in self.methods:
                own = [r for r in records if r[self.row_key] == row and r["method"] == method]
                values = [r[self.measure] for r in own if self.measure in r]
                printed = self.printed.get(row, {}).get(method)
                beside = "" if printed is None else f" [{printed:.2f}]"
                counts |= {len(values)} if values else set()
                cells.append(self._text(values) + beside)
            if any(not cell.startswith("–") for cell in cells):
                lines.append((title, *cells))
        if not lines:
            return []
        splits = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        title = f"{self.title or self.measure}: mean ± standard deviation over {splits} splits"
        title = title if counts != {1} else f"{self.title or self.measure}, one split"
        title += "; in brackets the printed figures" if self.printed else ""
        return [ResultTable(title, ("", *self.methods), tuple(lines))]

    def _text(self, values: list[float]) -> str:
        if not values:
            return "–"
        deviation = f" ± {self.scale * np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
        return f"{self.scale * np.mean(values):.2f}{deviation}"


@dataclass(frozen=True)
class TaskMeans(TablesOnly):
    """The mean of a measure that only some methods have, by task."""

    measure: str
    title: str
    tasks: tuple[str, ...]

    def tables(self, records: Records) -> list[ResultTable]:
        own = [r for r in records if self.measure in r]
        methods = tuple(dict.fromkeys(r["method"] for r in own))
        lines = []
        for task in self.tasks:
            values = [
                [r[self.measure] for r in own if r["dataset"] == task and r["method"] == m] for m in methods
            ]
            if any(values):
                lines.append((task, *(f"{np.mean(v):.3f}" if v else "–" for v in values)))
        return [ResultTable(self.title, ("", *methods), tuple(lines))] if lines else []


@dataclass(frozen=True)
class Times(TablesOnly):
    """Mean time by data set and method over the baseline's mean; in brackets the same ratio as printed."""

    measure: str
    datasets: Mapping[str, str]
    methods: tuple[str, ...]
    published: Published
    baseline: str

    def tables(self, records: Records) -> list[ResultTable]:
        found = split_values(records, self.measure, self.methods, tuple(self.datasets))
        if not found.rows:
            return []
        lines: list[tuple[str, ...]] = []
        for dataset in found.rows:
            base = found.summary(dataset, self.baseline).mean
            ours = [f"{found.summary(dataset, method).mean / base:.2f}" for method in found.methods]
            ours[found.methods.index(self.baseline)] = f"1 ({1e3 * base:.0f} ms)"
            printed = self.published.get(dataset, {})
            theirs = [
                f"[{printed[method][0] / printed[self.baseline][0]:.1f}]" if method in printed else "–"
                for method in found.methods
            ]
            lines += [(self.datasets[dataset], *ours), ("", *theirs)]
        ranked = average_ranks(found.means(), larger_is_better=False)
        lines.append(("average rank", *(f"{rank:.2f}" for rank in ranked)))
        title = (
            f"Mean training time over {found.count} splits as a multiple of {self.baseline}'s; "
            "in brackets the printed ratio"
        )
        return [ResultTable(title, ("", *found.methods), tuple(lines))]


@dataclass(frozen=True)
class Accuracies(TablesOnly):
    """Mean accuracy in percent by task and method, printed ones in brackets, and paired differences.

    ``seconds`` adds mean times as multiples of the baseline's.
    """

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    baseline: str
    printed: PrintedMeans
    seconds: bool = False

    def tables(self, records: Records) -> list[ResultTable]:
        found = self._values(records, "accuracy")
        if not found:
            return []
        lines: list[tuple[str, ...]] = []
        for task, values in found.items():
            mean, deviation = 100.0 * values.mean(axis=1), 100.0 * values.std(axis=1)
            several = values.shape[1] > 1
            texts = [_percent(m, d if several else None) for m, d in zip(mean, deviation, strict=True)]
            lines.append((task, *texts))
            if task in self.printed:
                theirs = self.printed[task]
                lines.append(("", *(f"[{theirs[m]:.1f}]" if m in theirs else "–" for m in self.methods)))
        means = 100.0 * np.array([values.mean(axis=1) for values in found.values()])
        lines.append(("mean", *(_percent(m) for m in means.mean(axis=0))))
        if self.printed:
            known = [
                [self.printed[t][m] for t in found if m in self.printed.get(t, {})] for m in self.methods
            ]
            lines.append(("", *(f"[{np.mean(values):.1f}]" if values else "–" for values in known)))
        count = min(values.shape[1] for values in found.values())
        brackets = "; in brackets the printed figures" if self.printed else ""
        tables = [
            ResultTable(f"Accuracy in %, {count} split(s){brackets}", ("", *self.methods), tuple(lines))
        ]
        if count > 1:
            tables.append(self._differences(found))
        return [*tables, self._times(records)] if self.seconds else tables

    def _differences(self, found: Mapping[str, AnyArray]) -> ResultTable:
        base = self.methods.index(self.baseline)
        lines = []
        for task, values in found.items():
            d = 100.0 * (values - values[base])
            error = d.std(axis=1, ddof=1) / np.sqrt(d.shape[1])
            cells = [
                "–" if m == base or np.isnan(d[m]).any() else f"{d[m].mean():+.2f} ± {error[m]:.2f}"
                for m in range(len(self.methods))
            ]
            lines.append((task, *cells))
        title = f"Difference to {self.baseline}, split by split, ± its standard error"
        return ResultTable(title, ("", *self.methods), tuple(lines))

    def _times(self, records: Records) -> ResultTable:
        base, lines = self.methods.index(self.baseline), []
        for measure, title in (("seconds", "training"), ("predict_seconds", "prediction")):
            found = self._values(records, measure)
            sums = np.sum([values.mean(axis=1) for values in found.values()], axis=0)
            lines.append((title, *(f"{s / sums[base]:.1f}" for s in sums)))
        title = f"Processor time over all tasks, as a multiple of {self.baseline}'s"
        return ResultTable(title, ("", *self.methods), tuple(lines))

    def _values(self, records: Records, measure: str) -> dict[str, AnyArray]:
        """Return (methods, splits) of every task, for the splits that every method has finished."""
        values = {}
        for task in self.tasks:
            own = {(r["method"], r["split"]): r.get(measure, np.nan) for r in records if r["dataset"] == task}
            splits = sorted({s for _, s in own if all((m, s) in own for m in self.methods)})
            if splits:
                values[task] = np.array([[own[m, s] for s in splits] for m in self.methods])
        return values


def _percent(mean: float, deviation: float | None = None) -> str:
    if np.isnan(mean):
        return "too few samples"
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f} ± {deviation:.1f}"
