"""The weights of one target: Newton's method on the restricted likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.evidence.components import Components
from kernelweave.evidence.likelihood import Evaluation, derivatives, evaluate, moment_estimate


@dataclass(frozen=True)
class Maximum:
    """Where Newton's method stopped.

    Parameters
    ----------
    theta : the weights, in units of the noise.
    scale, value : the noise variance and the logarithm of the likelihood there.
    slope : the largest derivative of the penalised logarithm of the likelihood with log theta.
    gain : by how much a further step is expected to raise it.
    n_iter : the number of steps.
    """

    theta: Vector
    scale: float
    value: float
    slope: float
    gain: float
    n_iter: int


@dataclass(frozen=True)
class EvidenceNewton:
    r"""Newton's method in log theta, damped, with the average information as its matrix.

        max over theta of log p(y | theta) - Σ_m (log theta_m - mean(log theta))² / (2 spread²)

    Parameters
    ----------
    spread : standard deviation of the log-normal prior on the ratios of the weights; infinity is none.
    tol : a step that is expected to raise the objective by less ends the search.
    max_iter : most steps.
    damping, least_damping : factor of the diagonal at the start, and what is always added to it, so that a
        weight on its way to zero takes no endless step.
    longest : longest step in the logarithm of a weight.
    range : log theta stays between minus this and this.
    """

    spread: float = 2.0
    tol: float = 1e-2
    max_iter: int = 50
    damping: float = 1e-2
    least_damping: float = 0.001
    longest: float = 2.5
    range: float = 12.0

    def maximise(self, components: Components) -> Maximum:
        """Return the best weights of the first target, from a start by moments."""
        Q, x = self._precision(components.n_kernels), np.log(first_weights(components)[0])
        at, damping = evaluate(components, np.exp(x)), self.damping
        objective, n_iter = self._objective(at, x, Q), 0
        while True:
            gradient, information = (one[0] for one in derivatives(components, at))
            # Where a weight falls, the likelihood is nearly linear in it, so that its logarithm is curved by this.
            H = information + Q + np.diag(np.maximum(-gradient, 0.0))
            gradient = gradient - Q @ x
            # A weight at the end of its range that would go on stays.
            held = (np.abs(x) >= self.range) & (gradient * x > 0.0)
            gradient[held] = 0.0
            H[held] = H[:, held] = 0.0
            H[held, held] = 1.0
            gain = 0.5 * float(gradient @ self._step(H, gradient, 0.0))
            if gain < self.tol or n_iter == self.max_iter:
                break
            found = None
            while found is None and damping < 1e8:
                step = np.clip(self._step(H, gradient, damping), -self.longest, self.longest)
                found = self._tried(components, np.clip(x + step, -self.range, self.range), Q, objective)
                damping = damping / 10.0 if found else max(10.0 * damping, 0.1)
            if found is None:  # rounding hides what is left
                break
            x, at, objective = found
            n_iter += 1
        slope = float(np.abs(gradient).max(initial=0.0))
        return Maximum(np.exp(x), float(at.scale[0]), float(at.value[0]), slope, gain, n_iter)

    def _tried(
        self, components: Components, x: Vector, Q: Matrix, objective: float
    ) -> tuple[Vector, Evaluation, float] | None:
        """Return a point with its value if it is better."""
        try:
            at = evaluate(components, np.exp(x))
        except np.linalg.LinAlgError:
            return None
        value = self._objective(at, x, Q)
        return (x, at, value) if value > objective else None

    def _precision(self, n_kernels: int) -> Matrix:
        """Return the matrix of the prior: centring, over the variance."""
        return np.asarray((np.eye(n_kernels) - 1.0 / n_kernels) / self.spread**2)

    def _objective(self, at: Evaluation, x: Vector, Q: Matrix) -> float:
        return float(at.value[0] - 0.5 * x @ Q @ x)

    def _step(self, H: Matrix, gradient: Vector, damping: float) -> Vector:
        added = damping * np.diagonal(H) + self.least_damping
        return np.asarray(np.linalg.solve(H + np.diag(added), gradient))


def first_weights(components: Components, least: float = 0.02, least_noise: float = 0.05) -> Matrix:
    """Return the moments' weights (T, M) in units of the noise, with a least share of the variance for each."""
    theta, noise = moment_estimate(components)
    total = theta.sum(axis=1) + noise
    return np.asarray(
        np.maximum(theta, least * total[:, None]) / np.maximum(noise, least_noise * total)[:, None]
    )
