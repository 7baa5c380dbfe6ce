"""Dual ascent on partitions of the samples, with explicit features: each piece of work is a pure function.

A round asks every partition for two dual points: where it would ascend to if the others stood still, and the
slope of its loss (a cutting plane of the primal, an extreme point of the dual). The best mixture of these, of
the slopes of earlier rounds and of the point at hand comes next: it is feasible, and the dual never falls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.multiclass.mixture import best_mixture
from kernelweave.multiclass.problem import norm_and_slopes
from kernelweave.multiclass.segments import segment_sums
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.problem import Progress
from kernelweave.solvers.result import Record

# Samples of a partition that are worked on at a time, and sweeps over them.
BLOCK, SWEEPS = 512, 10
# Groups of partitions that share the weights of a mixture, and how many slopes are kept: at most, and in all.
GROUPS, KEPT, KEPT_IN_ALL = 16, 40, 192


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
    """What a partition says about θ: Σ weight_i ℓ_i and Σ A_{i,y_i}; the step it would take; and its slope.

    The slope is the dual point with A_i = weight_i at y_i and −weight_i at the rival, which is y_i itself
    where there is no loss; ``theta_slope`` is its θ and ``gain_slope`` its Σ A_{i,y_i}.
    """

    loss: float
    gain: float
    gain_step: float
    step: Matrix
    theta_step: Matrix
    rivals: AnyArray
    gain_slope: float
    theta_slope: Matrix


def vertex(y: AnyArray, rivals: AnyArray, weight: Vector, n_classes: int) -> Matrix:
    """Return the dual point of these rivals."""
    V = np.zeros((len(y), n_classes))
    V[np.arange(len(y)), y] += weight
    V[np.arange(len(y)), rivals] -= weight
    return V


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
    rivals = margins.argmax(axis=1).astype(np.int32)
    slope = vertex(y, rivals, weight, A.shape[1])
    gains = float(step[np.arange(n), y].sum()), float(slope[np.arange(n), y].sum())
    return Piece(loss, gain, gains[0], step, theta - shared.theta, rivals, gains[1], Phi.T @ slope)


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


class Bundle:
    """Dual points of groups of partitions: the one at hand, and slopes of earlier rounds."""

    def __init__(self, n_partitions: int, shape: tuple[int, ...]) -> None:
        self.group = np.arange(n_partitions) % min(n_partitions, GROUPS)
        self.n_groups = int(self.group.max()) + 1
        self.theta, self.gain = np.zeros((self.n_groups, *shape)), np.zeros(self.n_groups)
        self.slopes: list[tuple[AnyArray, Vector, list[AnyArray]]] = []

    def mixed(self, pieces: Sequence[Piece], shared: Shared) -> Matrix:
        """Take in what a round has found, and return the weights (groups, points) of the best mixture.

        Points are the one at hand, the one all steps lead to, and the slopes, the newest first.
        """
        theta_step, gain_step = self._added([(p.theta_step, p.gain_step) for p in pieces])
        new = self._added([(p.theta_slope, p.gain_slope) for p in pieces])
        self.slopes.insert(0, (*new, [p.rivals for p in pieces]))
        thetas = np.stack([self.theta, self.theta + theta_step, *(s[0] for s in self.slopes)], axis=1)
        gains = np.stack([self.gain, self.gain + gain_step, *(s[1] for s in self.slopes)], axis=1)
        flat = thetas.reshape(gains.size, *thetas.shape[2:])
        parts = [flat[:, a:b].reshape(gains.size, -1) for a, b in pairwise(shared.offsets)]
        lam = best_mixture(np.array([part @ part.T for part in parts]), gains, shared.q, shared.scale)
        self.theta = np.einsum("gp,gpdc->gdc", lam, thetas)
        self.gain = (lam * gains).sum(axis=1)
        return lam

    def forget(self, lam: Matrix) -> None:
        """Drop the slopes that count least, down to what may be kept."""
        most = max(1, min(KEPT, KEPT_IN_ALL // self.n_groups))
        kept = np.sort(np.argsort(-lam[:, 2:].max(axis=0), kind="stable")[:most])
        self.slopes = [self.slopes[k] for k in kept]

    def rows(self, k: int, lam: Matrix, A: Matrix, step: Matrix, y: AnyArray, weight: Vector) -> Matrix:
        """Return the coefficients of partition k after the mixture."""
        mine = lam[self.group[k]]
        out = (mine[0] + mine[1]) * A + mine[1] * step
        every = np.arange(len(y))
        for share, (_, _, rivals) in zip(mine[2:], self.slopes, strict=True):
            if share > 0.0:
                out[every, y] += share * weight
                out[every, rivals[k]] -= share * weight
        return np.asarray(out)

    def _added(self, told: Sequence[tuple[Matrix, float]]) -> tuple[AnyArray, Vector]:
        theta, gain = np.zeros_like(self.theta), np.zeros(self.n_groups)
        for g, (part, amount) in zip(self.group, told, strict=True):
            theta[g] += part
            gain[g] += amount
        return theta, gain


@dataclass(frozen=True)
class Partitioned:
    """θ/(λN) and the weights of the kernels, with their bounds and the number of samples they come from."""

    theta: Matrix
    eta: Vector
    certificate: Certificate
    history: tuple[Record, ...]
    n_support: int


def solve_partitioned(
    targets: Sequence[tuple[AnyArray, Vector]],
    n_classes: int,
    offsets: Indices,
    lam: float,
    p: float,
    call: Callable[[list[tuple[Matrix, Shared, list[int]]]], list[Piece]],
    *,
    tol: float,
    max_rounds: int,
    seed: int,
    progress: Progress | None = None,
) -> Partitioned:
    """Return the best θ seen, with its bounds; ``call`` runs `work` on every partition.

    ``targets`` are the classes and the weights of every partition's samples. The coefficients
    travel with the work, so that nothing is lost with whoever did it.
    """
    N = sum(len(y) for y, _ in targets)
    shared = Shared(np.zeros((int(offsets[-1]), n_classes)), offsets, lam * N, p / (p - 1.0))
    A = [np.zeros((len(y), n_classes)) for y, _ in targets]
    upper, lower = sum(float(weight.sum()) for _, weight in targets) / N, 0.0
    best, n_support, bundle = shared.theta, 0, Bundle(len(targets), shared.theta.shape)
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
        shares = bundle.mixed(pieces, shared)
        A = [bundle.rows(k, shares, A[k], pieces[k].step, *targets[k]) for k in range(len(A))]
        bundle.forget(shares)
        shared = Shared(bundle.theta.sum(axis=0), offsets, shared.scale, shared.q)
    eta = norm_and_slopes(Shared(best, offsets, shared.scale, shared.q).energies(), shared.q)[1]
    return Partitioned(best / shared.scale, eta, certificate, tuple(history), n_support)
