"""Kernel weights, kernel by kernel, as a table and as bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.experiments.experiment import Grid, Records


def as_measures(weights: Mapping[int, float]) -> dict[str, float]:
    """Return weights as measures of a cell, which are single numbers."""
    return {_name(m): float(weight) for m, weight in weights.items()}


def _name(kernel: int) -> str:
    return f"weight{kernel:03d}"


@dataclass(frozen=True)
class Weights:
    """The weights of the first split at the given values of ``by``, each method's largest scaled to 1."""

    by: str
    values: tuple[int, ...]
    methods: tuple[str, ...]
    label: str

    def tables(self, records: Records) -> list[Grid]:
        lines = []
        for value in self.values:
            for method, weights in self._weights(records, value).items():
                row = (
                    f"{value}",
                    method,
                    f"{np.count_nonzero(weights > 0.0)}",
                    " ".join(f"{w:.2f}" for w in weights / (weights.max() or 1.0)),
                )
                lines.append(row)
        header = (self.label, "method", "kernels in use", "weights, the largest as 1")
        return [Grid("Learnt weights of the first repetition", header, tuple(lines))] if lines else []

    def draw(self, records: Records, file: Path) -> bool:
        from kernelweave.plots import GroupedBarsDisplay

        groups: list[str] = []
        heights: list[Matrix] = []
        for value in self.values:
            found = self._weights(records, value)
            if len(found) < len(self.methods):
                continue
            columns = np.column_stack([found[m] / (found[m].max() or 1.0) for m in self.methods])
            groups += [f"{value}" if m == 0 else "" for m in range(len(columns))]
            heights.append(columns)
        if not heights:
            return False
        label = f"weight, the largest as 1 (from each label on: {self.label})"
        GroupedBarsDisplay(groups, self.methods, np.vstack(heights), label).save(file)
        return True

    def _weights(self, records: Records, value: int) -> dict[str, Matrix]:
        found = {}
        for record in records:
            if record[self.by] == value and record["split"] == 0 and record["method"] in self.methods:
                names = sorted(name for name in record if name.startswith("weight"))
                found[str(record["method"])] = np.array([record[name] for name in names], dtype=float)
        return {method: found[method] for method in self.methods if method in found}
