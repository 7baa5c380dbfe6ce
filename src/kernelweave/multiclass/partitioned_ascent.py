"""Dual ascent on partitions of the samples, with explicit features: each piece of work is a pure function.

A round asks every partition for two dual points: where it would ascend to if the others stood still, and the
subgradient of its loss (a cutting plane of the primal, an extreme point of the dual). The best mixture of
these, of the cuts of earlier rounds and of the present point comes next: it is feasible, and the dual never
falls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.geometry import Simplex
from kernelweave.multiclass.dual_model import DualModel, KernelSplit, norms_of_samples
from kernelweave.multiclass.problem import dual_norm_and_weights
from kernelweave.solvers.certificate import Certificate
from kernelweave.solvers.problem import Progress, Record


@dataclass(frozen=True)
class SharedTheta:
    """What every partition has to know: θ (features, classes), and the constants of the problem."""

    theta: Matrix
    offsets: Indices
    scale: float
    q: float

    def norm_and_weights(self) -> tuple[float, Vector]:
        """Return u = ‖θ‖²_{2,q} and the kernel weights σ."""
        return dual_norm_and_weights(squared_norms(self.theta, self.offsets), self.q)


def squared_norms(theta: Matrix, offsets: Indices) -> Vector:
    """Return s_j = ‖θ^j‖² of every kernel, whose features are the rows [offsets_j, offsets_j+1).

    Examples
    --------
    >>> import numpy as np
    >>> squared_norms(np.array([[1.0], [2.0], [3.0]]), np.array([0, 2, 2, 3]))
    array([5., 0., 9.])

    """
    return np.array([np.sum(theta[a:b] ** 2) for a, b in pairwise(offsets)])


@dataclass(frozen=True)
class PartitionUpdate:
    """A partition at the shared θ, and two dual points it offers for the next one.

    ``loss`` is Σ weight_i ℓ_i and ``gain`` Σ A_{i,y_i}. The first point is A + ``step``, with the changes of
    gain and θ that come with it. The second, the cut, has A_i = weight_i at y_i and −weight_i at the rival,
    which is y_i itself where there is no loss; ``cut_gain`` is its Σ A_{i,y_i} and ``cut_theta`` its θ.
    """

    loss: float
    gain: float
    step: Matrix
    step_gain: float
    step_theta: Matrix
    rivals: AnyArray
    cut_gain: float
    cut_theta: Matrix


def update_partition(
    Phi: Matrix,
    y: AnyArray,
    weight: Vector,
    A: Matrix,
    shared: SharedTheta,
    seed: Sequence[int],
    *,
    block: int = 512,
    sweeps: int = 10,
) -> PartitionUpdate:
    """Evaluate the samples of a partition at the shared θ, then ascend on them as if the others stood still.

    The ascent takes ``block`` samples at a time, so that the kernels among them stay small, and makes at most
    ``sweeps`` passes over each block: the next round returns to it with a better θ.
    """
    index = np.arange(len(y))
    eta = shared.norm_and_weights()[1]
    f = Phi @ (np.repeat(eta, np.diff(shared.offsets))[:, None] * shared.theta) / shared.scale
    margins = 1.0 - f[index, y][:, None] + f
    margins[index, y] = 0.0
    rng = np.random.default_rng(seed)
    ascended, theta = A.copy(), shared.theta.copy()
    for places in np.array_split(rng.permutation(len(y)), max(1, -(-len(y) // block))):
        rows = ascended[places]
        theta += _ascend(Phi[places], y[places], weight[places], rows, theta, shared, rng, sweeps)
        ascended[places] = rows
    step = ascended - A
    rivals = margins.argmax(axis=1).astype(np.int32)
    cut = np.zeros_like(A)
    cut[index, y] += weight
    cut[index, rivals] -= weight
    return PartitionUpdate(
        loss=float(weight @ margins.max(axis=1)),
        gain=float(A[index, y].sum()),
        step=step,
        step_gain=float(step[index, y].sum()),
        step_theta=theta - shared.theta,
        rivals=rivals,
        cut_gain=float(cut[index, y].sum()),
        cut_theta=Phi.T @ cut,
    )


def _ascend(
    Phi: Matrix,
    y: AnyArray,
    weight: Vector,
    A: Matrix,
    theta: Matrix,
    shared: SharedTheta,
    rng: np.random.Generator,
    sweeps: int,
) -> Matrix:
    """Ascend on a block of samples, whose coefficients A change in place; return the change of θ."""
    before = A.copy()
    model = feature_model(Phi, theta, shared)
    for _ in range(sweeps):
        order = rng.permutation(len(y)).astype(np.int64)
        if not model.visit(A, y, weight, order):
            break
    return np.asarray(Phi.T @ (A - before))


def feature_model(Phi: Matrix, theta: Matrix, shared: SharedTheta) -> DualModel:
    """Return the model of the dual for samples with these features, near θ."""
    blocks = [(Phi[:, a:b], theta[a:b]) for a, b in pairwise(shared.offsets)]
    diagonals = np.array([np.einsum("id,id->i", P, P) for P, _ in blocks])
    s = squared_norms(theta, shared.offsets)
    split = KernelSplit.of(s, diagonals.mean(axis=1), shared.q)
    return DualModel(
        K=(Phi * np.repeat(split.eta, np.diff(shared.offsets))) @ Phi.T,
        G=np.array([P @ part for P, part in blocks]),
        share=split.share,
        s=s,
        alone=norms_of_samples(diagonals, shared.q),
        scale=shared.scale,
        q=shared.q,
    )


def best_mixture(B: AnyArray, gains: Matrix, q: float, scale: float, max_iter: int = 400) -> Matrix:
    """Return λ (groups, points) with the highest Σ λ gains − (Σ_j s_j^{q/2})^{2/q} / (2 scale), s_j = λ'B_jλ.

    Every row of λ lies on a simplex. ``B`` (kernels, groups · points, groups · points) are the inner products
    of the points' θ per kernel. The ascent starts at the first point of every group, so that the dual never
    falls. Accelerated projected gradients with backtracking, restarted when a step goes down.
    """

    def negative_dual(lam: Matrix) -> tuple[float, Matrix]:
        x = lam.ravel()
        products = B @ x
        size, eta = dual_norm_and_weights(np.maximum(products @ x, 0.0), q)
        value = size / (2.0 * scale) - float(x @ gains.ravel())
        return value, (eta @ products / scale).reshape(gains.shape) - gains

    simplex = Simplex()
    lam = np.zeros(gains.shape)
    lam[:, 0] = 1.0
    ahead, momentum, value = lam, 1.0, negative_dual(lam)[0]
    curvature = max(float(np.abs(B).max(initial=0.0)) / scale, 1e-300)  # doubled where it is too small
    for _ in range(max_iter):
        here, gradient = negative_dual(ahead)
        while True:
            new = np.array([simplex.project(row) for row in ahead - gradient / curvature])
            move = new - ahead
            model = here + float((gradient * move).sum()) + 0.5 * curvature * float((move * move).sum())
            new_value = negative_dual(new)[0]
            if new_value <= model + 1e-13 * abs(here) or curvature > 1e300:
                break
            curvature *= 2.0
        if new_value > value:
            if momentum == 1.0:
                break
            ahead, momentum = lam, 1.0
            continue
        next_momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        ahead = new + (momentum - 1.0) / next_momentum * (new - lam)
        # Momentum above 5: the first steps after a restart are small wherever they start.
        converged = value - new_value <= 1e-12 * abs(new_value) and momentum > 5.0
        lam, value, momentum, curvature = new, new_value, next_momentum, 0.97 * curvature
        if converged:
            break
    return lam


class DualBundle:
    """Dual points of groups of partitions: the present one, and cuts of earlier rounds.

    Parameters
    ----------
    n_partitions : number of partitions.
    shape : shape of θ.
    max_groups : partitions beyond this number share the weights of a mixture in groups.
    max_cuts : cuts kept per group.
    max_cuts_in_all : cuts kept in all groups together, which bounds the size of the mixture problem.
    """

    def __init__(
        self,
        n_partitions: int,
        shape: tuple[int, ...],
        max_groups: int = 16,
        max_cuts: int = 40,
        max_cuts_in_all: int = 192,
    ) -> None:
        self.n_groups = min(n_partitions, max_groups)
        self.max_cuts = max(1, min(max_cuts, max_cuts_in_all // self.n_groups))
        self.group = np.arange(n_partitions) % self.n_groups
        self.theta, self.gain = np.zeros((self.n_groups, *shape)), np.zeros(self.n_groups)
        self.cuts: list[tuple[AnyArray, Vector, list[AnyArray]]] = []  # θ and gain per group, rivals

    def mix(self, updates: Sequence[PartitionUpdate], shared: SharedTheta) -> Matrix:
        """Move to the best mixture after a round, and return its weights (groups, points).

        Points are the present one, the one all steps lead to, and the cuts, the newest first.
        """
        step_theta, step_gain = self._group_sums([(u.step_theta, u.step_gain) for u in updates])
        cut_theta, cut_gain = self._group_sums([(u.cut_theta, u.cut_gain) for u in updates])
        self.cuts.insert(0, (cut_theta, cut_gain, [u.rivals for u in updates]))
        thetas = np.stack([self.theta, self.theta + step_theta, *(cut[0] for cut in self.cuts)], axis=1)
        gains = np.stack([self.gain, self.gain + step_gain, *(cut[1] for cut in self.cuts)], axis=1)
        points = thetas.reshape(gains.size, *thetas.shape[2:])
        parts = [points[:, a:b].reshape(gains.size, -1) for a, b in pairwise(shared.offsets)]
        lam = best_mixture(np.array([part @ part.T for part in parts]), gains, shared.q, shared.scale)
        self.theta = np.einsum("gp,gpdc->gdc", lam, thetas)
        self.gain = (lam * gains).sum(axis=1)
        return lam

    def mixed_rows(self, k: int, lam: Matrix, A: Matrix, step: Matrix, y: AnyArray, weight: Vector) -> Matrix:
        """Return the coefficients of partition k after the mixture."""
        mine = lam[self.group[k]]
        rows = (mine[0] + mine[1]) * A + mine[1] * step
        index = np.arange(len(y))
        for share, (_, _, rivals) in zip(mine[2:], self.cuts, strict=True):
            if share > 0.0:
                rows[index, y] += share * weight
                rows[index, rivals[k]] -= share * weight
        return np.asarray(rows)

    def drop_cuts(self, lam: Matrix) -> None:
        """Keep only the cuts with the largest weights, as many as are allowed."""
        kept = np.sort(np.argsort(-lam[:, 2:].max(axis=0), kind="stable")[: self.max_cuts])
        self.cuts = [self.cuts[k] for k in kept]

    def _group_sums(self, per_partition: Sequence[tuple[Matrix, float]]) -> tuple[AnyArray, Vector]:
        theta, gain = np.zeros_like(self.theta), np.zeros(self.n_groups)
        for g, (part, amount) in zip(self.group, per_partition, strict=True):
            theta[g] += part
            gain[g] += amount
        return theta, gain


@dataclass(frozen=True)
class PartitionedResult:
    """θ/(λN), kernel weights and norms ‖w^j‖, their bounds and the number of samples they come from."""

    theta: Matrix
    eta: Vector
    norms: Vector
    certificate: Certificate
    history: tuple[Record, ...]
    n_support: int


def solve_partitioned(
    targets: Sequence[tuple[AnyArray, Vector]],
    n_classes: int,
    offsets: Indices,
    lam: float,
    p: float,
    run_round: Callable[[list[tuple[Matrix, SharedTheta, list[int]]]], list[PartitionUpdate]],
    *,
    tol: float,
    max_rounds: int,
    seed: int,
    progress: Progress | None = None,
) -> PartitionedResult:
    """Return the best θ evaluated, with its bounds; ``run_round`` runs `update_partition` on all partitions.

    ``targets`` are the classes and the weights of every partition's samples. The coefficients are sent with
    the work, so that nothing is lost when a worker is.
    """
    N = sum(len(y) for y, _ in targets)
    shared = SharedTheta(np.zeros((int(offsets[-1]), n_classes)), offsets, lam * N, p / (p - 1.0))
    A = [np.zeros((len(y), n_classes)) for y, _ in targets]
    upper, lower = sum(float(weight.sum()) for _, weight in targets) / N, 0.0  # P(0) and D(0)
    best, n_support, bundle = shared, 0, DualBundle(len(targets), shared.theta.shape)
    history: list[Record] = []
    start = time.perf_counter()
    for round_ in range(max_rounds + 1):
        updates = run_round([(rows, shared, [seed, round_, k]) for k, rows in enumerate(A)])
        size = shared.norm_and_weights()[0] / (2.0 * shared.scale * N)  # (λ/2)‖w‖²
        value = size + sum(update.loss for update in updates) / N
        if value < upper:
            upper, best = value, shared
            n_support = sum(int(rows.any(axis=1).sum()) for rows in A)
        lower = max(lower, sum(update.gain for update in updates) / N - size)
        certificate = Certificate(upper, min(lower, upper))
        n_active = int((squared_norms(shared.theta, offsets) > 0.0).sum())
        history.append(Record(certificate, time.perf_counter() - start, n_active))
        if progress is not None:
            progress(history[-1])
        if certificate.relative_gap <= tol or round_ == max_rounds:
            break
        shares = bundle.mix(updates, shared)
        A = [bundle.mixed_rows(k, shares, A[k], updates[k].step, *targets[k]) for k in range(len(A))]
        bundle.drop_cuts(shares)
        shared = SharedTheta(bundle.theta.sum(axis=0), offsets, shared.scale, shared.q)
    theta, eta = best.theta / shared.scale, best.norm_and_weights()[1]
    norms = eta * np.sqrt(squared_norms(theta, offsets))
    return PartitionedResult(theta, eta, norms, certificate, tuple(history), n_support)
