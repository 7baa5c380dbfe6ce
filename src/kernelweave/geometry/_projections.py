"""Maximizers, projections and block updates on the simplex, with a cap and with a power penalty.

The capped simplex is {0 <= x <= cap, sum x = 1}. A cap of 1 is the simplex itself. A cap of 1/n leaves one
point, and every function then returns exactly that one. The variants ``*_at_most`` are for
{0 <= x <= cap, sum x <= 1} with any cap > 0. The penalty of the ``power_*`` functions is
(kappa / p) sum x^p, p > 1, on the simplex without a cap.
"""

from __future__ import annotations

import numpy as np

from kernelweave._typing import Vector
from kernelweave.geometry._roots import increasing_root, two_power_root, unit_mass

# A cap that differs from 1/k by less than this is 1/k: 1/(1/49) is not 49 in floating point.
CAP_ROUNDING = 1e-12


def capped_maximizer(h: Vector, cap: float) -> Vector:
    """Return argmax <x, h>: the largest entries take the cap until the mass is spent; ties share."""
    n = len(h)
    if leaves_one_point(cap, n):
        return np.full(n, 1.0 / n)
    marginal = np.partition(h, n - _n_filled(cap))[n - _n_filled(cap)]
    above, tied = h > marginal, h == marginal
    rest = 1.0 - cap * np.count_nonzero(above)
    return np.where(above, cap, np.where(tied, min(cap, rest / np.count_nonzero(tied)), 0.0))


def capped_conjugate(h: Vector, cap: float) -> float:
    """Return max <x, h>: the largest entries at the cap, the next one with the rest of the mass."""
    n = len(h)
    if leaves_one_point(cap, n):
        return float(h.sum()) / n
    k = _n_filled(cap)
    largest = np.partition(h, n - k)[n - k :]
    return cap * float(largest[1:].sum()) + (1.0 - cap * (k - 1)) * float(largest[0])


def capped_projection(z: Vector, cap: float) -> Vector:
    """Return the nearest point: z shifted by one number and clipped to [0, cap]."""
    n = len(z)
    if leaves_one_point(cap, n):
        return np.full(n, 1.0 / n)
    # The shift lies within cap below the k-th largest entry, k the entries a full mass needs: seen from
    # there, what is farther than cap away is certainly clipped, and large z lose no digits.
    k = _n_filled(cap)
    y = np.clip(z - np.partition(z, n - k)[n - k], -cap, cap)
    # The mass left after a shift falls from n cap to 0, with one kink where an entry leaves the cap
    # and one where it reaches 0: find the linear piece that passes through 1.
    kinks = np.concatenate([y - cap, y])
    order = np.argsort(kinks, kind="stable")
    kinks = kinks[order]
    free = np.cumsum(np.where(order < n, 1.0, -1.0))
    mass = n * cap - np.concatenate([[0.0], np.cumsum(free[:-1] * np.diff(kinks))])
    piece = max(int(np.searchsorted(-mass, -1.0, side="left")) - 1, 0)
    inside = (kinks[piece] < y) & (y - cap < kinks[piece + 1])  # entries free on this piece
    full = np.count_nonzero(y - cap >= kinks[piece + 1])
    shift = (y[inside].sum() + cap * full - 1.0) / max(np.count_nonzero(inside), 1)
    return np.asarray(np.clip(y - shift, 0.0, cap))


def capped_reweight(norms: Vector, cap: float) -> Vector:
    """Return argmin sum norms^2 / x: proportional to the norms, the largest ones at the cap.

    Notes
    -----
    [Xu13, Eq. (25), Lemma 8]. Where the positive norms cannot hold all of the mass they sit at the cap
    and the others share the rest evenly, which the paper excludes by assuming positive norms.

    """
    n = len(norms)
    positive = norms > 0.0
    n_positive = int(np.count_nonzero(positive))
    if n_positive == 0 or leaves_one_point(cap, n):
        return np.full(n, 1.0 / n)
    if cap * n_positive <= 1.0 + CAP_ROUNDING:
        rest = max(0.0, 1.0 - cap * n_positive) / max(n - n_positive, 1)
        return np.where(positive, cap, rest)
    scaled = norms / norms.max()
    a = np.sort(scaled)[::-1]
    tail = np.cumsum(a[::-1])[::-1]
    mass = 1.0 - cap * np.arange(n)  # what is left for the tail when its predecessors are at the cap
    fits = a * mass < cap * tail
    fits[n_positive - 1] = True  # always, but for underflow
    n_full = int(np.argmax(fits))
    at_cap = scaled >= (a[n_full - 1] if n_full else np.inf)
    return np.where(at_cap, cap, np.minimum(cap, mass[n_full] * scaled / tail[n_full]))


def capped_maximizer_at_most(h: Vector, cap: float) -> Vector:
    """Return argmax <x, h> when the mass need not be spent; h >= 0."""
    return np.full(len(h), cap) if has_room(cap, len(h)) else capped_maximizer(h, min(cap, 1.0))


def capped_projection_at_most(z: Vector, cap: float) -> Vector:
    """Return the nearest point when the mass need not be spent."""
    clipped = np.clip(z, 0.0, cap)
    return clipped if clipped.sum() <= 1.0 else capped_projection(z, min(cap, 1.0))


def capped_reweight_at_most(norms: Vector, cap: float) -> Vector:
    """Return argmin sum norms^2 / x when the mass need not be spent."""
    return np.full(len(norms), cap) if has_room(cap, len(norms)) else capped_reweight(norms, min(cap, 1.0))


def leaves_one_point(cap: float, n: int) -> bool:
    """Return whether cap is 1/n up to rounding, so that the even point is the only one."""
    return cap * n <= 1.0 + CAP_ROUNDING


def has_room(cap: float, n: int) -> bool:
    """Return whether all entries can sit at the cap together."""
    return cap * n <= 1.0


def _n_filled(cap: float) -> int:
    """Return how many entries at the cap hold all of the mass."""
    return max(1, int(np.ceil(1.0 / cap - CAP_ROUNDING)))


def power_reweight(norms: Vector, kappa: float, p: float) -> Vector:
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

    tiny_mass = 1e-100  # keeps the reciprocal of a vanishing mass finite; far from any root

    def excess(level: float) -> tuple[float, float]:
        x = weights(level)
        mass = max(float(x.sum()), tiny_mass)
        x = x[x > 0.0]
        slope = float((x / ((p + 1.0) * x ** (p - 1.0) + 2.0 * level)).sum())
        # mass^-2 is linear in the level where the norms rule: Newton's method is then exact.
        return mass**-2.0 - 1.0, 2.0 * mass**-3.0 * slope

    low = -(float(n) ** (1.0 - p))  # every weight is at least 1/n here ...
    high = float(np.sqrt(c).sum()) ** 2  # ... and at most sqrt(c / level) here
    # Either end may be the root, of negligible or of ruling norms: twice the bracket keeps it inside.
    return unit_mass(weights, increasing_root(excess, 2.0 * low, 2.0 * high), rising=False)


def power_maximizer(h: Vector, kappa: float, p: float) -> Vector:
    """Return argmax of <x, h> - (kappa / p) sum x^p on the simplex: kappa x^(p-1) = (h - level)_+."""
    s = 1.0 / (p - 1.0)
    below = (h.max() - h) / kappa
    tiny_mass = 1e-100  # keeps powers of a vanishing mass finite; far from any root

    def excess(t: float) -> tuple[float, float]:
        x = t - below[below < t]
        mass = max(float((x**s).sum()), tiny_mass)
        # mass^(p-1) is linear in t where all h are equal: Newton's method is then exact.
        return mass ** (p - 1.0) - 1.0, mass ** (p - 2.0) * float((x ** (s - 1.0)).sum())

    def weights(t: float) -> Vector:
        return np.asarray(np.maximum(t - below, 0.0) ** s)

    # The largest weight lies between 1/n and 1.
    return unit_mass(weights, increasing_root(excess, float(len(h)) ** (1.0 - p), 1.0), rising=True)


def power_prox(z: Vector, weight: float, p: float) -> Vector:
    """Return argmin of ||x - z||^2 / 2 + (weight / p) sum x^p on the simplex."""
    if weight == 0.0:
        return capped_projection(z, 1.0)
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
