"""Pairs of rows, and the one matrix of theirs that several kernels share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelweave._typing import Matrix
from kernelweave.kernels.distances import (
    chi_squared,
    given_distances,
    inner_products,
    mean_squared_euclidean,
    squared_euclidean,
)

METRICS: dict[str, Callable[[Any, Any | None], Matrix]] = {
    "inner": inner_products,
    "sqeuclidean": squared_euclidean,
    "chi2": chi_squared,
    "given": given_distances,
}
CHEAP_MEANS: dict[str, Callable[[Any], float]] = {"sqeuclidean": mean_squared_euclidean}


class Pairs:
    """All pairs of rows of ``X`` and ``Z`` (None: of ``X`` itself).

    The matrix asked for last is kept, so that the kernels of one view that follow each other compute it once;
    only one is kept, because it is as large as a Gram matrix.
    """

    def __init__(self, X: Any, Z: Any | None = None) -> None:
        self.X = X
        self.Z = Z
        self._kept: tuple[str, Matrix] | None = None
        self._means: dict[str, float] = {}

    def matrix(self, metric: str) -> Matrix:
        """Return the matrix of ``metric`` values; read only, because it is shared."""
        if self._kept is None or self._kept[0] != metric:
            self._kept = None  # lets go of the old matrix before the new one is made
            values = METRICS[metric](self.X, self.Z).view()
            values.flags.writeable = False
            self._kept = (metric, values)
        return self._kept[1]

    def mean(self, metric: str) -> float:
        """Return the mean over the pairs i != j of rows of X, 0 for a single row."""
        if metric not in self._means:
            self._means[metric] = self._mean(metric)
        return self._means[metric]

    def _mean(self, metric: str) -> float:
        if metric in CHEAP_MEANS:
            return CHEAP_MEANS[metric](self.X)
        n = self.X.shape[0]
        return float(self.matrix(metric).sum()) / (n * (n - 1)) if n > 1 else 0.0
