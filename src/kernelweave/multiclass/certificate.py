"""Two bounds of the optimum of the p-norm problem from any coefficients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.multiclass.problem import PNormProblem, norm_and_slopes

# Rounding errors of sums behave like random walks; this many standard deviations are allowed for.
DEVIATIONS = 6.0
# Samples whose scores are formed at a time.
SLICE = 1 << 14


@dataclass(frozen=True)
class Evaluation:
    """What coefficients A with images G_j = K_jA are worth: P of the best multiple τw, and the bound of D.

    ``open`` says per sample how much of the gap it holds; ``eta`` are the weights σ of the kernels.
    """

    upper: float
    lower: float
    tau: float
    eta: Vector
    norms: Vector
    open: Vector


def evaluate(
    problem: PNormProblem, A: Matrix, G: AnyArray, *, rescale: bool = True, travel: Vector | None = None
) -> Evaluation:
    """Bound the optimum from both sides by w(A), [Orabona10, Eq. (9)], and by its dual at A.

    ``A`` is N × classes, its rows sum to zero and only the entry of the true class is positive; G has shape
    (kernels, classes, N); without ``rescale`` τ is 1. Where an entry of A exceeds its weight only the upper
    bound speaks. ``travel`` are the sums of squares, per class, of the steps that made G, which its rounding
    follows; None: G was made from A at once.
    """
    N, scale = problem.n_samples, problem.scale
    s = energies(A, G)
    eta = problem.slopes(s)[1]
    spread = np.einsum("ic,ic->c", A, A) if travel is None else travel
    spare = DEVIATIONS * (problem.rows.errors * float(spread.sum()) + problem.rows.unit * s)
    loss, h, along = _margins(problem, A, G, eta)
    # What rounding may hide: in the norms, and in every score.
    above = norm_and_slopes(s + spare, problem.q)[0]
    size = above / (2.0 * scale * N)
    doubt = _doubt(problem, eta, float(np.sqrt(spread.max(initial=0.0))))
    if rescale:
        tau, value = best_multiple(size, h, problem.weight)
    else:
        tau, value = 1.0, size + float(np.mean(problem.weight * loss))
    gains = A[np.arange(N), problem.y]
    return Evaluation(
        upper=value + tau * doubt * float(problem.weight.mean()),
        lower=_best_dual(float(gains.mean()), size, gains, problem.weight),
        tau=tau,
        eta=eta,
        norms=tau * eta * np.sqrt(np.maximum(s, 0.0)) / scale,
        open=np.maximum(problem.weight * loss - gains + along, 0.0),
    )


def _doubt(problem: PNormProblem, eta: Vector, length: float) -> float:
    """Return what rounding may hide in the mean loss, for coefficients of this length.

    The hinge is convex, so the true loss exceeds the one computed by at most a fixed linear function of the
    errors of the scores, with slopes of length √2 at most per sample. Errors of single entries are
    independent and fade in a mean over N samples; those of coefficients and columns are shared and do not.
    """
    rows = problem.rows
    single = float(np.sqrt(2.0 / problem.n_samples)) * float(eta @ rows.errors)
    shared = 2.0 * rows.unit * float(eta @ np.abs(rows.diagonals).mean(axis=1))
    return DEVIATIONS * (single + shared) * length / problem.scale


def energies(A: Matrix, G: AnyArray) -> Vector:
    """Return s_j = tr(A'K_jA) from the images."""
    return np.asarray(np.maximum([np.einsum("ic,ci->", A, g) for g in G], 0.0))


def _margins(problem: PNormProblem, A: Matrix, G: AnyArray, eta: Vector) -> tuple[Vector, Vector, Vector]:
    """Return per sample the hinge loss, h = the best rival's score minus the own, and A_i · f_i."""
    N = problem.n_samples
    h, along = np.empty(N), np.empty(N)
    for start in range(0, N, SLICE):
        part = slice(start, min(start + SLICE, N))
        f = np.einsum("j,jci->ci", eta, G[:, :, part]) / problem.scale
        along[part] = np.einsum("ic,ci->i", A[part], f)
        places = (problem.y[part], np.arange(f.shape[1]))
        own = f[places]
        f[places] = -np.inf
        h[part] = f.max(axis=0) - own
    return np.maximum(1.0 + h, 0.0), h, along


def best_multiple(size: float, h: Vector, weight: Vector) -> tuple[float, float]:
    """Return the τ ≥ 0 with the least τ² size + mean(weight max(0, 1 + τh)), and that value.

    The slope rises with τ, so its zero is bracketed and halved; ``size`` is (λ/2)‖w‖².
    """

    def value(tau: float) -> float:
        return tau * tau * size + float(np.mean(weight * np.maximum(1.0 + tau * h, 0.0)))

    def slope(tau: float) -> float:
        return 2.0 * tau * size + float(np.mean(weight * h * (1.0 + tau * h > 0.0)))

    if size <= 0.0 or slope(0.0) >= 0.0:
        return 0.0, value(0.0)
    low, high = 0.0, 1.0
    while slope(high) < 0.0:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return high, value(high)


def _best_dual(gain: float, size: float, gains: Vector, weight: Vector) -> float:
    """Return the largest t gain − t² size over the t ≥ 0 that keep tA within its caps."""
    used = gains > 0.0
    if not used.any() or (gains > weight * (1.0 + 1e-9)).any():
        return 0.0  # A = 0 is always a dual point
    room = float((weight[used] / gains[used]).min())
    t = min(room, gain / (2.0 * size)) if size > 0.0 else room
    return t * gain - t * t * size


def clipped(A: Matrix, y: AnyArray, weight: Vector) -> Matrix:
    """Return A with every row shortened to its cap: a point of the dual's feasible set."""
    gains = A[np.arange(y.size), y]
    excess = np.divide(gains, weight, out=np.zeros_like(gains), where=weight > 0.0)
    rows = A / np.maximum(1.0, excess)[:, None]
    rows[weight <= 0.0] = 0.0
    return rows
