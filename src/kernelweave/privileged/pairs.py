"""SVM+ by sequential minimal optimisation: two or three variables at a time, no factorisation."""

from __future__ import annotations

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix
from kernelweave.privileged.machine import (
    PlusMachine,
    Terms,
    coefficients,
    feasible,
    measure,
    variables,
)

# A stop for problems this method is not made for; ordinary ones need 10 to 500 steps per sample.
STEPS_PER_SAMPLE = 2_000
# Each round asks for a violation this much smaller until the gap is small enough.
TIGHTEN, ROUNDS = 0.1, 12


def solve_pairs(K: Matrix, G: Matrix, terms: Terms, warm: AnyArray | None, tol: float) -> PlusMachine:
    """Return SVM+ on K and G = K*/λ, from the coefficients ``warm``; every sample has privileged features."""
    K, G = np.ascontiguousarray(K), np.ascontiguousarray(G)
    start = (0.5 * terms.C, 0.5 * terms.C) if warm is None else variables(terms, warm)
    alpha, beta = feasible(terms, *start)
    left, violation = STEPS_PER_SAMPLE * terms.y.size, tol
    best: PlusMachine | None = None
    for _ in range(ROUNDS):
        coef = coefficients(terms, alpha, beta)
        f, g = K @ coef[:, 0], G @ coef[:, 1]
        steps, reached = _core.smo_plus(K, G, terms.y, alpha, beta, f, g, violation, left)
        alpha, beta = feasible(terms, alpha, beta)  # sums that rounding has moved
        coef = coefficients(terms, alpha, beta)
        machine = measure(terms, coef, np.column_stack([K @ coef[:, 0], G @ coef[:, 1]]))
        left -= steps
        if best is None or machine.gap < best.gap:
            best = machine
        if best.relative_gap <= tol or left <= 0 or reached > violation:
            break
        violation *= TIGHTEN
    assert best is not None
    return best
