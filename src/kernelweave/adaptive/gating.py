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
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.adaptive.local_grams import weighted_locally
from kernelweave.geometry import LpBall
from kernelweave.gram import GramStack
from kernelweave.learners import Learner
from kernelweave.solvers import BlockDescent, Problem, Progress, Result, WarmStart


@dataclass
class Gating(Part, ABC):
    """Weights eta_m(x) of scores a_m(x) = u_m'z(x) that are linear in the inputs z(x) of the gating.

    ``features`` are what x is: columns of a table, or names of views; None is all of them.
    """

    features: Any = None

    def inputs(self, features: Matrix) -> Matrix:
        """Return z(x) of standardised features (n, d), with a last column of ones: (n, d + 1)."""
        return np.column_stack([features, np.ones(len(features))])

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
class GaussianSoftmax(Softmax):
    r"""Every kernel has a region: eta_m(x) ∝ π_m exp(−‖x − μ_m‖² / 2σ_m²), and the weights sum to one.

    Parameters
    ----------
    features : columns of the table (names, positions, slice, mask, callable) or names of views, default=None
        What the gating reads; None is all of them.

    Notes
    -----
    The logarithm of a Gaussian is −‖x‖²/2σ² + μ'x/σ² and a constant: a softmax of x, ‖x‖² and 1, whose coefficients
    stand for the shares π, centres μ and widths σ. A function added to the scores of all kernels changes no weight,
    so no sign of the coefficients of ‖x‖² has to be asked for. With equal widths it is `Softmax`.
    The Gaussian gating of [Gonen13]. Differs from the paper: kernels have shares π.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.adaptive.gating import GaussianSoftmax
    >>> near_and_far = np.array([[0.0, 0.0], [3.0, 0.0]])
    >>> gating = GaussianSoftmax()
    >>> gating.weights(gating.inputs(near_and_far) @ np.array([[0, 0, 1.0, 0], [0, 0, 0, 0]]).T).round(2)
    array([[0.27, 0.73],
           [0.97, 0.03]])

    """

    def inputs(self, features: Matrix) -> Matrix:
        d = features.shape[1]
        # Of standardised features ‖x‖² has mean d, and deviation √2d where they are normal.
        squares = (np.einsum("id,id->i", features, features) - d) / np.sqrt(2.0 * d)
        return super().inputs(np.column_stack([features, squares]))


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
    inputs : array of shape (n, k), what the gating's scores are linear in.
    tol : relative duality gap of the SVMs.
    """

    stack: GramStack
    y: Vector
    learner: Learner
    gating: Gating
    inputs: Matrix
    weight: Vector | None
    tol: float
    warm: AnyArray | None = None  # the last SVM's coefficients, from which the next one starts

    def weights(self, flat: Vector) -> Matrix:
        """Return the weights (n, M) of flattened gating coefficients (M, k)."""
        return self.gating.weights(self.inputs @ flat.reshape(-1, self.inputs.shape[1]).T)

    def __call__(self, flat: Vector) -> tuple[float, Vector]:
        """Return J and its gradient at flattened gating coefficients (M, k)."""
        weights = self.weights(flat)
        grams = weighted_locally(self.stack, weights.T)
        K = grams.combine(np.ones(grams.n_kernels))
        svm = self.learner.solve(K, self.y, self.weight, self.warm, self.tol)
        self.warm = svm.coef
        in_weights = -svm.coef[:, None] * grams.column_weighted_matvecs(svm.coef).T
        return svm.primal, (self.gating.score_gradient(weights, in_weights).T @ self.inputs).ravel()


@dataclass(frozen=True)
class LearntGating:
    """The best start: gating coefficients (M, k), weights (n, M), the SVM, and the values on the way."""

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
    n_init: int,
    rng: np.random.Generator,
    n_leading: int = 500,
    progress: Progress | None = None,
    stop: Event | None = None,
) -> LearntGating:
    r"""Learn the gating from even weights and from random ones, and return the best of them.

    Parameters
    ----------
    problem : stack (uncentred), labels, learner and weights; its geometry is not used.
    gating : the family of weight functions.
    features : array of shape (n, d), what the gating reads, standardised.
    tol : relative change of the objective to stop at.
    max_iter : most steps per start.
    n_init : starts, the first of which has even weights; the others are random.
    rng : for the random starts.
    n_leading : with more than twice as many samples, the starts see so many of them, and of the four best
        gatings the one that is best on all is learnt further on all.
    progress : called after every inner solve of the final fit.
    stop : once set, no further step is taken.

    Notes
    -----
    [Gonen08, Algorithm 1]. Differs from the paper: quasi-Newton steps (L-BFGS) instead of plain gradient
    steps; the first start has even weights; of many samples only some are seen by the starts.
    """
    stop = Event() if stop is None else stop
    y = np.ascontiguousarray(problem.y, dtype=np.float64)
    problem, Z = replace(problem, y=y), gating.inputs(features)
    M, k = problem.grams.n_kernels, Z.shape[1]
    # Values are compared to a relative change of tol, so the SVMs behind them have to be more accurate.
    inner_tol = 0.1 * tol

    def objective_on(some: Problem, inputs: Matrix) -> GatedObjective:
        return GatedObjective(some.grams, some.y, some.learner, gating, inputs, some.weight, inner_tol)

    # 1. All starts, on a part of the samples if there are many.
    leading = None if y.size <= 2 * n_leading else _leading_samples(y, n_leading, rng)
    first = (problem, Z) if leading is None else (_part(problem, leading), Z[leading])
    runs = []
    for number in range(n_init):
        # Scores of size 2 give every kernel a part of space; smaller ones often descend to the same gating.
        start = np.zeros(M * k) if number == 0 else rng.normal(0.0, 2.0 / np.sqrt(k), M * k)
        objective = objective_on(*first)
        runs.append((objective, *_descend(objective, start, tol, max_iter, stop)))
        if stop.is_set():
            break
    runs.sort(key=lambda run: run[2][-1])
    objective, flat, values, converged = runs[0]
    # 2. The best of them on all samples: that of a few which has the lowest value there.
    if leading is not None:
        objective = objective_on(problem, Z)
        if not stop.is_set():
            flat = min((run[1] for run in runs[:4]), key=lambda found: objective(found)[0])
        flat, values, converged = _descend(objective, flat, tol, max_iter, stop)

    # The certified SVM for the gating found: on the unit box of weights the optimum has every weight 1.
    weights = objective.weights(flat)
    gated = replace(problem, grams=weighted_locally(problem.grams, weights.T), geometry=LpBall(np.inf))
    start_here = WarmStart(np.ones(M), objective.warm)
    solver = BlockDescent(tol=inner_tol)
    result = solver.run(gated, start_here, None if stop.is_set() else progress)
    if stop.is_set():
        result = replace(result, stopped="interrupted")
    elif result.certificate.relative_gap <= tol:  # the inner tolerance was for the gradients
        result = replace(result, stopped="converged")
    return LearntGating(flat.reshape(M, k), weights, result, values, converged)


def _leading_samples(y: Vector, n_leading: int, rng: np.random.Generator) -> Indices:
    """Draw samples of both classes, in proportion to their numbers."""
    drawn = []
    for members in (np.flatnonzero(y > 0.0), np.flatnonzero(y <= 0.0)):
        count = int(np.ceil(n_leading * members.size / y.size))
        drawn.append(rng.choice(members, count, replace=False))
    return np.sort(np.concatenate(drawn))


def _part(problem: Problem, rows: Indices) -> Problem:
    """Return the problem on some of the samples."""
    weight = None if problem.weight is None else problem.weight[rows]
    return replace(problem, grams=problem.grams.sample(rows), y=problem.y[rows], weight=weight)


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
