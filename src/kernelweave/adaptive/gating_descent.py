"""Kernel weights that change from place to place, learnt by descent on the machine's value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Event

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.adaptive.gating import Gating
from kernelweave.adaptive.local_grams import localised
from kernelweave.geometry import LpBall
from kernelweave.gram import GramStack
from kernelweave.learners import Learner
from kernelweave.solvers import BlockDescent, Problem, Progress, Result

# Machines on the way are solved to this share of the change that still counts.
SHARE = 0.1
# Random starts have scores of about this size: weights that differ, but none near 0.
SPREAD = 0.5


@dataclass(frozen=True)
class Localized:
    """The best start: gating coefficients (M, d + 1), weights (n, M), the machine, and the values passed."""

    gating: Matrix = field(repr=False)
    weights: Matrix = field(repr=False)
    result: Result
    values: tuple[float, ...]
    converged: bool


@dataclass
class GatedValue:
    r"""The optimal value J of the machine on Σ_m eta_m(x) k_m(x, z) eta_m(z), and its slope in the gating.

    With v the machine's coefficients, ∂J/∂eta_m(x_i) = −v_i Σ_j v_j eta_m(x_j) k_m(x_j, x_i) (Danskin).
    """

    stack: GramStack
    y: Vector
    learner: Learner
    gating: Gating
    features: Matrix
    weight: Vector | None
    tol: float
    warm: AnyArray | None = None

    def weights(self, flat: Vector) -> Matrix:
        """Return the weights (n, M) of gating coefficients."""
        return self.gating.weights(self.features @ flat.reshape(-1, self.features.shape[1]).T)

    def __call__(self, flat: Vector) -> tuple[float, Vector]:
        """Return J and its slope at flattened gating coefficients (M, d + 1)."""
        weights = self.weights(flat)
        grams = localised(self.stack, weights.T)
        K = grams.combine(np.ones(grams.n_kernels))
        machine = self.learner.solve(K, self.y, self.weight, self.warm, self.tol)
        self.warm = machine.coef
        slopes = -machine.coef[:, None] * grams.reach(machine.coef).T
        return machine.primal, (self.gating.pull(weights, slopes).T @ self.features).ravel()


def localize(
    problem: Problem,
    gating: Gating,
    features: Matrix,
    *,
    tol: float,
    max_iter: int,
    n_restarts: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
    stop: Event | None = None,
) -> Localized:
    r"""Learn the gating from even weights and from random ones, and return the best of them.

    Parameters
    ----------
    problem : stack (uncentred), labels, learner and weights; its geometry is not used.
    gating : the family of weight functions.
    features : array of shape (n, d), what the gating looks at.
    tol : relative change of the objective to stop at.
    max_iter : most steps per start.
    n_restarts : random starts beside the even one.
    rng : for the random starts.
    progress : called after every machine of the final fit.
    stop : once set, no further step is taken.

    Notes
    -----
    [Gonen08, Algorithm 1]. Differs from the paper: quasi-Newton steps (L-BFGS) instead of plain gradient
    steps; the first start has even weights.
    """
    Z = np.column_stack([features, np.ones(features.shape[0])])
    y = np.ascontiguousarray(problem.y, dtype=np.float64)
    size = problem.bank.n_kernels, Z.shape[1]
    best: Descent | None = None
    stop = Event() if stop is None else stop
    for start in range(n_restarts + 1):
        flat = np.zeros(size) if start == 0 else rng.normal(0.0, SPREAD / np.sqrt(size[1]), size)
        value = GatedValue(problem.bank, y, problem.learner, gating, Z, problem.weight, SHARE * tol)
        found = _descend(value, flat.ravel(), tol, max_iter, stop)
        if best is None or found.values[-1] < best.values[-1]:
            best = found
        if stop.is_set():
            break
    assert best is not None
    weights = value.weights(best.flat)
    grams = localised(problem.bank, weights.T)
    final = Problem(grams, y, problem.learner, LpBall(np.inf), problem.weight)  # every weight 1
    result = BlockDescent(tol=SHARE * tol).run(final, progress=None if stop.is_set() else progress)
    if stop.is_set():
        result = replace(result, stopped="interrupted")
    elif result.certificate.relative_gap <= tol:  # the share was for the slopes on the way
        result = replace(result, stopped="converged")
    return Localized(best.flat.reshape(size), weights, result, best.values, best.converged)


@dataclass(frozen=True)
class Descent:
    """Where one start led to, and the values on the way."""

    flat: Vector
    values: tuple[float, ...]
    converged: bool


def _descend(value: GatedValue, flat: Vector, tol: float, max_iter: int, stop: Event) -> Descent:
    """Follow the slope from one start; an interrupt ends it where it is, and sets the event."""
    values, reached = [value(flat)[0]], flat

    def note(intermediate_result: OptimizeResult) -> None:
        nonlocal reached
        values.append(float(intermediate_result.fun))
        reached = intermediate_result.x.copy()
        if stop.is_set():
            raise StopIteration

    try:
        found = minimize(
            value,
            flat,
            jac=True,
            method="L-BFGS-B",
            callback=note,
            options={"maxiter": max_iter, "ftol": tol},
        )
    except KeyboardInterrupt:
        stop.set()
        return Descent(reached, tuple(values), False)
    return Descent(found.x, (*values, float(found.fun)), found.nit < max_iter and not stop.is_set())
