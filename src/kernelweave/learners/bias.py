"""The best intercept for given decision values: one sort at most, exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Vector


def hinge_bias(f: Vector, y: Vector, C: Vector) -> float:
    """Return a b that minimises Σ C_i max(0, 1 − y_i(f_i + b)): the middle of the flat stretch.

    The slope starts at minus the weight of the positives and grows by C_i at every kink b = y_i − f_i, where
    a positive stops paying and a negative starts.
    """
    kinks = y - f
    order = np.argsort(kinks)
    kinks = kinks[order]
    return _flat_middle(kinks, np.cumsum(C[order]) - C[y > 0.0].sum(), float(C.sum()))


def squared_hinge_bias(f: Vector, y: Vector, C: Vector) -> float:
    """Return the b that minimises Σ (C_i/2) max(0, 1 − y_i(f_i + b))².

    Its derivative Σ_active C_i (f_i + b − y_i) is piecewise linear and increasing in b. Positives are active
    below their kink, negatives above theirs; the root is found on the stretch where the sign changes.
    """
    kinks = y - f
    order = np.argsort(kinks)
    kinks, C, positive = kinks[order], C[order], y[order] > 0
    weight = np.where(positive, -C, C)  # crossing a kink upwards: a positive leaves, a negative enters
    total = C[positive].sum() + np.cumsum(weight)
    moment = (C * kinks)[positive].sum() + np.cumsum(weight * kinks)
    slope_at_kinks = total * kinks - moment  # the derivative at each kink
    j = int(np.searchsorted(slope_at_kinks >= 0.0, True))
    if j == 0:
        total_left, moment_left = C[positive].sum(), (C * kinks)[positive].sum()
    else:
        total_left, moment_left = total[j - 1], moment[j - 1]
    if total_left <= 0.0:  # no sample pays on this stretch: any point of it is optimal
        return float(kinks[min(j, kinks.size - 1)])
    return float(moment_left / total_left)


def margin_quantile(f: Vector, C: Vector, mass: float) -> float:
    """Return an r that minimises Σ C_i max(0, r − f_i) − mass·r: a weighted quantile of f."""
    order = np.argsort(f)
    reached = np.cumsum(C[order])
    return float(f[order][min(int(np.searchsorted(reached, mass * (1 - 1e-12))), f.size - 1)])


def epsilon_bias(r: Vector, C: Vector, epsilon: float) -> float:
    """Return a b that minimises Σ C_i max(0, |r_i − b| − epsilon): the middle of the flat stretch.

    The slope starts at −Σ C_i and grows by C_i where b enters the tube around r_i and where it leaves it.
    """
    kinks = np.concatenate([r - epsilon, r + epsilon])
    order = np.argsort(kinks)
    slopes = np.cumsum(np.concatenate([C, C])[order]) - C.sum()
    return _flat_middle(kinks[order], slopes, float(C.sum()))


def _flat_middle(kinks: Vector, slopes: Vector, total: float) -> float:
    """Return the middle of the stretch where the slope, given behind each ascending kink, is zero."""
    flat = 1e-12 * total  # sums that differ by less are the same
    slopes[-1] = max(slopes[-1], -flat)  # it ends at the weight of all who pay there, which is none or more
    first = int(np.argmax(slopes >= -flat))
    last = int(np.argmax(slopes > flat))
    return float(0.5 * (kinks[first] + kinks[max(first, last)]))


@dataclass(frozen=True)
class BestMargin:
    """The least of Σ w_i max(0, r − f_i)²/(2c) − r; the shares w_i max(0, r − f_i)/c, which sum to one."""

    value: float
    shares: Vector


def best_margin(f: Vector, weight: Vector, trade: float) -> BestMargin:
    """Minimise Σ w_i max(0, r − f_i)²/(2c) − r over r, c = ``trade``; at c = 0 no r may exceed any f_i.

    The slope vanishes where Σ w_i max(0, r − f_i) = c: water of volume c poured over the sorted f.
    """
    low = f - f.min()
    order = np.argsort(low)
    levels = (trade + np.cumsum((weight * low)[order])) / np.cumsum(weight[order])
    covered = int(np.flatnonzero(levels >= low[order])[-1])  # the last sample not above its own level
    depth = np.maximum(0.0, levels[covered] - low)
    if not depth.any():  # no water: the lowest samples bear everything
        lowest = low == 0.0
        return BestMargin(-float(f.min()), lowest / lowest.sum())
    poured = weight * depth
    value = 0.5 * float(poured @ depth) / trade - float(f.min() + levels[covered])
    return BestMargin(value, poured / poured.sum())
