"""What a search found: a row per candidate and fold, the best, and a word where fits stayed open."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernelweave._typing import AnyArray, Matrix
from kernelweave.estimators.grid import Grid, Place

# Mean scores that differ by less than this are equal: the same numbers were added in another order.
TIE = 1e-10
COLUMNS = ("fold", "score", "relative_gap", "machines", "seconds", "active_kernels")


@dataclass(frozen=True)
class Row:
    """What became of one candidate in one fold; ``trouble`` says why it stopped above the tolerance."""

    place: Place
    fold: int
    score: float
    relative_gap: float
    machines: int
    seconds: float
    active_kernels: int
    trouble: str | None


def tidy_columns(grid: Grid, rows: list[Row]) -> dict[str, AnyArray]:
    """Return the rows as columns: the parameters by name, then what was measured."""
    rows = sorted(rows, key=lambda row: (row.place, row.fold))
    params = [grid.params(row.place) for row in rows]
    columns = {name: _column([values[name] for values in params]) for name in params[0]}
    return columns | {name: np.array([getattr(row, name) for row in rows]) for name in COLUMNS}


def mean_scores(grid: Grid, rows: list[Row]) -> Matrix:
    """Return the mean score over the folds for every place of the grid."""
    rows = sorted(rows, key=lambda row: (row.place, row.fold))
    scores = np.array([row.score for row in rows]).reshape(*grid.shape, -1)
    return np.asarray(scores.mean(axis=2))


def simplest_of_the_best(grid: Grid, scores: Matrix) -> Place:
    """Return the place of the highest score; of equal ones the first on the walk, so the simplest."""
    if np.isnan(scores).all():
        raise ValueError(
            "No candidate has a score that is a number in every fold; look at the scorer and at the folds."
        )
    best = np.isclose(scores, np.nanmax(scores), rtol=TIE, atol=TIE)
    return next(place for place in grid.places() if best[place])


def warn_of_open_fits(grid: Grid, rows: list[Row], tol: float) -> None:
    """Say once for all fits of a search which certificates did not reach the tolerance."""
    still_open = [row for row in rows if row.trouble is not None]
    if not still_open:
        return
    worst = max(still_open, key=lambda row: row.relative_gap)
    where = [f"{name}={value}" for name, value in grid.params(worst.place).items()] + [f"fold {worst.fold}"]
    warnings.warn(
        f"Stopped at a relative duality gap of {worst.relative_gap:.2e}, above tol={tol:.2e}, in the worst "
        f"({', '.join(where)}) of {len(still_open)} such fits among the {len(rows)} of the search: "
        f"{worst.trouble}.",
        ConvergenceWarning,
        stacklevel=3,
    )


def _column(values: list[Any]) -> AnyArray:
    """Return values as an array with one entry each, whatever they are."""
    if all(isinstance(value, Real) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
