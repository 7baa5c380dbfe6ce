"""The simplex with the penalty (kappa / p) sum x^p, p > 1: its block update, maximizer and prox."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import Vector
from kernelweave.geometry._capped import project
from kernelweave.geometry._roots import increasing_root, two_power_root, unit_mass

TINY_MASS = 1e-100  # keeps the reciprocal of a vanishing mass finite; far from any root


def reweight(norms: Vector, kappa: float, p: float) -> Vector:
    """Return argmin of sum norms^2 / (2 x) + (kappa / p) sum x^p on the simplex.

    Notes
    -----
    Stationarity is x^(p+1) + level x^2 = norms^2 / (2 kappa) with the one level that makes the mass 1. The
    level may be negative; a kernel of norm 0 then has weight (-level)^(1/(p-1)), not 0.

    """
    n = len(norms)
    c = 0.5 * (norms / np.sqrt(kappa)) ** 2
    active = c > 0.0
    if not active.any():
        return np.full(n, 1.0 / n)

    def weights(level: float) -> Vector:
        x = np.full(n, min(1.0, max(0.0, -level)) ** (1.0 / (p - 1.0)))
        x[active] = two_power_root(1.0, p + 1.0, level, 2.0, c[active])
        return x

    def excess(level: float) -> tuple[float, float]:
        x = weights(level)
        mass = max(float(x.sum()), TINY_MASS)
        x = x[x > 0.0]
        slope = float((x / ((p + 1.0) * x ** (p - 1.0) + 2.0 * level)).sum())
        # mass^-2 is linear in the level where the norms rule: Newton's method is then exact.
        return mass**-2.0 - 1.0, 2.0 * mass**-3.0 * slope

    low = -(float(n) ** (1.0 - p))  # every weight is at least 1/n here ...
    high = float(np.sqrt(c).sum()) ** 2  # ... and at most sqrt(c / level) here
    # Either end may be the root, of negligible or of ruling norms: twice the bracket keeps it inside.
    return unit_mass(weights, increasing_root(excess, 2.0 * low, 2.0 * high), rising=False)


def maximizer(h: Vector, kappa: float, p: float) -> Vector:
    """Return argmax of <x, h> - (kappa / p) sum x^p on the simplex: kappa x^(p-1) = (h - level)_+."""
    s = 1.0 / (p - 1.0)
    below = (h.max() - h) / kappa

    def excess(t: float) -> tuple[float, float]:
        x = t - below[below < t]
        mass = max(float((x**s).sum()), TINY_MASS)
        # mass^(p-1) is linear in t where all h are equal: Newton's method is then exact.
        return mass ** (p - 1.0) - 1.0, mass ** (p - 2.0) * float((x ** (s - 1.0)).sum())

    def weights(t: float) -> Vector:
        return np.asarray(np.maximum(t - below, 0.0) ** s)

    # The largest weight lies between 1/n and 1.
    return unit_mass(weights, increasing_root(excess, float(len(h)) ** (1.0 - p), 1.0), rising=True)


def prox(z: Vector, weight: float, p: float) -> Vector:
    """Return argmin of ||x - z||^2 / 2 + (weight / p) sum x^p on the simplex."""
    if weight == 0.0:
        return project(z, 1.0)
    n = len(z)
    below = z.max() - z

    def weights(t: float) -> Vector:
        x = np.zeros(n)
        above = below < t
        x[above] = shrink(t - below[above], weight, p)
        return x

    def excess(t: float) -> tuple[float, float]:
        w = t - below[below < t]
        x = shrink(w, weight, p)
        return float(x.sum()) - 1.0, float((x / (x + (p - 1.0) * (w - x))).sum())

    low = 1.0 / n + weight * float(n) ** (1.0 - p)  # the largest weight lies between 1/n and 1
    return unit_mass(weights, increasing_root(excess, low, 1.0 + weight), rising=True)


def shrink(w: Vector, weight: float, p: float) -> Vector:
    """Return min(1, x) with x + weight x^(p-1) = w > 0, elementwise: the prox of one power."""
    if p >= 2.0:
        return (
            two_power_root(weight, p - 1.0, 1.0, 1.0, w) if p > 2.0 else np.minimum(w / (1.0 + weight), 1.0)
        )
    # In y = x^(p-1) the higher power is again the first: y^(1/(p-1)) + weight y = w.
    s = 1.0 / (p - 1.0)
    return np.asarray(two_power_root(1.0, s, weight, 1.0, w) ** s)
