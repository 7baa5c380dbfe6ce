"""The capped simplex {0 <= x <= cap, sum x = 1}: its maximizer, projection and block update.

A cap of 1 is the whole simplex. A cap of 1/n leaves one point, and every function then returns exactly
that one. The variants ``*_at_most`` are for {0 <= x <= cap, sum x <= 1} with any cap > 0.
"""

from __future__ import annotations

import numpy as np

from kernelweave._typing import Vector

# A cap that differs from 1/k by less than this is 1/k: 1/(1/49) is not 49 in floating point.
ROUNDING = 1e-12


def fill(h: Vector, cap: float) -> Vector:
    """Return argmax <x, h>: the largest entries take the cap until the mass is spent; ties share."""
    n = len(h)
    if leaves_one_point(cap, n):
        return np.full(n, 1.0 / n)
    marginal = np.partition(h, n - _n_filled(cap))[n - _n_filled(cap)]
    above, tied = h > marginal, h == marginal
    rest = 1.0 - cap * np.count_nonzero(above)
    return np.where(above, cap, np.where(tied, min(cap, rest / np.count_nonzero(tied)), 0.0))


def most(h: Vector, cap: float) -> float:
    """Return max <x, h>: the largest entries at the cap, the next one with the rest of the mass."""
    n = len(h)
    if leaves_one_point(cap, n):
        return float(h.sum()) / n
    k = _n_filled(cap)
    largest = np.partition(h, n - k)[n - k :]
    return cap * float(largest[1:].sum()) + (1.0 - cap * (k - 1)) * float(largest[0])


def project(z: Vector, cap: float) -> Vector:
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


def share(norms: Vector, cap: float) -> Vector:
    """Return argmin sum norms^2 / x: proportional to the norms, the largest ones at the cap.

    Notes
    -----
    [Xu13, Eq. (25), Lemma 8]. Where the positive norms cannot hold the whole mass they sit at the cap
    and the others share the rest evenly, which the paper excludes by assuming positive norms.

    """
    n = len(norms)
    positive = norms > 0.0
    n_positive = int(np.count_nonzero(positive))
    if n_positive == 0 or leaves_one_point(cap, n):
        return np.full(n, 1.0 / n)
    if cap * n_positive <= 1.0 + ROUNDING:
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


def fill_at_most(h: Vector, cap: float) -> Vector:
    """Return argmax <x, h> when the mass need not be spent; h >= 0."""
    return np.full(len(h), cap) if has_room(cap, len(h)) else fill(h, min(cap, 1.0))


def project_at_most(z: Vector, cap: float) -> Vector:
    """Return the nearest point when the mass need not be spent."""
    clipped = np.clip(z, 0.0, cap)
    return clipped if clipped.sum() <= 1.0 else project(z, min(cap, 1.0))


def share_at_most(norms: Vector, cap: float) -> Vector:
    """Return argmin sum norms^2 / x when the mass need not be spent."""
    return np.full(len(norms), cap) if has_room(cap, len(norms)) else share(norms, min(cap, 1.0))


def leaves_one_point(cap: float, n: int) -> bool:
    """Tell whether cap is 1/n up to rounding, so that the even point is the only one."""
    return cap * n <= 1.0 + ROUNDING


def has_room(cap: float, n: int) -> bool:
    """Tell whether all entries can sit at the cap together."""
    return cap * n <= 1.0


def _n_filled(cap: float) -> int:
    """Return how many entries at the cap hold the whole mass."""
    return max(1, int(np.ceil(1.0 / cap - ROUNDING)))
