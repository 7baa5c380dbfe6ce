"""Where to start without labels: the leading directions of the average kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh

from kernelweave._typing import Matrix, Vector

DIRECTIONS = 3


def leading_scores(grams: Sequence[Matrix]) -> list[Vector]:
    """Return the first principal directions of the samples in the average kernel, the largest first."""
    average = sum(grams[1:], start=grams[0].copy()) / len(grams)
    n = len(average)
    _, vectors = eigh(average, subset_by_index=[max(0, n - DIRECTIONS), n - 1])
    return [np.ascontiguousarray(v) for v in vectors.T[::-1]]
