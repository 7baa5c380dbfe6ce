"""What the known labels alone say: the first candidate, and a start for every search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.learners import UnbiasedSquaredHinge


def supervised_scores(grams: Sequence[Matrix], which: Indices, y: Vector, prices: Vector) -> Vector:
    """Return the scores of all points by the machine trained on some of them with the average kernel."""
    rows = np.mean([K[which] for K in grams], axis=0)
    machine = UnbiasedSquaredHinge().solve(np.ascontiguousarray(rows[:, which]), y, prices, tol=1e-6)
    return np.asarray(machine.coef @ rows)
