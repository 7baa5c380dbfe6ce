"""Records as a table of values: rows by columns, one value per split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.evaluation import Summary, summary
from kernelweave.experiments.experiment import Records

Values = Mapping[tuple[Any, str], tuple[float, ...]]


@dataclass(frozen=True)
class Cells:
    """The values of one measure by row and method, each in the order of the splits."""

    rows: tuple[Any, ...]
    methods: tuple[str, ...]
    values: Values

    def summary(self, row: Any, method: str) -> Summary:
        return summary(self.values[row, method])

    def means(self) -> Matrix:
        """Return the means, one line per row and one column per method."""
        return np.array([[self.summary(row, method).mean for method in self.methods] for row in self.rows])

    @property
    def count(self) -> str:
        """How many values a cell has: a number, or a range where a run is not finished."""
        sizes = {len(found) for found in self.values.values()} or {0}
        return str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"


def gather(
    records: Records, measure: str, methods: Sequence[str], rows: Sequence[Any], by: str = "dataset"
) -> Cells:
    """Return a measure by ``by`` and method, in the order given, on the splits all methods of a row have."""
    found: dict[tuple[Any, str], dict[int, float]] = {}
    for record in records:
        place = (record[by], str(record["method"]))
        found.setdefault(place, {})[int(record["split"])] = float(record[measure])
    there = tuple(m for m in methods if any(place[1] == m for place in found))
    shared = {row: _shared([found.get((row, method), {}) for method in there]) for row in rows}
    whole = tuple(row for row in rows if shared.get(row))
    values = {
        (row, method): tuple(found[row, method][split] for split in shared[row])
        for row in whole
        for method in there
    }
    return Cells(whole, there, values)


def _shared(found: list[dict[int, float]]) -> list[int]:
    """Return the splits that all of them have."""
    return sorted(set.intersection(*map(set, found))) if found else []
