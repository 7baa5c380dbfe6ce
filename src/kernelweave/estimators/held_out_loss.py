"""What a search by held-out probabilities rests on: alignments of kernels, log loss, temperature, averages."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from kernelweave._typing import AnyArray, Indices, Matrix, Vector

# Temperatures from nearly even probabilities to nearly certain ones, for margins of size one.
COLDEST, WARMEST = 1e-3, 1e3
# A candidate whose evidence is below this share of the best one's gets no weight.
LEAST_EVIDENCE = float(np.exp(-5.0))


def unbiased_alignment(K: Matrix, Y: Matrix, weight: Vector) -> float:
    r"""Return the correlation of a kernel with the labels over pairs of different samples, at least 0.

    .. math:: a = \max(0, \mathrm{corr}_{i \ne j}(\tilde K_{ij}, (\tilde Y \tilde Y')_{ij})),
       \qquad \tilde K = PKP, \; \tilde Y = PY

    Over all pairs the diagonal, which says nothing of the labels, would favour kernels near the identity.
    Pairs count by the product of their samples' weights; P takes the weighted mean away.
    """
    w = weight / weight.sum()
    mean = K @ w
    K = K - mean - mean[:, None] + w @ mean
    Y = Y - w @ Y
    own, labels = np.diagonal(K), np.einsum("ic,ic->i", Y, Y)
    pairs = 1.0 - w @ w  # the weight of all pairs of different samples; one sample alone has none
    if pairs <= np.finfo(np.float64).eps:
        return 0.0
    w2, WY = w * w, w[:, None] * Y
    mean_K, mean_T = -(w2 @ own) / pairs, -(w2 @ labels) / pairs  # sums over all pairs are 0 after centring
    product = np.einsum("ic,ic->", WY, K @ WY) - w2 @ (own * labels)
    square_K = w @ (K * K) @ w - w2 @ own**2
    square_T = float(((Y.T @ WY) ** 2).sum()) - w2 @ labels**2
    spread = (square_K / pairs - mean_K**2) * (square_T / pairs - mean_T**2)
    return max(0.0, float((product / pairs - mean_K * mean_T) / np.sqrt(spread))) if spread > 0.0 else 0.0


def shares(values: Vector) -> Vector:
    """Return values >= 0 divided by their sum, even where all are 0."""
    total = values.sum()
    return np.asarray(values / total if total > 0.0 else np.full(values.size, 1.0 / values.size))


def log_probabilities(values: AnyArray, temperature: float) -> Matrix:
    """Return the log of the softmax of decision values times the temperature; of two classes, of (−f, f)."""
    F = np.column_stack([-values, values]) if values.ndim == 1 else values
    return np.asarray(log_softmax(temperature * F, axis=1))


def log_losses(values: AnyArray, index: Indices, temperature: float) -> Vector:
    """Return what every sample of a known class loses at this temperature."""
    return np.asarray(-log_probabilities(values, temperature)[np.arange(index.size), index])


def best_temperature(values: AnyArray, index: Indices, weight: Vector) -> float:
    """Return the temperature of the least weighted log loss, which is convex in it."""
    found = minimize_scalar(
        lambda t: float(weight @ log_losses(values, index, float(np.exp(t)))),
        bounds=(np.log(COLDEST), np.log(WARMEST)),
        method="bounded",
        options={"xatol": 1e-4},
    )
    return float(np.exp(found.x))


def average_weights(losses: Vector, n_samples: float) -> Vector:
    """Return weights of candidates by their mean held-out log loss: ∝ exp(−n Δ/2), none below e⁻⁵ of the best."""
    evidence = np.exp(-0.5 * n_samples * (losses - losses.min()))
    return shares(np.where(evidence >= LEAST_EVIDENCE, evidence, 0.0))
