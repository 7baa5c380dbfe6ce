"""Records as a table of values: rows by methods, one value per split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.evaluation import Summary, summary
from kernelweave.experiments.study import Records

# Figures as printed in a paper: (mean, standard deviation) by data set and method.
Published = Mapping[str, Mapping[str, tuple[float, float]]]


@dataclass(frozen=True)
class SplitValues:
    """The values of one measure by row and method, each in the order of the splits."""

    rows: tuple[Any, ...]
    methods: tuple[str, ...]
    values: Mapping[tuple[Any, str], tuple[float, ...]]

    def summary(self, row: Any, method: str) -> Summary:
        return summary(self.values[row, method])

    def texts(self, row: Any, scale: float = 1.0, digits: int = 2) -> list[str]:
        """Return "mean ± deviation" of every method in a row."""
        found = [self.summary(row, method) for method in self.methods]
        return [f"{scale * s.mean:.{digits}f} ± {scale * s.deviation:.{digits}f}" for s in found]

    def means(self) -> Matrix:
        """Return the means, one line per row and one column per method."""
        return np.array([[self.summary(row, method).mean for method in self.methods] for row in self.rows])

    @property
    def count(self) -> str:
        """How many splits there are: a number, or a range where a run is not finished."""
        sizes = {len(found) for found in self.values.values()} or {0}
        return str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"


def split_values(
    records: Records, measure: str, methods: Sequence[str], rows: Sequence[Any], by: str = "dataset"
) -> SplitValues:
    """Return a measure by ``by`` and method, in the order given, on the splits all methods of a row have."""
    found: dict[tuple[Any, str], dict[int, float]] = {}
    for record in records:
        key = (record[by], str(record["method"]))
        found.setdefault(key, {})[int(record["split"])] = float(record[measure])
    present = tuple(m for m in methods if any(method == m for _, method in found))
    shared = {row: _shared_splits([found.get((row, method), {}) for method in present]) for row in rows}
    complete = tuple(row for row in rows if shared[row])
    values = {
        (row, method): tuple(found[row, method][split] for split in shared[row])
        for row in complete
        for method in present
    }
    return SplitValues(complete, present, values)


def _shared_splits(found: list[dict[int, float]]) -> list[int]:
    return sorted(set.intersection(*map(set, found))) if found else []
