"""One-dimensional roots: a safeguarded Newton method, and a vectorised one for two powers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelweave._typing import Vector

EPS = float(np.finfo(np.float64).eps)
CLOSE = 1e-9  # a Newton step this small leaves an error of its square
NEGLIGIBLE = 1e-12  # a mass this close to 1 is scaled, which moves no weight noticeably
MAX_ITER = 200  # bisection alone halves any bracket of doubles to one ulp in about this many


def increasing_root(fun: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """Return the root in [low, high] of an increasing function given as ``t -> (value, slope)``.

    The value is expected in units of one (a mass minus 1, say). Newton steps, replaced by a bisection
    whenever one leaves the bracket or is not half the one before; a wrong or infinite slope costs time,
    never the root.
    """
    t, last_move = 0.5 * (low + high), high - low
    for _ in range(MAX_ITER):
        value, slope = fun(t)
        if abs(value) <= 4.0 * EPS:
            break
        low, high = (t, high) if value < 0.0 else (low, t)
        new = t - value / slope if 0.0 < slope < np.inf else np.inf
        if low < new < high and abs(new - t) <= CLOSE * abs(t) and abs(value) <= CLOSE:
            return new
        if not low < new < high or abs(new - t) > 0.5 * abs(last_move):
            new = _middle(low, high)
        t, last_move = new, new - t
        if abs(last_move) <= EPS * abs(t):
            break
    return t


def _middle(low: float, high: float) -> float:
    """Return a point between: the geometric mean where the bracket spans orders of magnitude."""
    return float(np.sqrt(low) * np.sqrt(high)) if 0.0 < 16.0 * low < high else 0.5 * (low + high)


def unit_mass(weights: Callable[[float], Vector], t: float, *, rising: bool) -> Vector:
    """Return weights(t), t nearly a root of their mass minus 1, with a mass of 1.

    Where the mass jumps over 1 between neighbouring floats the weights on both sides are blended.
    """
    x = weights(t)
    shortage = 1.0 - float(x.sum())
    if abs(shortage) <= NEGLIGIBLE:
        return np.asarray(x / x.sum())
    towards = 1.0 if (shortage > 0.0) == rising else -1.0
    width = float(np.spacing(abs(t)))
    for _ in range(MAX_ITER):
        other = weights(t + towards * width)
        gain = float(other.sum() - x.sum())
        if abs(gain) >= abs(shortage):
            return np.asarray(x + (shortage / gain) * (other - x))
        width *= 2.0
    return np.asarray(x / x.sum())


def two_power_root(a: float, j: float, b: float, k: float, c: Vector) -> Vector:
    """Return min(1, x) with x > 0 the root of a x^j + b x^k = c, elementwise.

    Needs a > 0, j > k >= 1 and c > 0; b may be negative. Every set of weights lies in the unit cube, so
    a larger root is never wanted.

    Notes
    -----
    Right of its root the left-hand side is increasing and convex, so Newton's method started right of
    it descends to it monotonically.

    """
    log_c = np.log(c)
    if b > 0.0:  # each power alone overshoots
        log_x = np.minimum((log_c - np.log(a)) / j, (log_c - np.log(b)) / k)
    else:  # x^(j-k) >= 2|b|/a leaves at least half of the first power
        log_x = (log_c + np.log(2.0) - np.log(a)) / j
        if b < 0.0:
            log_x = np.maximum(log_x, (np.log(2.0) + np.log(-b) - np.log(a)) / (j - k))
    x: Vector = np.exp(np.minimum(log_x, 0.0))
    for _ in range(MAX_ITER):
        first, second = a * x**j, b * x**k
        excess = first + second - c
        drop = np.zeros_like(x)
        np.divide(x * excess, j * first + k * second, out=drop, where=excess > 0.0)
        x -= drop
        if np.all(drop <= CLOSE * x):
            break
    return x
