"""Distances asked for: percentiles of those between the points."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import Matrix

MOST_POINTS = 4000  # all distances between so many points fit into 64 MB
BLOCK = 512


def distance_percentiles(
    points: Matrix, metric: Matrix, percentiles: tuple[float, float]
) -> tuple[float, float]:
    """Return percentiles of the squared distances between different points.

    Beyond 4000 points evenly spaced ones of their sorted list are taken, so that the answer depends on the
    set of points and not on their order.
    """
    points = np.unique(points, axis=0)
    if len(points) > MOST_POINTS:
        points = points[np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(np.intp)]
    images = points @ metric
    lengths = np.einsum("ij,ij->i", images, points)
    found = []
    for start in range(0, len(points), BLOCK):
        block = slice(start, start + BLOCK)
        D = lengths[block, None] + lengths - 2.0 * images[block] @ points.T
        found.append(D[np.arange(len(points)) > start + np.arange(len(D))[:, None]])
    distances = np.concatenate(found) if found else np.empty(0)
    if not len(distances):
        return 0.0, 0.0
    low, high = np.percentile(np.maximum(distances, 0.0), percentiles)
    return float(low), float(high)
