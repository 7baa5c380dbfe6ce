"""The quadratic model on any set that has a proximal map."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh

from kernelweave._typing import Matrix, Vector

MAX_ITER = 5000
TOLERANCE = 1e-12  # of a proximal step, relative to the largest weight


def minimise_model(prox: Callable[[Vector, float], Vector], eta: Vector, h: Vector, H: Matrix) -> Vector:
    """Return argmin of r(x) - <h, x - eta> + (x - eta)'H(x - eta) / 2 by accelerated proximal steps.

    The momentum restarts when it points uphill (O'Donoghue and Candes), which makes the method adapt
    to the unknown strong convexity.
    """
    last = len(h) - 1
    curvature = float(eigh(H, eigvals_only=True, subset_by_index=(last, last))[0])
    # Where H vanishes the step is free: one that moves the largest energy across the whole set.
    curvature = max(curvature, 1e-12 * float(np.abs(h).max()), np.finfo(np.float64).tiny)
    step = 1.0 / curvature
    x = y = eta
    t = 1.0
    for _ in range(MAX_ITER):
        new = prox(y + step * (h - H @ (y - eta)), step)
        if np.abs(new - y).max() <= TOLERANCE * np.abs(new).max():
            return new
        uphill = (y - new) @ (new - x) > 0.0
        t_new = 1.0 if uphill else 0.5 + np.sqrt(0.25 + t * t)
        y = new if uphill else new + ((t - 1.0) / t_new) * (new - x)
        x, t = new, t_new
    return x
