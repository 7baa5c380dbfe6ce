"""Gatings [Gonen08]: kernel weights that are functions of a few features of the sample, and learning them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit, softmax

from kernelweave._part import Part
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.adaptive.local_grams import weighted_locally
from kernelweave.geometry import LpBall
from kernelweave.gram import GramStack
from kernelweave.learners import Learner
from kernelweave.solvers import BlockDescent, Problem, Progress, Result


@dataclass
class Gating(Part, ABC):
    """Weights eta_m(x) of linear scores a_m(x) = u_m'x + u_m0.

    ``features`` are what x is: columns of a table, or names of views; None is all of them.
    """

    features: Any = None

    @abstractmethod
    def weights(self, scores: Matrix) -> Matrix:
        """Return the weights (n, M) of scores (n, M)."""

    @abstractmethod
    def score_gradient(self, weights: Matrix, weight_gradient: Matrix) -> Matrix:
        """Return the gradient (n, M) in the scores, given that in the weights, at these weights."""


@dataclass
class Softmax(Gating):
    r"""Kernels compete: eta_m(x) = exp(a_m(x)) / Σ_k exp(a_k(x)).

    Parameters
    ----------
    features : columns of the table (names, positions, slice, mask, callable) or names of views, default=None
        What the gating reads; None is all of them.

    Notes
    -----
    [Gonen08, Eq. (4)]. Differs from the paper: features are standardised.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.adaptive.gating import Softmax
    >>> Softmax().weights(np.zeros((1, 4)))
    array([[0.25, 0.25, 0.25, 0.25]])

    """

    def weights(self, scores: Matrix) -> Matrix:
        return np.asarray(softmax(scores, axis=1))

    def score_gradient(self, weights: Matrix, weight_gradient: Matrix) -> Matrix:
        mean = (weights * weight_gradient).sum(axis=1)[:, None]
        return np.asarray(weights * (weight_gradient - mean))


@dataclass
class Sigmoid(Gating):
    r"""Kernels count independently: eta_m(x) = 1 / (1 + exp(-a_m(x))).

    Parameters
    ----------
    features : columns of the table (names, positions, slice, mask, callable) or names of views, default=None
        What the gating reads; None is all of them.

    Notes
    -----
    The alternative gating of [Gonen13]. Differs from the paper: features are standardised.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.adaptive.gating import Sigmoid
    >>> Sigmoid().weights(np.zeros((1, 2)))
    array([[0.5, 0.5]])

    """

    def weights(self, scores: Matrix) -> Matrix:
        return np.asarray(expit(scores))

    def score_gradient(self, weights: Matrix, weight_gradient: Matrix) -> Matrix:
        return np.asarray(weights * (1.0 - weights) * weight_gradient)


@dataclass
class GatedObjective:
    r"""The optimal value J of an SVM on Σ_m eta_m(x) k_m(x, z) eta_m(z), as a function of the gating.

    With v the coefficients of the SVM, ∂J/∂eta_m(x_i) = −v_i Σ_j v_j eta_m(x_j) k_m(x_j, x_i) (Danskin).

    Parameters
    ----------
    stack : the uncentred kernels.
    y, learner, weight : labels ±1, the SVM and the weights of the samples.
    gating : the family of weight functions.
    features : array of shape (n, d + 1), what the gating reads, with a last column of ones.
    tol : relative duality gap of the SVMs.
    """

    stack: GramStack
    y: Vector
    learner: Learner
    gating: Gating
    features: Matrix
    weight: Vector | None
    tol: float
    _warm: AnyArray | None = None  # the last SVM's coefficients, from which the next one starts

    def weights(self, flat: Vector) -> Matrix:
        """Return the weights (n, M) of flattened gating coefficients (M, d + 1)."""
        return self.gating.weights(self.features @ flat.reshape(-1, self.features.shape[1]).T)

    def __call__(self, flat: Vector) -> tuple[float, Vector]:
        """Return J and its gradient at flattened gating coefficients (M, d + 1)."""
        weights = self.weights(flat)
        grams = weighted_locally(self.stack, weights.T)
        K = grams.combine(np.ones(grams.n_kernels))
        svm = self.learner.solve(K, self.y, self.weight, self._warm, self.tol)
        self._warm = svm.coef
        in_weights = -svm.coef[:, None] * grams.column_weighted_matvecs(svm.coef).T
        return svm.primal, (self.gating.score_gradient(weights, in_weights).T @ self.features).ravel()


@dataclass(frozen=True)
class LearntGating:
    """The best start: gating coefficients (M, d + 1), weights (n, M), the SVM, and the values on the way."""

    coef: Matrix = field(repr=False)
    weights: Matrix = field(repr=False)
    result: Result
    values: tuple[float, ...]
    converged: bool


def learn_gating(
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
) -> LearntGating:
    r"""Learn the gating from even weights and from random ones, and return the best of them.

    Parameters
    ----------
    problem : stack (uncentred), labels, learner and weights; its geometry is not used.
    gating : the family of weight functions.
    features : array of shape (n, d), what the gating reads.
    tol : relative change of the objective to stop at.
    max_iter : most steps per start.
    n_restarts : random starts beside the even one.
    rng : for the random starts.
    progress : called after every inner solve of the final fit.
    stop : once set, no further step is taken.

    Notes
    -----
    [Gonen08, Algorithm 1]. Differs from the paper: quasi-Newton steps (L-BFGS) instead of plain gradient
    steps; the first start has even weights.
    """
    stop = Event() if stop is None else stop
    y = np.ascontiguousarray(problem.y, dtype=np.float64)
    Z = np.column_stack([features, np.ones(features.shape[0])])
    shape = problem.grams.n_kernels, Z.shape[1]
    # Values are compared to a relative change of tol, so the SVMs behind them have to be more accurate.
    inner_tol = 0.1 * tol
    runs = []
    for number in range(n_restarts + 1):
        # Random scores of size 0.5 give weights that differ, but none near 0.
        start = np.zeros(shape) if number == 0 else rng.normal(0.0, 0.5 / np.sqrt(shape[1]), shape)
        objective = GatedObjective(problem.grams, y, problem.learner, gating, Z, problem.weight, inner_tol)
        runs.append(_descend(objective, start.ravel(), tol, max_iter, stop))
        if stop.is_set():
            break
    flat, values, converged = min(runs, key=lambda run: run[1][-1])

    # The certified SVM for the gating found: on the unit box of weights the optimum has every weight 1.
    weights = objective.weights(flat)
    gated = Problem(
        weighted_locally(problem.grams, weights.T), y, problem.learner, LpBall(np.inf), problem.weight
    )
    result = BlockDescent(tol=inner_tol).run(gated, progress=None if stop.is_set() else progress)
    if stop.is_set():
        result = replace(result, stopped="interrupted")
    elif result.certificate.relative_gap <= tol:  # the inner tolerance was for the gradients
        result = replace(result, stopped="converged")
    return LearntGating(flat.reshape(shape), weights, result, values, converged)


def _descend(
    objective: GatedObjective, start: Vector, tol: float, max_iter: int, stop: Event
) -> tuple[Vector, tuple[float, ...], bool]:
    """Descend from one start; return the coefficients, the values on the way and whether it converged.

    An interrupt ends the descent at its last step, and sets the event.
    """
    values, reached = [objective(start)[0]], start

    def record(intermediate_result: OptimizeResult) -> None:
        nonlocal reached
        values.append(float(intermediate_result.fun))
        reached = intermediate_result.x.copy()
        if stop.is_set():
            raise StopIteration

    try:
        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            callback=record,
            options={"maxiter": max_iter, "ftol": tol},
        )
    except KeyboardInterrupt:
        stop.set()
        return reached, tuple(values), False
    return found.x, (*values, float(found.fun)), found.nit < max_iter and not stop.is_set()
