"""What a geometry is: a convex set of kernel weights, with a penalty on it, and what solvers need of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import numpy as np

from kernelweave._part import Part
from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.geometry._qp import is_model_minimiser, proximal_steps

# Weights this far outside the set still count as inside: room for the rounding of M additions.
FEASIBILITY_SLACK = 1e-9


class Geometry(Part, ABC):
    r"""A convex function Omega of the kernel weights: the penalty r on a set, infinity outside.

    A subclass defines what its set contains, and `maximizer`, `start`, `project` and `reweight`; one with a
    penalty also overrides `penalty` and `prox`. Everything else follows from these, and every solver but two
    accepts it: `ReducedGradient` needs a `ReducedDirection`, `ColumnGeneration` a geometry that
    `SupportsWorkingSet`.
    """

    # ------------------------------------------------------------------------- what a subclass brings

    @abstractmethod
    def contains(self, eta: Vector) -> bool:
        """Return whether eta lies in the set, up to `FEASIBILITY_SLACK`."""

    @abstractmethod
    def maximizer(self, h: Vector) -> Vector:
        """Return a point that reaches the conjugate; ties share their mass evenly."""

    @abstractmethod
    def start(self, n_kernels: int) -> Vector:
        """Return the even weights a solver starts from."""

    @abstractmethod
    def project(self, z: Vector) -> Vector:
        """Return the point of the set nearest to z; the penalty is ignored."""

    @abstractmethod
    def reweight(self, norms: Vector) -> Vector:
        """Return argmin of sum_m norms_m^2 / (2 eta_m) + r(eta) over the set, with 0/0 = 0."""

    # ------------------------------------------------------------- what a subclass with a penalty overrides

    def penalty(self, eta: Vector) -> float:  # noqa: ARG002 - for the geometries that have one
        """Return r(eta), wherever eta lies."""
        return 0.0

    def prox(self, z: Vector, step: float) -> Vector:  # noqa: ARG002 - there is no penalty to weigh
        """Return argmin of ||eta - z||^2 / 2 + step r(eta) over the set."""
        return self.project(z)

    # -------------------------------------------------------------------------------- what follows

    def value(self, eta: Vector) -> float:
        """Return Omega(eta): the penalty inside the set, infinity outside."""
        return self.penalty(eta) if self.contains(eta) else np.inf

    def conjugate(self, h: Vector) -> float:
        """Return Omega*(h), the maximum of <eta, h> - r(eta) over the set."""
        eta = self.maximizer(h)
        return float(eta @ h) - self.penalty(eta)

    def model_step(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        """Return argmin of r(x) - <h, x - eta> + (x - eta)'H(x - eta) / 2 over the set."""
        return eta.copy() if is_model_minimiser(self, eta, eta, h, H) else self._minimise_model(eta, h, H)

    def _minimise_model(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        """Return the minimiser of a model that eta does not minimise; for sets with a shorter way."""
        return proximal_steps(self, eta, h, H)

    def of_kernels(self, which: Indices) -> Geometry:  # noqa: ARG002 - for those that know kernels by their place
        """Return the geometry of these kernels alone, the others being gone."""
        return self

    def check(self, n_kernels: int) -> None:
        """Raise ValueError when the parameters are illegal or do not fit this many kernels."""
        if n_kernels < 1:
            raise ValueError(f"{type(self).__name__} weighs at least 1 kernel, got {n_kernels}.")

    # ----------------------------------------------------------------------- hints for those who choose

    @property
    def fast_block_update(self) -> bool:
        """Whether alternating with `reweight` takes only a few steps to three digits."""
        return False

    @property
    def fast_model_step(self) -> bool:
        """Whether `model_step` has a closed form of active sets: then solving a model again costs little."""
        return False

    @property
    def tunable(self) -> str | None:
        """The parameter a search varies unless it is given another; None if there is nothing to vary."""
        return None

    def grid(self, n_kernels: int) -> tuple[float, ...]:  # noqa: ARG002 - for the geometries that vary
        """Return values of `tunable` worth trying, from even weights towards few kernels."""
        return ()


@runtime_checkable
class ReducedDirection(Protocol):
    """A geometry whose weights sum to one and are otherwise only nonnegative: what SimpleMKL needs."""

    def reduced_direction(self, eta: Vector, gradient: Vector) -> Vector:
        """Return a descent direction that keeps the sum and pushes no zero weight below zero."""
        ...


@runtime_checkable
class SupportsWorkingSet(Protocol):
    """A geometry that leaves most kernels at zero: what column generation needs."""

    def restricted(self, n_kernels: int) -> Geometry:
        """Return the geometry of some of ``n_kernels`` kernels while the others stay at zero."""
        ...

    def min_active(self, n_kernels: int) -> int:
        """Return the least number of kernels with a positive weight."""
        ...


@runtime_checkable
class Polyhedral(Protocol):
    """A geometry made of linear constraints, sum eta = 1 among them: a linear master problem is enough."""

    def linear_bounds(self, n_kernels: int) -> list[tuple[float, float]]:
        """Return the lower and upper bound of every weight."""
        ...


def fenchel_young_gap(geometry: Geometry, eta: Vector, h: Vector) -> float:
    """Return Omega(eta) + Omega*(h) - <eta, h>, the geometry's share of the duality gap.

    It is never negative, and zero exactly where eta maximises <eta, h> - Omega(eta).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.geometry import Simplex, fenchel_young_gap
    >>> fenchel_young_gap(Simplex(), np.array([0.5, 0.5]), np.array([1.0, 3.0]))
    1.0

    """
    return geometry.value(eta) + geometry.conjugate(h) - float(eta @ h)


def is_nonnegative(eta: Vector) -> bool:
    """Return whether no weight is negative beyond rounding (NaN counts as negative)."""
    return bool(eta.min() >= -FEASIBILITY_SLACK)


def has_unit_sum(eta: Vector) -> bool:
    """Return whether the weights sum to one, up to rounding."""
    return abs(float(eta.sum()) - 1.0) <= FEASIBILITY_SLACK


def cap_grid(n_parts: int) -> tuple[float, ...]:
    """Return five caps in equal ratios from 1/n, where n parts share evenly, to 1, where one may take all."""
    return tuple(np.geomspace(1.0 / n_parts, 1.0, 5).tolist()) if n_parts > 1 else (1.0,)
