r"""The quadratic models of Newton's method: interior point, exact active sets, accelerated proximal steps.

Newton's method in the kernel weights minimises, over the set of a geometry, the model

    r(x) - <h, x - eta> + (x - eta)'H(x - eta) / 2.

Three methods do that. `interior_point_minimiser` serves every set with a smooth description, with ten to
thirty linear systems however collinear the kernels are. `capped_simplex_step` is exact on the
simplex and its capped relatives: it solves for the free weights alone, and takes the interior point only
where the weights it starts from do not lead to the free ones. `proximal_steps` needs nothing but the proximal
map, and serves all other sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotrs

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.geometry._projections import capped_projection, leaves_one_point
from kernelweave.geometry.interior_point import (
    InteriorIterate,
    Linearisation,
    LinearSolve,
    cholesky,
    interior_point,
)

if TYPE_CHECKING:
    from kernelweave.geometry.base import Geometry

# --------------------------------------------------------------- on sets with a smooth description


class Description(NamedTuple):
    """A penalty r and constraints c(x) <= 0, seen from one x > 0 and multipliers of the constraints."""

    penalty_gradient: Vector
    constraints: Vector
    gradients: Matrix  # of the constraints, one row each
    curvature: AnyArray  # of the penalty plus the constraints times their multipliers; a vector is a diagonal


Describe: TypeAlias = Callable[[Vector, Vector], Description]


class ModelMinimiser(NamedTuple):
    """A minimiser to about twelve digits of the energy spent, and which weights belong to their bounds."""

    x: Vector
    at_zero: NDArray[np.bool_]
    at_upper: NDArray[np.bool_]


def interior_point_minimiser(
    H: Matrix,
    b: Vector,
    start: Vector,
    describe: Describe | None = None,
    *,
    n_constraints: int = 0,
    upper: float | Vector = np.inf,
    unit_sum: bool = False,
    digits: float = 1e-12,
) -> ModelMinimiser:
    """Return argmin of r(x) - b'x + x'Hx/2 over {0 <= x <= upper, c(x) <= 0}, from strictly inside.

    ``unit_sum`` adds the constraint sum x = 1; ``digits`` is the accuracy, relative to the energy spent.
    """
    scale = float(np.abs(b - H @ start).max()) or 1.0  # units in which slopes are of order one
    model = _Model(H / scale, b / scale, _scaled(describe, scale), n_constraints, upper, unit_sum)
    n, reached = len(b), (start, start, start)

    def finished(at: InteriorIterate) -> bool:
        nonlocal reached
        reached = at.x, at.low, at.high
        accuracy = digits * min(1.0, float(np.abs(model.slope) @ at.x[:n]))
        return at.gap <= accuracy and (at.error <= 10.0 * accuracy or at.gap <= 1e-16)

    interior_point(model, *model.start(start), finished)
    x, low, high = (part[:n] for part in reached)
    # Of a product that vanishes, the smaller factor is the one that does.
    return ModelMinimiser(x, x < low, model.upper[:n] - x < high)


def _scaled(describe: Describe | None, scale: float) -> Describe | None:
    """Return the same set with the penalty, and with it the multipliers, in other units."""

    def in_units(x: Vector, multipliers: Vector) -> Description:
        assert describe is not None
        gradient, constraints, gradients, curvature = describe(x, scale * multipliers)
        return Description(gradient / scale, constraints, gradients, curvature / scale)

    return None if describe is None else in_units


@dataclass
class _Model:
    """The model as a convex program in the weights and the slacks of c(x) <= 0."""

    H: Matrix
    b: Vector
    describe: Describe | None
    n_constraints: int
    bounds: float | Vector
    unit_sum: bool

    def __post_init__(self) -> None:
        self.upper = np.full(len(self.b) + self.n_constraints, np.inf)
        self.upper[: len(self.b)] = self.bounds
        self.slope = -self.b  # of the quadratic, at the weights seen last

    def start(self, x: Vector) -> tuple[Vector, Vector]:
        """Return weights with slacks, and multipliers."""
        k, slacks = self.n_constraints, np.zeros(0)
        if self.describe is not None:
            slacks = np.maximum(-self.describe(x, np.ones(k)).constraints, 1e-6)
        return np.concatenate([x, slacks]), np.append(np.ones(k), np.zeros(int(self.unit_sum)))

    def linearise(self, x: Vector, multipliers: Vector) -> Linearisation:
        n, k = len(self.b), self.n_constraints
        weights, slacks = x[:n], x[n:]
        self.slope = self.H @ weights - self.b
        gradient = np.concatenate([self.slope, np.zeros(k)])
        jacobian, residual = np.zeros((k + self.unit_sum, n + k)), np.zeros(k + self.unit_sum)
        curvature = np.zeros(n)
        if self.describe is not None:
            local = self.describe(weights, multipliers[:k])
            gradient[:n] += local.penalty_gradient
            jacobian[:k, :n], jacobian[:k, n:] = local.gradients, np.eye(k)
            residual[:k] = local.constraints + slacks
            curvature = local.curvature
        if self.unit_sum:
            jacobian[k, :n], residual[k] = 1.0, weights.sum() - 1.0

        def factorise(theta: Vector) -> LinearSolve:
            A = self.H + (curvature if curvature.ndim == 2 else 0.0)
            A[np.diag_indices(n)] += theta[:n] + (0.0 if curvature.ndim == 2 else curvature)
            solve = cholesky(A)
            return lambda B: np.concatenate([solve(B[:n]), B[n:] / theta[n:, None]])

        return Linearisation(gradient, residual, jacobian, factorise)


# ---------------------------------------------------------------------- on the capped simplex, exactly


def capped_simplex_step(eta: Vector, h: Vector, H: Matrix, cap: float, ridge: float = 0.0) -> Vector:
    """Return argmin of ridge |x|^2 / 2 - <h, x - eta> + (x - eta)'H(x - eta) / 2 on the capped simplex.

    A tiny proximal term around eta decides what H leaves open, so that duplicated kernels keep their split.
    """
    n = len(h)
    if leaves_one_point(cap, n):
        return np.full(n, 1.0 / n)
    upper = np.full(n, cap if cap < 1.0 else np.inf)
    return np.clip(_exact_step(eta, h, H, upper, ridge), 0.0, cap)  # a last digit may stick out


def capped_simplex_step_at_most(eta: Vector, h: Vector, H: Matrix, cap: float) -> Vector:
    """Return the same step on {0 <= x <= cap, sum x <= 1}, without a ridge."""
    n = len(h)
    if cap * n > 1.0:
        start = eta if abs(float(eta.sum()) - 1.0) <= 1e-9 else capped_projection(eta, min(cap, 1.0))
        x = capped_simplex_step(start, h - H @ (start - eta), H, min(cap, 1.0))
        energies = h - H @ (x - eta)
        if float(energies[x > 0.0].min()) >= 0.0:
            return x  # nobody would rather give mass away
    # What is left of the mass is a kernel without energy, curvature or cap.
    lifted = np.zeros((n + 1, n + 1))
    lifted[:n, :n] = H
    left = max(0.0, 1.0 - float(eta.sum()))
    upper = np.append(np.full(n, cap if cap < 1.0 else np.inf), np.inf)
    x = _exact_step(np.append(eta, left), np.append(h, 0.0), lifted, upper, 0.0)
    return np.clip(x[:n], 0.0, cap)


def _exact_step(eta: Vector, h: Vector, H: Matrix, upper: Vector, ridge: float) -> Vector:
    n = len(h)
    curvature = np.diagonal(H)
    # Kernels without curvature get some too; in a linear model any will do that is too small to matter.
    least = 1e-8 * float(curvature.max()) or float(np.abs(h).max()) or 1.0
    curvature = np.maximum(curvature, least)
    A, b = H.copy(), h + H @ eta + 1e-11 * curvature * eta
    A[np.diag_indices(n)] += 1e-11 * curvature + ridge
    x = _exchange(A, b, upper, np.where(eta <= 0.0, -1, np.where(eta >= upper, 1, 0)))
    if x is None:  # a rough minimiser shows most free weights, and costs a third of an exact one
        _, x = _from_interior(A, b, upper, 1e-4)
    if x is None:
        near, x = _from_interior(A, b, upper, 1e-12)
    return near if x is None else x


def _from_interior(A: Matrix, b: Vector, upper: Vector, digits: float) -> tuple[Vector, Vector | None]:
    """Return the interior point's minimiser, and the one that its free weights lead to, None where they do not."""
    found = interior_point_minimiser(A, b, _inside(upper), upper=upper, unit_sum=True, digits=digits)
    near = np.asarray(found.x / found.x.sum())
    state = np.where(found.at_zero, -1, np.where(found.at_upper, 1, 0))
    if np.any(state == 0):
        return near, _exchange(A, b, upper, state)
    # Of a model that is not convex all weights may be told to be at a bound where no vertex is.
    vertex = np.where(state > 0, upper, 0.0)
    return (vertex if abs(float(vertex.sum()) - 1.0) <= 1e-9 else near), None


def _inside(upper: Vector) -> Vector:
    """Return a point well inside {0 <= x <= upper, sum x = 1}."""
    even = np.minimum(1.0 / len(upper), 0.5 * upper)  # where the caps leave little room, half of them ...
    rest = np.where(np.isfinite(upper), upper - even, 1.0 - even)
    return np.asarray(even + (1.0 - even.sum()) * rest / rest.sum())  # ... and as much of the other half


def _exchange(A: Matrix, b: Vector, upper: Vector, state: NDArray[np.int_]) -> Vector | None:
    """Return argmin of x'Ax/2 - b'x over {0 <= x <= upper, sum x = 1}; None where the sets lead nowhere.

    ``state`` is -1 for weights at zero, 0 for free ones and 1 for those at their upper bound.

    Notes
    -----
    Block pivoting: the free weights solve a linear system, then all weights beyond a bound are fixed there
    and all fixed ones that gain by moving inside are freed, at once. From a good start this ends after a few
    rounds; where the number of misplaced weights grows it would cycle.

    """
    noise = 1e-13 * float(np.abs(b).max() + np.diagonal(A).max())  # slopes this small have no sign
    before = len(b) + 1
    for _ in range(10):
        free = np.flatnonzero(state == 0)
        x = np.where(state > 0, upper, 0.0)
        factor, failed = dpotrf(A[np.ix_(free, free)], lower=1) if free.size else (None, True)
        if failed:
            return None
        # ``level`` is the multiplier of sum x = 1: free weights have slopes of zero above it.
        per_level = dpotrs(factor, np.ones(free.size), lower=1)[0]
        surplus, level = b - A @ x, 0.0
        for _refinement in range(2):  # A may be close to singular
            move = dpotrs(factor, surplus[free] - level, lower=1)[0]
            rise = (float(x.sum() + move.sum()) - 1.0) / float(per_level.sum())
            x[free] += move - rise * per_level
            level += rise
            surplus = b - A @ x
        inside = np.where(x <= 0.0, -1, np.where(x >= upper, 1, 0))
        gains = state * (surplus - level) < -noise
        new = np.where(state == 0, inside, np.where(gains, 0, state))
        misplaced = int(np.count_nonzero(new != state))
        if misplaced == 0:
            return x
        if misplaced > before:
            return None
        state, before = new, misplaced
    return None


# ------------------------------------------------------------------ on any set with a proximal map


def is_model_minimiser(geometry: Geometry, x: Vector, eta: Vector, h: Vector, H: Matrix) -> bool:
    """Return whether x is the model's minimiser, up to rounding."""
    return _excess_gap(geometry, x, eta, h, H) <= 0.0


def proximal_steps(geometry: Geometry, eta: Vector, h: Vector, H: Matrix, max_iter: int = 5000) -> Vector:
    """Return argmin of r(x) - <h, x - eta> + (x - eta)'H(x - eta) / 2 by accelerated proximal steps from eta.

    Notes
    -----
    The momentum restarts when it points uphill (O'Donoghue and Candes), which adapts to the unknown strong
    convexity. The stop is the model's own Fenchel-Young gap, with h - H(x - eta) as its energies.

    """
    best, lowest = eta.copy(), _excess_gap(geometry, eta, eta, h, H)
    last = len(h) - 1
    top = float(eigh(H, eigvals_only=True, subset_by_index=(last, last))[0])
    # A linear model has no natural step: take one that carries the largest energy far beyond the set.
    step = 1.0 / (max(top, 1e-6 * float(np.abs(h).max())) or 1.0)
    x, y, t = eta, eta, 1.0
    for i in range(max_iter):
        new = geometry.prox(y + step * (h - H @ (y - eta)), step)
        if np.abs(new - y).max() <= 1e-12 * np.abs(new).max():
            return new
        if i % 20 == 0:  # the gap costs as much as a step
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


def _excess_gap(geometry: Geometry, x: Vector, eta: Vector, h: Vector, H: Matrix) -> float:
    """Return by how much the model's gap at x exceeds what counts as zero.

    That is 1e-11 of the energy spent, and what rounding leaves of a stiff model's curvature times distance.
    """
    energies = h - H @ (x - eta)
    gap = geometry.value(x) + geometry.conjugate(energies) - float(x @ energies)
    rounding = 1e-12 * float(np.diagonal(H).max() * np.abs(x - eta).max())
    return gap - 1e-11 * float(np.abs(h) @ np.abs(eta)) - rounding
