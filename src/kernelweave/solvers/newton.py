"""Second-order steps in the weights: few inner solves, exact zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry.base import Geometry, Polyhedral, fenchel_young_gap
from kernelweave.solvers.base import OuterLoop
from kernelweave.solvers.block_descent import block_norms
from kernelweave.solvers.cutting_plane import CuttingPlane
from kernelweave.solvers.problem import Evaluation, OuterState


@dataclass
class Newton(OuterLoop):
    r"""Newton's method in the kernel weights.

    .. math:: \eta^+ = \arg\min_{x \in \mathcal M} r(x) - h'(x - \eta) + \tfrac12 (x - \eta)'H(x - \eta)

    h are the energies (minus the gradient of the learner's optimal value) and H its Hessian with the support
    held, from the free support vectors. Energies of kernels that grow fall like 1/x², for which a parabola
    is a poor model: at first the step of a rational model with the same value, slope and curvature is tried
    (`_rational_step`). Where that fails the parabola leads on, with a line search that makes every step a
    descent.

    Parameters
    ----------
    tol : float or None, default=None
        Relative duality gap to stop at; None means 1e-4, or the estimator's.
    max_iter : int or None, default=None
        Most inner solves.

    Notes
    -----
    The model is minimised over the whole weight set, so kernels leave with weight exactly zero and come
    back by their energy. Typically 4 to 8 inner solves to a relative gap of 1e-6. At a kink of a polyhedral
    set with few low-rank kernels it hands over to `CuttingPlane`.
    Differs from the paper: [Xu13] has first-order methods only.

    Examples
    --------
    >>> from kernelweave.solvers import Newton
    >>> Newton(tol=1e-6)
    Newton(tol=1e-06, max_iter=None)

    """

    uses_curvature: ClassVar[bool] = True
    default_max_iter: ClassVar[int] = 200

    def iterate(self, state: OuterState, eta: Vector) -> str | None:
        point, trust = state.evaluate(eta), _Trust()
        while not state.finished:
            if _inner_gap_dominates(state, point):
                point = _solve_tighter(state, point, trust)
            else:
                reached = _model_step(state, point, trust)
                if reached is None and trust.failures == 3 and isinstance(state.problem.geometry, Polyhedral):
                    # At a kink the coefficients are not unique and no Hessian leads on: their mixtures do.
                    return CuttingPlane().iterate(state, state.best.eta)
                point = _closed_form_step(state, point) if reached is None else reached
            if trust.is_lost:
                return "stalled"
        return None


@dataclass
class _Trust:
    """What earlier steps have shown of the models.

    ``damping`` is a ridge on the Hessian, relative to its mean diagonal, after steps without descent;
    ``stride`` the share of a parabola's step to try first; ``rational`` whether the rational model is to be tried
    (at first where energies fall steeply). The others count steps without descent, tighter inner solves without
    effect, and how often those ended in a first-order step.
    """

    damping: float = 0.0
    stride: float = 1.0
    rational: Literal["where steep", "yes", "no"] = "where steep"
    failures: int = 0
    idle_solves: int = 0
    escapes: int = 0

    @property
    def is_lost(self) -> bool:
        return self.damping > 1e9 or self.escapes > 3


def _inner_gap_dominates(state: OuterState, point: Evaluation) -> bool:
    weights_gap = fenchel_young_gap(state.problem.geometry, point.eta, point.h)
    # Of the whole objective: a penalty may cancel most of the learner's own value.
    return point.inner.gap > max(weights_gap, 0.1 * state.tol * abs(point.upper))


def _solve_tighter(state: OuterState, point: Evaluation, trust: _Trust) -> Evaluation:
    """Solve the learner more exactly at the same weights; leave them where it has no more digits to give."""
    before = point.inner.gap
    point = state.evaluate(point.eta, inner_tol=0.1 * point.inner.relative_gap)
    trust.idle_solves = trust.idle_solves + 1 if point.inner.gap > 0.9 * before else 0
    if trust.idle_solves < 3:
        return point
    trust.idle_solves, trust.escapes = 0, trust.escapes + 1
    return _closed_form_step(state, point)


def _model_step(state: OuterState, point: Evaluation, trust: _Trust) -> Evaluation | None:
    """Step to the minimiser of a model if the objective falls there; None where it does not.

    The rational model is tried first. Where it is rejected the parabola takes this step, and the rational
    model rests until the parabola's whole step turns out to have been too short.
    """
    H = _hessian(state, point, trust.damping)
    if trust.rational == "where steep":
        trust.rational = "yes" if _steepness(H, point) >= 1.5 else "no"
    was_tried = trust.rational == "yes" and not trust.damping
    if was_tried:
        reached = _try_rational(state, point, H)
        if reached is not None:
            trust.stride = 1.0
            return reached
    reached, was_short = _try_parabola(state, point, H, trust)
    trust.rational = "yes" if was_short or not was_tried else "no"
    return reached


def _try_rational(state: OuterState, point: Evaluation, H: Matrix) -> Evaluation | None:
    """Take the whole step of the rational model if the objective falls."""
    target = _rational_step(point, H, state.problem.geometry)
    return _line_search(state, point, target, 1.0, shortest=1.0)[0]


def _try_parabola(
    state: OuterState, point: Evaluation, H: Matrix, trust: _Trust
) -> tuple[Evaluation | None, bool]:
    """Take as much of the parabola's step as lowers the objective; tell whether all of it was too short."""
    target = state.problem.geometry.model_step(point.eta, point.h, H)
    reached, length = _line_search(state, point, target, trust.stride)
    if reached is None:
        trust.failures += 1
        trust.damping = max(4.0 * trust.damping, 1e-3)
        return None, False
    whole = length == 1.0
    trust.damping = 0.0 if whole else trust.damping
    trust.stride = min(1.0, 4.0 * length)
    return reached, whole and _was_short(point, reached)


def _hessian(state: OuterState, point: Evaluation, damping: float) -> Matrix:
    assert point.matvecs is not None
    K, n_threads = state.combined(point.eta), state.problem.grams.n_threads
    H = point.inner.curvature(K, point.matvecs, n_threads)
    return np.asarray(H + damping * float(np.trace(H)) / H.shape[0] * np.eye(H.shape[0])) if damping else H


def _steepness(H: Matrix, point: Evaluation) -> float:
    """Return the power by which energies fall as all weights grow: 2 for hard margins, 0 if they stay."""
    return float(point.eta @ H @ point.eta) / max(float(point.eta @ point.h), np.finfo(float).tiny)


def _rational_step(point: Evaluation, H: Matrix, geometry: Geometry) -> Vector:
    """Return the minimiser of a model with energies h_m / (1 + u_m)², u = H(x - eta) / 2h.

    They have the value and the slope of the true ones at eta, and are the true ones where a kernel of rank
    one grows, or all weights grow together while all margins are hard: the optimal value then falls like
    1/x, and a parabola ends when x has grown by half. Chords of these energies are slopes of a parabola with
    curvature S H S, S² = (1 + u/2) / (1 + u)², if H is diagonal or u the same for all kernels, and nearly so
    otherwise. Its minimiser gives u, and is sought again until u settles.
    """
    eta, h = point.eta, point.h
    positive_h = np.maximum(h, max(1e-12 * float(h.max()), np.finfo(float).tiny))
    # At first as if the energy of the best weights for h came down to that of the present ones.
    u = np.full_like(h, max(geometry.conjugate(h) / float(eta @ positive_h), 1.0) ** 0.5 - 1.0)
    x = geometry.model_step(eta, h, _chord_curvature(H, u))
    for _ in range(8 if geometry.fast_model_step else 3):
        known, u = u, np.maximum(0.5 * (H @ (x - eta)) / positive_h, -0.5)  # energies grow fourfold at most
        if float(np.abs(u - known).max()) <= 0.05:
            break
        chord = _chord_curvature(H, u)
        # The same parabola seen from x: active sets are sought from those of x.
        before, x = x, geometry.model_step(x, h - chord @ (x - eta), chord)
        if float(np.abs(x - before).sum()) <= 0.02 * float(np.abs(x - eta).sum()):
            break
    return x


def _chord_curvature(H: Matrix, u: Vector) -> Matrix:
    """Return S H S with S² = (1 + u/2) / (1 + u)²: the mean curvature of the model on the way to u."""
    S = np.sqrt(1.0 + 0.5 * u) / (1.0 + u)
    return np.asarray(S[:, None] * H * S)


def _was_short(point: Evaluation, reached: Evaluation) -> bool:
    """Tell whether a step ended where a fifth of its slope was left: the model was too pessimistic."""
    move = reached.eta - point.eta
    return float(reached.h @ move) > 0.2 * float(point.h @ move)


def _line_search(
    state: OuterState, point: Evaluation, target: Vector, stride: float, shortest: float = 2.0**-10
) -> tuple[Evaluation | None, float]:
    """Try this share of the step to the target, then shorter ones, until the objective falls enough."""
    geometry, move = state.problem.geometry, target - point.eta
    # What the slope promises: the decrease of the linear model over the whole step.
    promised = float(point.h @ move) + geometry.value(point.eta) - geometry.value(target)
    if promised <= 0.0 or not move.any():
        return None, 0.0
    length = stride
    while length >= shortest:
        trial = state.evaluate(target if length == 1.0 else point.eta + length * move)
        if trial.upper <= point.upper - 1e-4 * length * promised or state.finished:
            return trial, length
        # The energies at the trial give the slope there: aim for where a parabola would turn.
        slope = -float(trial.h @ move)
        length *= float(np.clip(promised / (promised + slope) if slope > -promised else 0.5, 0.1, 0.5))
    return None, 0.0


def _closed_form_step(state: OuterState, point: Evaluation) -> Evaluation:
    """Take the step of `BlockDescent` from weights slightly mixed with the best ones for the energies.

    Mixing lets kernels in again that are at zero, where the closed form would leave them.
    """
    geometry = state.problem.geometry
    mixed = 0.99 * point.eta + 0.01 * geometry.maximizer(point.h)
    return state.evaluate(geometry.reweight(block_norms(mixed, point.h)))
