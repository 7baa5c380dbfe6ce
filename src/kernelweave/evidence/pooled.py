"""The weights of many targets at once: a few common points, and a prior over them that the targets share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.evidence.components import Components
from kernelweave.evidence.likelihood import Evaluation, derivatives, evaluate, moment_estimate


@dataclass(frozen=True)
class SharedPrior:
    """A prior over the points that targets share, and what each target makes of it.

    ``shares`` are the posterior shares of the points in every target, (T, C). ``gap`` bounds by how much any
    other prior could raise the mean of the targets' log likelihoods, the pseudo-targets' included.
    """

    prior: Vector
    shares: Matrix
    gap: float
    n_iter: int


@dataclass(frozen=True)
class PooledEvidence:
    """Empirical Bayes for many targets, with few factorisations.

    The weights of a target start from moments. Targets with similar weights then take Newton steps from their
    common mean; what is found is clustered into points, at which the likelihood of every target is known, and the
    prior over the points is learnt from all targets.

    Parameters
    ----------
    n_points : most points; a factorisation each.
    n_near : at how many of them, the nearest, the likelihood of a target is looked at; it is nothing elsewhere.
    rounds, n_means : how often Newton steps are taken, and from how many common means.
    most_rounds : how often at most, for targets whose steps are cut to the longest.
    longest : longest of these steps in the logarithm of a weight.
    ridge : what is added to the information in them.
    pseudo_targets : how many targets the uniform prior over the points counts for.
    tol, max_iter : the prior is good enough when its gap is below, or after so many steps of EM.
    """

    n_points: int = 200
    n_near: int = 50
    rounds: int = 2
    most_rounds: int = 8
    n_means: int = 20
    longest: float = 2.0
    ridge: float = 0.25
    pseudo_targets: float = 1.0
    tol: float = 1e-3
    max_iter: int = 500

    def likelihoods(self, components: Components) -> tuple[Matrix, Matrix, Matrix]:
        """Return points (C, M), the log likelihood of every target at those near to it, and its noise there (T, C)."""
        theta = self._moved(components)
        points = self._points(theta)
        return log_likelihoods(components, points, nearest_points(theta, points, self.n_near))

    def _moved(self, components: Components) -> Matrix:
        """Return the weights of every target, moments first and then a few steps, (T, M)."""
        theta, noise = moment_estimate(components)
        total = theta.sum(axis=1) + noise
        theta = np.maximum(theta, 2e-3 * total[:, None]) / np.maximum(noise, 0.02 * total)[:, None]
        moving = np.arange(len(theta))
        for number in range(self.most_rounds):
            theta[moving], far = self._after_step(components.of_targets(moving), theta[moving])
            if number + 1 >= self.rounds:
                moving = moving[far]
            if not moving.size:
                break
        return np.asarray(theta)

    def _points(self, theta: Matrix) -> Matrix:
        """Return the points: means of similar weights, none, even ones, and one kernel alone."""
        _, means = clustered(places(theta), self.n_points)
        found = weights_at(means)
        M, signal = theta.shape[1], float(np.median(theta.sum(axis=1)))
        even = np.full((1, M), signal / M)
        found = np.concatenate([found, np.zeros((1, M)), even, 0.1 * even, signal * np.eye(M)])
        # What is small beside the other kernels and beside the noise is left out.
        found[found < 1e-3 * np.minimum(found.sum(axis=1, keepdims=True), 1.0)] = 0.0
        return np.unique(found, axis=0)

    def prior(self, log_likelihood: Matrix) -> SharedPrior:
        """Return the prior over points that makes all targets together likeliest, by EM."""
        T, C = log_likelihood.shape
        likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
        prior, total = np.full(C, 1.0 / C), T + self.pseudo_targets
        n_iter = 0
        while True:
            joint = likelihood * prior
            joint /= joint.sum(axis=1, keepdims=True)
            counts = joint.sum(axis=0) + self.pseudo_targets / C
            # Concave in the prior: no other one is better by more than the largest slope allows.
            gap = float((counts / prior).max() - total) / T
            if gap <= self.tol or n_iter == self.max_iter:
                return SharedPrior(prior, joint, gap, n_iter)
            prior = counts / total
            n_iter += 1

    def _after_step(self, components: Components, theta: Matrix) -> tuple[Matrix, AnyArray]:
        """Return weights one Newton step from the mean of each target's cluster, and which steps were cut short."""
        members, means = clustered(places(theta), self.n_means)
        common = weights_at(means)
        common = np.maximum(common, 2e-3 * np.clip(common.sum(axis=1, keepdims=True), 0.1, 1.0))
        new, far = theta.copy(), np.zeros(len(theta), dtype=bool)
        for number, mean in enumerate(common):
            own = np.flatnonzero(members == number)
            if not own.size:
                continue
            part = components.of_targets(own)
            at = evaluate_near(part, mean)
            gradient, information = derivatives(part, at)
            m = np.arange(components.n_kernels)
            information[:, m, m] = 1.02 * information[:, m, m] + self.ridge
            step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
            new[own] = at.theta * np.exp(np.clip(step, -self.longest, self.longest))
            far[own] = np.abs(step).max(axis=1) > self.longest
        return new, far


def places(theta: Matrix) -> Matrix:
    """Return weights as points between which likelihoods differ by about as much as the points do.

    The square roots of the shares of every kernel, and the logarithm of the share of the noise.
    """
    total = 1.0 + theta.sum(axis=1, keepdims=True)
    return np.asarray(np.concatenate([np.sqrt(theta / total), 0.5 * np.log(total)], axis=1))


def weights_at(points: Matrix, least_noise: float = 1e-5) -> Matrix:
    """Return the weights in units of the noise whose `places` these are."""
    parts = points[:, :-1] ** 2
    total = np.minimum(np.expm1(2.0 * points[:, -1:]), 1.0 / least_noise)
    sums = parts.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(total * parts, sums, out=np.zeros_like(parts), where=sums > 0.0))


def clustered(points: Matrix, n_clusters: int, n_iter: int = 12) -> tuple[Indices, Matrix]:
    """Return the cluster of every point and the means of the clusters, from a start by farthest points."""
    if len(points) <= n_clusters:
        return np.arange(len(points)), points
    chosen = [points.mean(axis=0)]
    distance = ((points - chosen[0]) ** 2).sum(axis=1)
    while len(chosen) < n_clusters:
        chosen.append(points[int(distance.argmax())])
        distance = np.minimum(distance, ((points - chosen[-1]) ** 2).sum(axis=1))
    means = np.array(chosen)
    for _ in range(n_iter):
        members = _nearest(points, means)
        counts = np.bincount(members, minlength=len(means))
        sums = np.zeros_like(means)
        np.add.at(sums, members, points)
        means = sums[counts > 0] / counts[counts > 0, None]
    return _nearest(points, means), means


def _nearest(points: Matrix, means: Matrix) -> Indices:
    return np.asarray(((means**2).sum(axis=1) - 2.0 * points @ means.T).argmin(axis=1))


def used_shares(shares: Matrix, least: float = 1e-3) -> Matrix:
    """Return shares without those below ``least``, summing to one."""
    kept = np.where(shares >= least, shares, 0.0)
    return np.asarray(kept / kept.sum(axis=1, keepdims=True))


def nearest_points(theta: Matrix, points: Matrix, n_near: int) -> AnyArray:
    """Return which points are among the nearest to the weights of each target, (T, C)."""
    if n_near >= len(points):
        return np.ones((len(theta), len(points)), dtype=bool)
    at, to = places(theta), places(points)
    distance = (to**2).sum(axis=1) - 2.0 * at @ to.T  # up to a constant for each target
    return np.asarray(distance <= np.partition(distance, n_near - 1, axis=1)[:, [n_near - 1]])


def log_likelihoods(
    components: Components, points: Matrix, near: AnyArray, largest_in_single: float = 1e6
) -> tuple[Matrix, Matrix, Matrix]:
    """Return the points, the log likelihood of every target at those near to it, and the noise variance there.

    Single precision does where the trace of Σ theta_m K_m is not beyond ``largest_in_single``: what counts is by
    how many units likelihoods differ.
    """
    points, value, scale = points.copy(), np.full(near.shape, -np.inf), np.zeros(near.shape)
    single = components.in_float32()
    for number, point in enumerate(points):
        own = np.flatnonzero(near[:, number])
        if own.size:
            rough = point.sum() * components.dof <= largest_in_single
            found = evaluate_near((single if rough else components).of_targets(own), point)
            points[number], value[own, number], scale[own, number] = found.theta, found.value, found.scale
    return points, value, scale


def evaluate_near(components: Components, theta: Vector) -> Evaluation:
    """Return the likelihood at theta, or at a half, a quarter, … of it where rounding makes V indefinite."""
    while True:
        try:
            return evaluate(components, theta)
        except np.linalg.LinAlgError:
            theta = 0.5 * theta
