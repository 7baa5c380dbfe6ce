"""The quadratic model on any set that has a proximal map."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from kernelweave._typing import Matrix, Vector

MAX_ITER = 5000
POLISH_ITER = 200  # after a method that is accurate already
CHECK_EVERY = 20  # the gap costs as much as a step
STEP_TOLERANCE = 1e-12  # of a proximal step, relative to the largest weight
ROUNDING = 1e-12  # of the gap in a stiff model, relative to curvature times distance
GAP_TOLERANCE = 1e-11  # of the model's own duality gap, relative to the energy spent


class Proximable(Protocol):
    """What the method asks of a geometry."""

    def value(self, eta: Vector) -> float: ...
    def conjugate(self, h: Vector) -> float: ...
    def prox(self, z: Vector, step: float) -> Vector: ...


def minimise_model(
    geometry: Proximable, start: Vector, eta: Vector, h: Vector, H: Matrix, max_iter: int = MAX_ITER
) -> Vector:
    """Return argmin of r(x) - <h, x - eta> + (x - eta)'H(x - eta) / 2 by accelerated proximal steps.

    Notes
    -----
    The momentum restarts when it points uphill (O'Donoghue and Candes), which adapts to the unknown strong
    convexity. The stop is the model's own Fenchel-Young gap, with h - H(x - eta) as its energies.

    """
    best, lowest = start, _excess_gap(geometry, start, eta, h, H)
    if lowest <= 0.0:
        return best
    last = len(h) - 1
    top = float(eigh(H, eigvals_only=True, subset_by_index=(last, last))[0])
    # A linear model has no natural step: take one that carries the largest energy far beyond the set.
    step = 1.0 / (max(top, 1e-6 * float(np.abs(h).max())) or 1.0)
    x, y, t = start, start, 1.0
    for i in range(max_iter):
        new = geometry.prox(y + step * (h - H @ (y - eta)), step)
        if np.abs(new - y).max() <= STEP_TOLERANCE * np.abs(new).max():
            return new
        if i % CHECK_EVERY == 0:
            excess = _excess_gap(geometry, new, eta, h, H)
            if excess < lowest:
                best, lowest = new, excess
            if lowest <= 0.0:
                break
        uphill = (y - new) @ (new - x) > 0.0
        t_new = 1.0 if uphill else 0.5 + np.sqrt(0.25 + t * t)
        y = new if uphill else new + ((t - 1.0) / t_new) * (new - x)
        x, t = new, t_new
    return best


def polish(geometry: Proximable, start: Vector, eta: Vector, h: Vector, H: Matrix) -> Vector:
    """Return the model's minimiser from a start that is almost it."""
    return minimise_model(geometry, start, eta, h, H, POLISH_ITER)


def is_solved(geometry: Proximable, x: Vector, eta: Vector, h: Vector, H: Matrix) -> bool:
    """Tell whether x minimises the model, by the model's own Fenchel-Young gap."""
    return _excess_gap(geometry, x, eta, h, H) <= 0.0


def _excess_gap(geometry: Proximable, x: Vector, eta: Vector, h: Vector, H: Matrix) -> float:
    """Return by how much the gap at x exceeds what counts as zero."""
    energies = h - H @ (x - eta)
    gap = geometry.value(x) + geometry.conjugate(energies) - float(x @ energies)
    rounding = ROUNDING * float(np.diagonal(H).max() * np.abs(x - eta).max())
    return gap - GAP_TOLERANCE * float(np.abs(h) @ np.abs(eta)) - rounding
