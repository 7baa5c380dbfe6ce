"""What is shown of a contest in views: accuracies beside printed ones, differences, times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.experiments.experiment import Grid, Records

Printed = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Accuracies:
    """Mean accuracy in percent by task and method, printed ones in brackets, and paired differences.

    ``seconds`` adds mean times as multiples of the baseline's.
    """

    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    baseline: str
    printed: Printed
    seconds: bool = False

    def tables(self, records: Records) -> list[Grid]:
        values = {task: self._values(records, "accuracy", task) for task in self.tasks}
        shown = {task: found for task, found in values.items() if found.size}
        if not shown:
            return []
        lines: list[tuple[str, ...]] = []
        for task, found in shown.items():
            mean, deviation = 100.0 * found.mean(axis=1), 100.0 * found.std(axis=1)
            lines.append(
                (
                    task,
                    *(
                        _text(m, d if found.shape[1] > 1 else None)
                        for m, d in zip(mean, deviation, strict=True)
                    ),
                )
            )
            if task in self.printed:
                theirs = self.printed[task]
                lines.append(("", *(f"[{theirs[m]:.1f}]" if m in theirs else "–" for m in self.methods)))
        means = 100.0 * np.array([found.mean(axis=1) for found in shown.values()])
        lines.append(("mean", *(_text(m) for m in means.mean(axis=0))))
        if self.printed:
            known = [
                [self.printed[t][m] for t in shown if m in self.printed.get(t, {})] for m in self.methods
            ]
            lines.append(("", *(f"[{np.mean(values):.1f}]" if values else "–" for values in known)))
        count = min(found.shape[1] for found in shown.values())
        title = f"Accuracy in %, {count} split(s)" + (
            "; in brackets the printed figures" if self.printed else ""
        )
        grids = [Grid(title, ("", *self.methods), tuple(lines))]
        if count > 1:
            grids.append(self._differences(shown))
        return [*grids, *self._times(records)]

    def draw(self, records: Records, file: Path) -> bool:  # noqa: ARG002 - the tables say it all
        return False

    def _differences(self, shown: Mapping[str, AnyArray]) -> Grid:
        base = self.methods.index(self.baseline)
        lines = []
        for task, found in shown.items():
            d = 100.0 * (found - found[base])
            error = d.std(axis=1, ddof=1) / np.sqrt(d.shape[1])
            cells = [
                "–" if m == base or np.isnan(d[m]).any() else f"{d[m].mean():+.2f} ± {error[m]:.2f}"
                for m in range(len(self.methods))
            ]
            lines.append((task, *cells))
        return Grid(
            f"Difference to {self.baseline}, split by split, ± its standard error",
            ("", *self.methods),
            tuple(lines),
        )

    def _times(self, records: Records) -> list[Grid]:
        if not self.seconds:
            return []
        base, lines = self.methods.index(self.baseline), []
        for measure, title in (("seconds", "training"), ("predict_seconds", "prediction")):
            sums = np.sum(
                [f.mean(axis=1) for t in self.tasks if (f := self._values(records, measure, t)).size], axis=0
            )
            lines.append((title, *(f"{s / sums[base]:.1f}" for s in sums)))
        return [
            Grid(
                f"Processor time over all tasks, as a multiple of {self.baseline}'s",
                ("", *self.methods),
                tuple(lines),
            )
        ]

    def _values(self, records: Records, measure: str, task: str) -> AnyArray:
        """Return (methods, splits) of a task, for the splits that every method has finished."""
        found = {(r["method"], r["split"]): r.get(measure, np.nan) for r in records if r["dataset"] == task}
        splits = sorted({s for m, s in found if all((other, s) in found for other in self.methods)})
        return np.array([[found[m, s] for s in splits] for m in self.methods]) if splits else np.empty(0)


@dataclass(frozen=True)
class Means:
    """The mean of another measure by task, for the methods that have it."""

    measure: str
    title: str
    tasks: tuple[str, ...]

    def tables(self, records: Records) -> list[Grid]:
        own = [r for r in records if self.measure in r]
        methods = tuple(dict.fromkeys(r["method"] for r in own))
        lines = []
        for task in self.tasks:
            values = [
                [r[self.measure] for r in own if r["dataset"] == task and r["method"] == m] for m in methods
            ]
            if any(values):
                lines.append((task, *(f"{np.mean(v):.3f}" if v else "–" for v in values)))
        return [Grid(self.title, ("", *methods), tuple(lines))] if lines else []

    def draw(self, records: Records, file: Path) -> bool:  # noqa: ARG002 - the table says it all
        return False


def _text(mean: float, deviation: float | None = None) -> str:
    if np.isnan(mean):
        return "too few samples"
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f} ± {deviation:.1f}"
