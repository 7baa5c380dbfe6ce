"""What is learnt of kernel weights: points, their shares in every target, and what follows for new samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.evidence.components import Components
from kernelweave.evidence.likelihood import Evaluation, evaluate
from kernelweave.evidence.newton import EvidenceNewton
from kernelweave.evidence.pooled import PooledEvidence, used_shares


@dataclass(frozen=True)
class Posterior:
    """The weights of T targets as mixtures of C points.

    Parameters
    ----------
    points : array of shape (C, M), weights in units of the noise.
    shares : array of shape (T, C), how much of each target's posterior is at each point; zero for a target
        without any variance.
    scale : array of shape (T, C), the noise variance of each target at each point.
    log_evidence : array of shape (T,), the logarithm of each target's restricted likelihood, infinite for one
        without any variance.
    n_iter : most steps that were taken, of a search or of EM.
    slopes, gains : of targets that were searched each by itself, where the search ended: the largest derivative
        with the logarithm of a weight, and by how much a further step is expected to raise the objective.
    prior_gap : how far the shared prior of pooled targets may be from the best, in log likelihood per target.
    """

    points: Matrix
    shares: Matrix = field(repr=False)
    scale: Matrix = field(repr=False)
    log_evidence: Vector = field(repr=False)
    n_iter: int = 0
    slopes: Vector | None = field(default=None, repr=False)
    gains: Vector | None = field(default=None, repr=False)
    prior_gap: float | None = None

    @property
    def variances(self) -> Matrix:
        """The mean variance that each kernel has in each target, (T, M)."""
        return np.asarray((self.shares * self.scale) @ self.points)

    @property
    def noise(self) -> Vector:
        """The mean noise variance of each target."""
        return np.asarray((self.shares * self.scale).sum(axis=1))

    def coefficients(self, components: Components) -> AnyArray:
        """Return B of the mean function Σ_m k_m(x)'B_m in the coordinates, (M, d, T)."""
        B = np.zeros((components.n_kernels, *components.Y.shape))
        for point, targets, at in self._evaluated(components):
            found = at.solution() * self.shares[targets, point]
            for m in np.flatnonzero(at.theta):
                B[m][:, targets] += at.theta[m] * found
        return B

    def predictive(
        self, components: Components, rows: AnyArray, diagonals: Matrix, noise: float
    ) -> tuple[Matrix, Matrix]:
        """Return means and variances of the targets of new samples, (rows, T) each.

        ``rows`` are (M, rows, d) and ``diagonals`` (M, rows), both in the coordinates; ``noise`` is the variance
        that a new sample and the intercept add, in units of the noise.
        """
        mean = np.zeros((rows.shape[1], components.Y.shape[1]))
        square = np.zeros_like(mean)
        for point, targets, at in self._evaluated(components):
            half = at.half_solved(np.tensordot(at.theta, rows, 1).T)  # L⁻¹k*, (d, rows)
            own = half.T @ at.half
            left = np.maximum(at.theta @ diagonals - np.einsum("dr,dr->r", half, half), 0.0)
            share = self.shares[targets, point]
            mean[:, targets] += share * own
            square[:, targets] += share * ((left + noise)[:, None] * self.scale[targets, point] + own**2)
        return mean, np.maximum(square - mean**2, 0.0)

    def _evaluated(self, components: Components) -> Iterator[tuple[int, Indices, Evaluation]]:
        """Yield every point in use, the targets that use it, and their likelihood there."""
        for point in np.flatnonzero(self.shares.any(axis=0)).tolist():
            targets = np.flatnonzero(self.shares[:, point])
            yield point, targets, evaluate(components.of_targets(targets), self.points[point])


def learn(components: Components, solver: EvidenceNewton | PooledEvidence) -> Posterior:
    """Return what a solver learns of the targets; those that never vary have no share in any point."""
    told = np.flatnonzero(np.einsum("dt,dt->t", components.Y, components.Y) + components.rest)
    T = components.Y.shape[1]
    part = components if told.size == T else components.of_targets(told)
    varies = components.K.any(axis=(1, 2))
    if not told.size or not varies.any():
        found = noise_alone(part)
    elif isinstance(solver, EvidenceNewton):
        found = search_each(part, solver)
    else:
        found = pool(part, solver)
    # The likelihood says nothing of a constant kernel, so that a search leaves its weight where the prior has it.
    found = replace(found, points=np.where(varies, found.points, 0.0))
    return found if told.size == T else _among(found, told, T)


def search_each(components: Components, solver: EvidenceNewton) -> Posterior:
    """Return the best weights of every target by itself."""
    maxima = [solver.maximise(components.of_targets([t])) for t in range(components.Y.shape[1])]
    return Posterior(
        np.array([one.theta for one in maxima]),
        np.eye(len(maxima)),
        np.diag([one.scale for one in maxima]),
        np.array([one.value for one in maxima]),
        max(one.n_iter for one in maxima),
        np.array([one.slope for one in maxima]),
        np.array([one.gain for one in maxima]),
    )


def pool(components: Components, solver: PooledEvidence) -> Posterior:
    """Return the weights of all targets under a prior that they share."""
    points, value, scale = solver.likelihoods(components)
    shared = solver.prior(value)
    largest = value.max(axis=1)
    log_evidence = largest + np.log(np.exp(value - largest[:, None]) @ shared.prior)
    shares = used_shares(shared.shares)
    used = shares.any(axis=0)
    return Posterior(
        points[used], shares[:, used], scale[:, used], log_evidence, shared.n_iter, prior_gap=shared.gap
    )


def noise_alone(components: Components) -> Posterior:
    """Return targets that are noise about their mean."""
    T, points = components.Y.shape[1], np.zeros((1, components.n_kernels))
    found = evaluate(components, points[0])
    return Posterior(points, np.ones((T, 1)), found.scale[:, None], found.value)


def _among(found: Posterior, told: Indices, n_targets: int) -> Posterior:
    """Return a posterior of some targets among all, the others of which are known exactly."""
    shares, scale = np.zeros((2, n_targets, len(found.points)))
    log_evidence = np.full(n_targets, np.inf)
    shares[told], scale[told], log_evidence[told] = found.shares, found.scale, found.log_evidence
    ends = [None if one is None else np.zeros(n_targets) for one in (found.slopes, found.gains)]
    for end, one in zip(ends, (found.slopes, found.gains), strict=True):
        if end is not None:
            end[told] = one
    return replace(
        found, shares=shares, scale=scale, log_evidence=log_evidence, slopes=ends[0], gains=ends[1]
    )
