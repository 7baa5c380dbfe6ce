"""Where to cut an axis between two classes."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Vector


def fewest_errors(values: Vector, above: AnyArray, weight: Vector, near: float) -> float:
    """Return the cut with the least weight of samples on the wrong side.

    ``above`` marks the samples that belong above it; one at the cut counts as below. Of equally good cuts the
    one nearest to ``near`` is taken: ``near`` itself where it is as good as any, else the middle of the
    nearest stretch without samples.
    """
    order = np.argsort(values)
    levels = values[order]
    signed = np.where(above, weight, -weight)[order]
    # Cut k lies above the k lowest values: moving one more below it is an error if it belongs above.
    errors = np.concatenate([[0.0], np.cumsum(signed)])
    errors[1:-1][levels[1:] == levels[:-1]] = np.inf  # no cut lies between equal values
    best = np.flatnonzero(errors <= errors.min() + 1e-12 * weight.sum())
    edges = np.concatenate([[-np.inf], levels, [np.inf]])
    lower, upper = edges[best], edges[best + 1]
    if ((lower <= near) & (near < upper)).any():
        return near
    closest = int(np.argmin(np.minimum(np.abs(lower - near), np.abs(upper - near))))
    low, high = lower[closest], upper[closest]
    if not np.isfinite(low):
        return float(np.nextafter(high, -np.inf))
    return float(low if not np.isfinite(high) else 0.5 * (low + high))
