"""The best mixture of dual points: weights on simplices, one per group of partitions."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Matrix
from kernelweave.multiclass.problem import norm_and_slopes

# Steps of the ascent, and the rise of the dual, relative to its size, below which it ends.
STEPS, RISE = 400, 1e-12


def onto_simplices(V: Matrix) -> Matrix:
    """Return every row projected onto {λ ≥ 0, Σ λ = 1}.

    Examples
    --------
    >>> import numpy as np
    >>> onto_simplices(np.array([[1.0, 0.0], [0.2, 0.2]]))
    array([[1. , 0. ],
           [0.5, 0.5]])

    """
    n, P = V.shape
    ordered = -np.sort(-V, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    kept = ordered - excess / np.arange(1, P + 1) > 0.0
    last = P - 1 - np.argmax(kept[:, ::-1], axis=1)
    level = excess[np.arange(n), last] / (last + 1)
    out = np.maximum(V - level[:, None], 0.0)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def best_mixture(B: AnyArray, gains: Matrix, q: float, scale: float) -> Matrix:
    """Return λ (groups, points) with the highest Σ λ gains − (Σ_j s_j^{q/2})^{2/q} / (2 scale), s_j = λ'B_jλ.

    ``B`` (kernels, groups · points, groups · points) are the products of the points' images per kernel. The
    first point of every group is where the ascent starts, so that the dual never falls. Accelerated projected
    gradients, which start again when a step goes down.
    """

    def falling(lam: Matrix) -> tuple[float, Matrix]:
        x = lam.ravel()
        images = B @ x
        size, slopes = norm_and_slopes(np.maximum(images @ x, 0.0), q)
        value = size / (2.0 * scale) - float(x @ gains.ravel())
        return value, (slopes @ images / scale).reshape(gains.shape) - gains

    lam = np.zeros(gains.shape)
    lam[:, 0] = 1.0
    ahead, pace, value = lam, 1.0, falling(lam)[0]
    bend = max(float(np.abs(B).max(initial=0.0)) / scale, 1e-300)  # the curvature, found by doubling
    for _ in range(STEPS):
        here, slope = falling(ahead)
        while True:
            found = onto_simplices(ahead - slope / bend)
            move = found - ahead
            model = here + float((slope * move).sum()) + 0.5 * bend * float((move * move).sum())
            reached = falling(found)[0]
            if reached <= model + 1e-13 * abs(here) or bend > 1e300:
                break
            bend *= 2.0
        if reached > value:
            if pace == 1.0:
                break
            ahead, pace = lam, 1.0
            continue
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * pace * pace))
        ahead = found + (pace - 1.0) / faster * (found - lam)
        small = value - reached <= RISE * abs(reached) and pace > 5.0
        lam, value, pace, bend = found, reached, faster, 0.97 * bend
        if small:
            break
    return lam
