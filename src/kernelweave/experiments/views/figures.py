"""Views with a figure: scores with critical differences, bars, lines with bands, kernel weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.evaluation import friedman_nemenyi, paired, ranks
from kernelweave.evaluation.statistics import interval_of_mean
from kernelweave.experiments.study import Records, ResultTable
from kernelweave.experiments.views.split_values import Published, SplitValues, split_values


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

    def tables(self, records: Records) -> list[ResultTable]:
        found = self._values(records)
        return [self._scores(found), self._differences(found)] if found.rows else []

    def draw(self, records: Records, file: Path) -> bool:
        from kernelweave.plots import CriticalDifferenceDisplay

        found = self._values(records)
        if not _can_be_tested(found):
            return False
        test = friedman_nemenyi(found.means())
        CriticalDifferenceDisplay(found.methods, test.average_ranks, test.critical_difference).save(file)
        return True

    def _values(self, records: Records) -> SplitValues:
        return split_values(records, self.measure, self.methods, tuple(self.datasets))

    def _scores(self, found: SplitValues) -> ResultTable:
        means = found.means()
        rank = ranks(means.round(6))  # means that differ by rounding share a rank
        lines: list[tuple[str, ...]] = []
        agree, compared = 0, 0
        for i, dataset in enumerate(found.rows):
            texts = found.texts(dataset, self.scale)
            ours = [f"{text} ({rank[i, j]:g})" for j, text in enumerate(texts)]
            lines.append((self.datasets[dataset], *ours))
            theirs = []
            for j, method in enumerate(found.methods):
                printed = self.published.get(dataset, {}).get(method)
                theirs.append("–" if printed is None else f"[{printed[0]:.2f} ± {printed[1]:.2f}]")
                if printed is not None:
                    compared += 1
                    agree += abs(self.scale * means[i, j] - printed[0]) <= printed[1]
            lines += [("", *theirs)] if self.published else []
        lines.append(("average rank", *(f"{mean:.2f}" for mean in rank.mean(axis=0))))
        caption = f"{self.title}: mean ± standard deviation over {found.count} splits (rank)"
        remark = f"{agree} of {compared} means lie within one printed standard deviation of the printed mean."
        return ResultTable(
            f"{caption}; in brackets the printed figures" if self.published else caption,
            ("", *found.methods),
            tuple(lines),
            (*([remark] if compared else []), *_friedman_remark(found)),
        )

    def _differences(self, found: SplitValues) -> ResultTable:
        lines = [
            (self.datasets[dataset], *(self._difference(found, dataset, m) for m in found.methods))
            for dataset in found.rows
        ]
        return ResultTable(
            f"{self.title}: difference to {self.baseline}, split by split, with its 95 % interval and effect "
            "size",
            ("", *found.methods),
            tuple(lines),
            ("The intervals allow for the overlap of the training sets (Nadeau and Bengio).",),
        )

    def _difference(self, found: SplitValues, dataset: str, method: str) -> str:
        base, own = found.values[dataset, self.baseline], found.values[dataset, method]
        if method == self.baseline or len(own) < 2:
            return "–"
        d = paired(own, base, test_share=self.test_share)
        if not d.is_known:
            return f"{self.scale * d.difference:+.2f} on every split"
        low, high = (self.scale * bound for bound in d.interval)
        return f"{self.scale * d.difference:+.2f} [{low:+.2f}, {high:+.2f}], d = {d.effect:.2f}"


def _can_be_tested(found: SplitValues) -> bool:
    """Return whether there are enough data sets and methods for Friedman's test."""
    return len(found.rows) >= 2 and len(found.methods) >= 3


def _friedman_remark(found: SplitValues) -> tuple[str, ...]:
    if not _can_be_tested(found):
        return ()
    test = friedman_nemenyi(found.means())
    return (
        f"Friedman's test over {test.n_datasets} data sets: χ² = {test.statistic:.2f}, "
        f"p = {test.p_value:.2g}; "
        f"average ranks differ beyond chance (Nemenyi, 5 %) from {test.critical_difference:.2f} on.",
    )


@dataclass(frozen=True)
class Bars:
    """The mean of a measure by data set and method, as a table and as bars."""

    measure: str
    datasets: Mapping[str, str]
    methods: tuple[str, ...]
    label: str

    def tables(self, records: Records) -> list[ResultTable]:
        found = split_values(records, self.measure, self.methods, tuple(self.datasets))
        if not found.rows:
            return []
        lines = tuple((self.datasets[row], *found.texts(row, digits=1)) for row in found.rows)
        title = f"{self.label.capitalize()}: mean ± standard deviation over {found.count} splits"
        return [ResultTable(title, ("", *found.methods), lines)]

    def draw(self, records: Records, file: Path) -> bool:
        from kernelweave.plots import GroupedBarsDisplay

        found = split_values(records, self.measure, self.methods, tuple(self.datasets))
        if not found.rows:
            return False
        names = tuple(self.datasets[row] for row in found.rows)
        GroupedBarsDisplay(names, found.methods, found.means(), self.label).save(file)
        return True


@dataclass(frozen=True)
class Bands:
    """The mean of ``measure`` at every value of ``x``, with its 95 % interval over the splits."""

    measure: str
    methods: tuple[str, ...]
    x: str
    x_label: str
    y_label: str
    scale: float = 100.0

    def tables(self, records: Records) -> list[ResultTable]:
        found = self._values(records)
        if not found.rows:
            return []
        lines = tuple((f"{row:g}", *found.texts(row, self.scale)) for row in found.rows)
        title = f"{self.y_label.capitalize()}: mean ± standard deviation over {found.count} splits"
        return [ResultTable(title, (self.x_label, *found.methods), lines)]

    def draw(self, records: Records, file: Path) -> bool:
        from kernelweave.plots import BandsDisplay

        found = self._values(records)
        if not found.rows:
            return False
        bands = {method: self.scale * self._band(found, method) for method in found.methods}
        BandsDisplay(np.array(found.rows, dtype=float), bands, self.x_label, self.y_label).save(file)
        return True

    def _band(self, found: SplitValues, method: str) -> Matrix:
        """Return mean, lower and upper end of its interval at every value of x."""
        return np.array(
            [(found.summary(x, method).mean, *interval_of_mean(found.values[x, method])) for x in found.rows]
        )

    def _values(self, records: Records) -> SplitValues:
        positions = sorted({record[self.x] for record in records})
        return split_values(records, self.measure, self.methods, positions, by=self.x)


def weight_measures(weights: Vector) -> dict[str, float]:
    """Return kernel weights as measures of a cell, which are single numbers; `Weights` reads them."""
    return {f"weight{m:03d}": float(weight) for m, weight in enumerate(weights)}


@dataclass(frozen=True)
class Weights:
    """The weights of the first split at the given values of ``by``, each method's largest scaled to 1."""

    by: str
    values: tuple[int, ...]
    methods: tuple[str, ...]
    label: str

    def tables(self, records: Records) -> list[ResultTable]:
        lines = [
            (
                f"{value}",
                method,
                f"{np.count_nonzero(weights > 0.0)}",
                " ".join(f"{w:.2f}" for w in weights),
            )
            for value in self.values
            for method, weights in self._scaled_weights(records, value).items()
        ]
        header = (self.label, "method", "kernels in use", "weights, the largest as 1")
        return [ResultTable("Learnt weights of the first repetition", header, tuple(lines))] if lines else []

    def draw(self, records: Records, file: Path) -> bool:
        from kernelweave.plots import GroupedBarsDisplay

        groups: list[str] = []
        heights: list[Matrix] = []
        for value in self.values:
            found = self._scaled_weights(records, value)
            if len(found) < len(self.methods):
                continue
            columns = np.column_stack(list(found.values()))
            groups += [f"{value}" if m == 0 else "" for m in range(len(columns))]
            heights.append(columns)
        if not heights:
            return False
        label = f"weight, the largest as 1 (from each label on: {self.label})"
        GroupedBarsDisplay(groups, self.methods, np.vstack(heights), label).save(file)
        return True

    def _scaled_weights(self, records: Records, value: int) -> dict[str, Vector]:
        found = {}
        for record in records:
            if record[self.by] == value and record["split"] == 0 and record["method"] in self.methods:
                names = sorted(name for name in record if name.startswith("weight"))
                weights = np.array([record[name] for name in names], dtype=float)
                found[str(record["method"])] = weights / (weights.max() or 1.0)
        return {method: found[method] for method in self.methods if method in found}
