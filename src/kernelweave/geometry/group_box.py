"""Groups of kernels with capped norms: group sparsity with a soft margin."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.geometry._projections import (
    capped_maximizer_at_most,
    capped_projection_at_most,
    capped_reweight_at_most,
)
from kernelweave.geometry._qp import Description, capped_simplex_step_at_most, interior_point_minimiser
from kernelweave.geometry.base import FEASIBILITY_SLACK, Geometry, cap_grid, is_nonnegative


@dataclass
class GroupBox(Geometry):
    r"""Indicator of the 2,1-norm ball of grouped weights, each group's norm capped.

    {eta >= 0, sum_t ||eta_t||_2 <= 1, ||eta_t||_2 <= theta}

    Parameters
    ----------
    groups : sequence of labels or None
        One label per kernel; equal labels form a group. None makes each kernel its own group.
    theta : float
        The cap on a group's norm, positive; 1 or more is the hard margin.

    Notes
    -----
    IOKL of [Xu14, Eq. (4.3), (4.9)], where group t holds the kernels of candidate labeling t. Block update
    [Xu14, Eq. (4.15), (4.16)] with omega of Algorithm 4: within a group eta ~ ||f||^(2/3), across groups
    the capped simplex on N_t = (sum ||f||^(4/3))^(3/4). The support function is that of the capped simplex
    on the norms ||h_t||_2.
    Symbols: d_{m,t} -> eta, e_t -> a group's norm, T -> the number of groups.
    Differs from the paper: norms may be zero. Groups without any share the mass the others cannot take,
    evenly.

    Examples
    --------
    >>> import numpy as np
    >>> GroupBox(groups=["a", "a", "b"], theta=0.6).maximizer(np.array([3.0, 4.0, 1.0]))
    array([0.36, 0.48, 0.4 ])

    """

    groups: Sequence[Hashable] | None = None
    theta: float = 1.0

    tunable = "theta"

    def grid(self, n_kernels: int) -> tuple[float, ...]:
        return cap_grid(int(self._index(n_kernels).max()) + 1)

    def contains(self, eta: Vector) -> bool:
        lengths = self._lengths(eta)
        fits = lengths.sum() <= 1.0 + FEASIBILITY_SLACK and lengths.max() <= self.theta + FEASIBILITY_SLACK
        return is_nonnegative(eta) and bool(fits)

    def maximizer(self, h: Vector) -> Vector:
        gain = np.maximum(h, 0.0)
        lengths = self._lengths(gain)
        # A group without gain moves along its kernels of energy 0, and stays put without those.
        idle = (h == 0.0) & (lengths[self._index(len(h))] == 0.0)
        return self._directed(np.where(idle, 1.0, gain), capped_maximizer_at_most(lengths, self.theta))

    def start(self, n_kernels: int) -> Vector:
        ones = np.ones(n_kernels)
        n_groups = len(self._lengths(ones))
        return self._directed(ones, np.full(n_groups, min(self.theta, 1.0 / n_groups)))

    def project(self, z: Vector) -> Vector:
        positive = np.maximum(z, 0.0)
        return self._directed(positive, capped_projection_at_most(self._lengths(positive), self.theta))

    def reweight(self, norms: Vector) -> Vector:
        direction = (norms / (norms.max() or 1.0)) ** (2.0 / 3.0)
        lengths = self._lengths(direction)
        even = lengths[self._index(len(norms))] == 0.0
        shares = capped_reweight_at_most(lengths**1.5, self.theta)
        return self._directed(np.where(even, 1.0, direction), shares)

    def _minimise_model(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        n, index = len(h), self._index(len(h))
        if index.max() + 1 == n:  # single kernels: a capped simplex
            return capped_simplex_step_at_most(eta, h, H, self.theta)
        return self.project(_minimise_on_groups(H, h + H @ eta, index, self.theta))

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        if not self.theta > 0.0:
            raise ValueError(f"GroupBox needs theta > 0, got theta={self.theta}; theta=1 is the hard margin.")
        if self.groups is not None and len(self.groups) != n_kernels:
            raise ValueError(
                f"GroupBox needs one group label per kernel, got {len(self.groups)} labels for "
                f"{n_kernels} kernels; groups=None makes each kernel its own group."
            )

    def _index(self, n_kernels: int) -> Indices:
        """Return the number of each kernel's group."""
        if self.groups is None:
            return np.arange(n_kernels)
        numbers: dict[Hashable, int] = {}
        return np.array([numbers.setdefault(label, len(numbers)) for label in self.groups], dtype=np.intp)

    def _lengths(self, eta: Vector) -> Vector:
        """Return the 2-norm of each group."""
        scale = float(np.abs(eta).max()) or 1.0  # squares of tiny or huge energies leave the range of floats
        return scale * np.sqrt(np.bincount(self._index(len(eta)), (eta / scale) ** 2))

    def _directed(self, direction: Vector, lengths: Vector) -> Vector:
        """Return the weights with this direction in each group and these group norms."""
        now = self._lengths(direction)
        factors = np.divide(lengths, now, out=np.zeros_like(now), where=now > 0.0)
        return direction * factors[self._index(len(direction))]


def _minimise_on_groups(H: Matrix, b: Vector, index: Indices, theta: float) -> Vector:
    """Return argmin of x'Hx/2 - b'x over {x >= 0, sum_t ||x_t|| <= 1, ||x_t|| <= theta}.

    Notes
    -----
    The norm of a group is not smooth at 0, where most groups end. With e_t >= ||x_t|| as a variable the
    constraint ||x_t||^2 / e_t <= e_t is smooth and convex wherever e_t > 0. The second derivative of its
    left-hand side along (dx, de) is (2/e_t) ||dx - (x_t/e_t) de||^2.

    """
    n, n_groups = len(b), int(index.max()) + 1
    kernels, groups = np.arange(n), np.arange(n_groups)
    lifted = np.zeros((n + n_groups, n + n_groups))
    lifted[:n, :n] = H

    def describe(y: Vector, multipliers: Vector) -> Description:
        x, e = y[:n], y[n:]
        directions = np.zeros((n_groups, n))
        directions[index, kernels] = x / e[index]
        squares = (directions**2).sum(axis=1)  # ||x_t||^2 / e_t^2
        gradients = np.zeros((n_groups + 1, n + n_groups))
        gradients[:n_groups, :n] = 2.0 * directions
        gradients[groups, n + groups] = -squares - 1.0
        gradients[n_groups, n:] = 1.0
        curvature = np.zeros_like(lifted)
        bends = 2.0 * multipliers[:n_groups] / e
        curvature[kernels, kernels] = bends[index]
        curvature[n:, :n] = -bends[:, None] * directions
        curvature[:n, n:] = curvature[n:, :n].T
        curvature[n + groups, n + groups] = bends * squares
        constraints = np.append(e * (squares - 1.0), e.sum() - 1.0)
        return Description(np.zeros_like(y), constraints, gradients, curvature)

    e = np.full(n_groups, 0.8 * min(theta, 1.0 / n_groups))
    x = 0.9 * (e / np.sqrt(np.bincount(index)))[index]
    upper = np.append(np.full(n, np.inf), np.full(n_groups, theta if theta < 1.0 else np.inf))
    found = interior_point_minimiser(
        lifted,
        np.append(b, np.zeros(n_groups)),
        np.append(x, e),
        describe,
        n_constraints=n_groups + 1,
        upper=upper,
    )
    return np.where(found.at_zero, 0.0, found.x)[:n]
