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
    def count(self) -> int:
        """The smallest number of values a cell has."""
        return min((len(found) for found in self.values.values()), default=0)


def gather(
    records: Records, measure: str, methods: Sequence[str], rows: Sequence[Any], by: str = "dataset"
) -> Cells:
    """Return a measure by ``by`` and method, in the order given; rows that lack a method are left out."""
    found: dict[tuple[Any, str], list[tuple[int, float]]] = {}
    for record in records:
        place = (record[by], str(record["method"]))
        found.setdefault(place, []).append((int(record["split"]), float(record[measure])))
    there = tuple(m for m in methods if any(place[1] == m for place in found))
    whole = tuple(row for row in rows if there and all((row, method) in found for method in there))
    values = {
        (row, method): tuple(value for _, value in sorted(found[row, method]))
        for row in whole
        for method in there
    }
    return Cells(whole, there, values)
