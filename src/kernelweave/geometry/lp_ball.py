"""The p-norm ball: weights between sparse and equal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.geometry._projections import (
    capped_maximizer,
    capped_projection_at_most,
    capped_reweight,
    shrink,
)
from kernelweave.geometry._qp import Description, capped_simplex_step_at_most, interior_point_minimiser
from kernelweave.geometry._roots import increasing_root
from kernelweave.geometry.base import FEASIBILITY_SLACK, Geometry, is_nonnegative


@dataclass
class LpBall(Geometry):
    r"""Indicator of the non-negative part of the p-norm ball.

    {eta >= 0, ||eta||_p <= 1}

    Parameters
    ----------
    p : float
        1 <= p <= inf: 1 gives the simplex's sparse solutions, 2 is L2MKL, infinity the sum of all kernels.

    Notes
    -----
    LpMKL of [Kloft11]; p = 2 is the square loss on the kernel slacks [Xu13, Eq. (16)]. The block update is
    eta_m = ||f_m||^(2/(p+1)) / (sum_k ||f_k||^(2p/(p+1)))^(1/p), the support function ||h||_q with
    q = p/(p-1).
    Symbols: mu -> eta, p -> p.
    Differs from the paper: norms and energies may be zero; p = 1 and p = inf are included.

    Examples
    --------
    >>> import numpy as np
    >>> LpBall(p=2.0).maximizer(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    >>> LpBall(p=np.inf).reweight(np.array([3.0, 4.0]))
    array([1., 1.])

    """

    p: float = 2.0

    tunable = "p"

    def grid(self, n_kernels: int) -> tuple[float, ...]:  # noqa: ARG002 - p does not depend on it
        return (np.inf, 4.0, 2.0, 4.0 / 3.0, 1.0)  # those of [Kloft11]

    @property
    def fast_block_update(self) -> bool:
        return self.p >= 2.0  # the closer to 1, the slower: 7 inner solves at p = 2, 155 at p = 1

    @property
    def fast_model_step(self) -> bool:
        return self.p == 1.0

    def contains(self, eta: Vector) -> bool:
        return is_nonnegative(eta) and _norm(np.maximum(eta, 0.0), self.p) <= 1.0 + FEASIBILITY_SLACK

    def conjugate(self, h: Vector) -> float:
        gain = np.maximum(h, 0.0)
        return float(gain.max()) if self.p == 1.0 else _norm(gain, 1.0 / (1.0 - 1.0 / self.p))

    def maximizer(self, h: Vector) -> Vector:
        top = float(h.max())
        if self.p == np.inf:  # the sum of kernels: rounding below zero removes none
            return np.where(h >= -FEASIBILITY_SLACK * np.abs(h).max(), 1.0, 0.0)
        if top <= 0.0:
            return self.scaled(np.where(h == 0.0, 1.0, 0.0))
        if self.p == 1.0:
            return capped_maximizer(h, 1.0)
        return self.scaled(np.maximum(h / top, 0.0) ** (1.0 / (self.p - 1.0)))

    def start(self, n_kernels: int) -> Vector:
        return np.full(n_kernels, float(n_kernels) ** (-1.0 / self.p))

    def project(self, z: Vector) -> Vector:
        p, positive = self.p, np.maximum(z, 0.0)
        if _norm(positive, p) <= 1.0:
            return positive
        if p == 1.0:
            return capped_projection_at_most(z, 1.0)
        if p == 2.0:
            return self.scaled(positive)
        if p == np.inf:
            return np.minimum(positive, 1.0)
        positive[positive < 1e-150 * positive.max()] = 0.0  # their powers would underflow
        w = positive[positive > 0.0]
        power = min(p - 1.0, 1.0)

        def shortage(multiplier: float) -> tuple[float, float]:
            x = shrink(w, multiplier, p)
            length = _norm(x, p)
            fall = x**p / (x + (p - 1.0) * (w - x))  # - dx / d multiplier
            slope = power * length ** (-power - 1.0) * float((x / length) ** (p - 1.0) @ fall)
            return length**-power - 1.0, slope

        # At the dual norm of z the powers multiplier x^(p-1) = z alone are small enough.
        multiplier = increasing_root(shortage, 0.0, self.conjugate(z))
        positive[positive > 0.0] = shrink(w, multiplier, p)
        return self.scaled(positive)

    def reweight(self, norms: Vector) -> Vector:
        top = float(norms.max())
        if top <= 0.0 or self.p == np.inf:
            return self.start(len(norms))
        if self.p == 1.0:
            return capped_reweight(norms, 1.0)
        return self.scaled((norms / top) ** (2.0 / (self.p + 1.0)))

    def model_step(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        if self.p == np.inf:  # energies are never negative, whatever the model is far from eta
            return self.start(len(h))
        return super().model_step(eta, h, H)

    def _minimise_model(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        if self.p == 1.0:
            return capped_simplex_step_at_most(eta, h, H, 1.0)
        x = np.zeros_like(h)
        counts = (h > 0.0) | (np.diagonal(H) > 0.0)  # kernels that are zero get no weight
        H, b = H[np.ix_(counts, counts)], (h + H @ eta)[counts]
        # The cap of 1 follows from the norm; it keeps high powers from overflowing on the way.
        inside = 0.9 * self.start(len(b))
        found = interior_point_minimiser(H, b, inside, self._describe, n_constraints=1, upper=1.0)
        # Weights of kernels with some energy are small but never zero: e_m ~ x_m^(p-1).
        nothing = found.at_zero & (b - H @ found.x <= 0.0)
        x[counts] = np.where(nothing, 0.0, found.x / max(_norm(found.x, self.p), 1.0))
        return x

    def _describe(self, x: Vector, multipliers: Vector) -> Description:
        slope = x ** (self.p - 1.0)
        excess = (float(slope @ x) - 1.0) / self.p
        curvature = (self.p - 1.0) * multipliers[0] * slope / x
        return Description(np.zeros_like(x), np.array([excess]), slope[None, :], curvature)

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        if not self.p >= 1.0:
            raise ValueError(
                f"LpBall needs 1 <= p <= inf, got p={self.p}; p=1 gives the simplex's solutions."
            )

    def scaled(self, eta: Vector) -> Vector:
        return eta / (_norm(eta, self.p) or 1.0)


def _norm(x: Vector, p: float) -> float:
    """Return the p-norm of x >= 0 without overflow."""
    top = float(x.max())
    return top * float(np.sum((x / top) ** p)) ** (1.0 / p) if top > 0.0 and p < np.inf else top
