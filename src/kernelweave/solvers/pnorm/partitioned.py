"""Dual ascent on partitions of the samples, with explicit features: each piece of work is a pure function."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.pnorm.problem import norm_and_slopes
from kernelweave.solvers.pnorm.segments import segment_sums
from kernelweave.solvers.problem import Progress
from kernelweave.solvers.result import Record

# Samples of a partition that are worked on at a time, and sweeps over them.
BLOCK, SWEEPS = 512, 3


@dataclass(frozen=True)
class Shared:
    """What every partition has to know: θ (features, classes), and the constants of the problem."""

    theta: Matrix
    offsets: Indices
    scale: float
    q: float

    def energies(self, theta: Matrix | None = None) -> Vector:
        """Return s_j = ‖θ^j‖²."""
        squares = ((self.theta if theta is None else theta) ** 2).sum(axis=1)
        return np.asarray(segment_sums(squares, self.offsets))


@dataclass(frozen=True)
class Piece:
    """What a partition says about θ: Σ weight_i ℓ_i and Σ A_{i,y_i}; and the step it would take."""

    loss: float
    gain: float
    gain_step: float
    step: Matrix
    theta_step: Matrix


def work(Phi: Matrix, y: AnyArray, weight: Vector, A: Matrix, shared: Shared, seed: Sequence[int]) -> Piece:
    """Value the samples of a partition at the shared θ, then ascend on them as if the others stood still."""
    n = len(y)
    eta = norm_and_slopes(shared.energies(), shared.q)[1]
    f = Phi @ (np.repeat(eta, np.diff(shared.offsets))[:, None] * shared.theta) / shared.scale
    margins = 1.0 - f[np.arange(n), y][:, None] + f
    margins[np.arange(n), y] = 0.0
    loss, gain = float(weight @ margins.max(axis=1)), float(A[np.arange(n), y].sum())
    rng = np.random.default_rng(seed)
    local, theta = A.copy(), shared.theta.copy()
    for places in np.array_split(rng.permutation(n), max(1, -(-n // BLOCK))):
        theta += _ascend(Phi[places], y[places], weight[places], places, local, theta, shared, rng)
    step = local - A
    return Piece(loss, gain, float(step[np.arange(n), y].sum()), step, theta - shared.theta)


def _ascend(
    Phi: Matrix,
    y: AnyArray,
    weight: Vector,
    places: Indices,
    A: Matrix,
    theta: Matrix,
    shared: Shared,
    rng: np.random.Generator,
) -> Matrix:
    """Ascend on a few samples, whose rows of A change in place; return what θ gains by it."""
    ends = list(zip(shared.offsets[:-1], shared.offsets[1:], strict=True))
    K = np.array([Phi[:, a:b] @ Phi[:, a:b].T for a, b in ends])
    G = np.array([(Phi[:, a:b] @ theta[a:b]).T for a, b in ends])
    rows, s = A[places], shared.energies(theta)
    before = rows.copy()
    for _ in range(SWEEPS):
        order = rng.permutation(len(y)).astype(np.int64)
        if not _core.ascend(K, y, weight, shared.scale, shared.q, order, rows, G, s):
            break
    A[places] = rows
    return np.asarray(Phi.T @ (rows - before))


def best_step(shared: Shared, gain: float, theta_step: Matrix) -> float:
    """Return the t in [0, 1] with the highest dual value of A + tΔ, whose steps did not know each other."""
    s, b = shared.energies(), shared.energies(theta_step)
    a = segment_sums((shared.theta * theta_step).sum(axis=1), shared.offsets)

    def falling(t: float) -> float:
        return norm_and_slopes(s + 2 * t * a + t * t * b, shared.q)[0] / (2.0 * shared.scale) - t * gain

    t = float(minimize_scalar(falling, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-6}).x)
    return 1.0 if falling(1.0) <= falling(t) else t


@dataclass(frozen=True)
class Partitioned:
    """θ/(λN) and the weights of the kernels, with their bounds and the number of samples they come from."""

    theta: Matrix
    eta: Vector
    certificate: Certificate
    history: tuple[Record, ...]
    n_support: int


def solve_partitioned(
    sizes: Sequence[int],
    n_classes: int,
    offsets: Indices,
    lam: float,
    p: float,
    total_weight: float,
    call: Callable[[list[tuple[Matrix, Shared, list[int]]]], list[Piece]],
    *,
    tol: float,
    max_rounds: int,
    seed: int,
    progress: Progress | None = None,
) -> Partitioned:
    """Return the best θ seen, with its bounds; ``call`` runs `work` on every partition.

    The coefficients travel with the work, so that nothing is lost with whoever did it.
    """
    N = sum(sizes)
    shared = Shared(np.zeros((int(offsets[-1]), n_classes)), offsets, lam * N, p / (p - 1.0))
    A = [np.zeros((n, n_classes)) for n in sizes]
    upper, lower, best, n_support = total_weight / N, 0.0, shared.theta, 0
    history: list[Record] = []
    start = time.perf_counter()
    for round_ in range(max_rounds + 1):
        pieces = call([(rows, shared, [seed, round_, k]) for k, rows in enumerate(A)])
        size = norm_and_slopes(shared.energies(), shared.q)[0] / (2.0 * shared.scale * N)
        value = size + sum(piece.loss for piece in pieces) / N
        if value < upper:
            upper, best = value, shared.theta
            n_support = sum(int(rows.any(axis=1).sum()) for rows in A)
        lower = max(lower, sum(piece.gain for piece in pieces) / N - size)
        certificate = Certificate(upper, min(lower, upper))
        used = int((shared.energies() > 0.0).sum())
        history.append(Record(certificate, time.perf_counter() - start, used))
        if progress is not None:
            progress(history[-1])
        if certificate.relative_gap <= tol or round_ == max_rounds:
            break
        gain = sum(piece.gain_step for piece in pieces)
        theta_step = np.sum([piece.theta_step for piece in pieces], axis=0)
        t = best_step(shared, gain, theta_step)
        A = [rows + t * piece.step for rows, piece in zip(A, pieces, strict=True)]
        shared = Shared(shared.theta + t * theta_step, offsets, shared.scale, shared.q)
    eta = norm_and_slopes(Shared(best, offsets, shared.scale, shared.q).energies(), shared.q)[1]
    return Partitioned(best / shared.scale, eta, certificate, tuple(history), n_support)
