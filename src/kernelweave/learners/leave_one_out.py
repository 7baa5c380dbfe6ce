"""A cost C from the leave-one-out error of kernel ridge regression, which has a closed form."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector

# Ridges that are tried, in units of the variance of the kernel.
RIDGES = np.logspace(-3.0, 3.0, 13)
# The best ridge up to each bound, and the C that then does well on sets of a few dozen to a few hundred samples.
COSTS = ((0.15, 3.0), (2.0, 1.0), (np.inf, 0.3))
# The C of those who cannot look at a kernel.
USUAL_COST = 3.0


def leave_one_out_cost(K: Matrix, y: AnyArray, weight: Vector) -> float:
    """Return C for the hinge loss on a kernel: small where ridge regression of the codes wants much shrinkage.

    y holds ±1, one column per binary problem. C is in the units of the kernel: a kernel twice as large gets half.
    """
    Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    variance = float(np.trace(K)) / len(K)
    if not variance > 0.0:
        return USUAL_COST
    errors = leave_one_out_errors(K / variance, Y, weight, RIDGES)
    ridge = RIDGES[int(np.argmin(errors))]
    return next(C for bound, C in COSTS if ridge <= bound) / variance


def leave_one_out_errors(K: Matrix, Y: Matrix, weight: Vector, ridges: Vector) -> Vector:
    r"""Return the mean squared error of samples left out, for every ridge; K is centred.

    With an intercept the fitted values are HY, H = 11'/n + K(K + λI)⁻¹, and the error of sample i left out is
    (y_i − (HY)_i) / (1 − H_ii).
    """
    spectrum, U = np.linalg.eigh(K)
    spectrum, share = np.maximum(spectrum, 0.0), weight / weight.sum()
    UY, U2, mean = U.T @ Y, U * U, Y.mean(axis=0)
    found = np.empty(ridges.size)
    for k, ridge in enumerate(ridges):
        shrunk = spectrum / (spectrum + ridge)
        residual = Y - mean - U @ (shrunk[:, None] * UY)
        left = np.maximum(1.0 - 1.0 / len(Y) - U2 @ shrunk, np.finfo(np.float64).eps)
        found[k] = float(share @ np.mean((residual / left[:, None]) ** 2, axis=1))
    return found
