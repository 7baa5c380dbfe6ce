"""The base of every geometry: what follows from the set and its penalty alone."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from kernelweave._part import Part
from kernelweave._typing import Matrix, Vector
from kernelweave.geometry._proximal import is_solved, minimise_model, polish

# Weights this far outside the set still count as inside: room for the rounding of M additions.
FEASIBILITY_SLACK = 1e-9
# How many values of a parameter a search tries if it is not told which.
GRID_SIZE = 5
# The soft penalties have no natural scale, so theta is tried in powers of ten.
SOFT_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)


class Geometry(Part, ABC):
    """A convex function of the kernel weights: a set, and a penalty r on it.

    A subclass says what its set contains and how to answer `maximizer`, `start`, `project` and
    `reweight`; one with a penalty also overrides `penalty` and `prox`.
    """

    @property
    def settles_quickly(self) -> bool:
        """Whether alternating with `reweight` takes only a few steps to three digits."""
        return False

    @property
    def tunable(self) -> str | None:
        """The parameter a search varies if it is not told another; None if there is nothing to vary."""
        return None

    def grid(self, n_kernels: int) -> tuple[float, ...]:  # noqa: ARG002 - for the geometries that vary
        """Return values of `tunable` worth trying, from even weights towards few kernels."""
        return ()

    @abstractmethod
    def contains(self, eta: Vector) -> bool:
        """Tell whether eta lies in the set, up to `FEASIBILITY_SLACK`."""

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

    def penalty(self, eta: Vector) -> float:  # noqa: ARG002 - for the geometries that have one
        """Return r(eta), wherever eta lies."""
        return 0.0

    def value(self, eta: Vector) -> float:
        """Return r(eta) inside the set, infinity outside."""
        return self.penalty(eta) if self.contains(eta) else np.inf

    def conjugate(self, h: Vector) -> float:
        """Return the maximum of <eta, h> - r(eta) over the set."""
        eta = self.maximizer(h)
        return float(eta @ h) - self.penalty(eta)

    def prox(self, z: Vector, step: float) -> Vector:  # noqa: ARG002 - there is no penalty to weigh
        """Return argmin of ||eta - z||^2 / 2 + step r(eta) over the set."""
        return self.project(z)

    def model_step(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        """Return argmin of r(x) - <h, x - eta> + (x - eta)'H(x - eta) / 2 over the set."""
        if is_solved(self, eta, eta, h, H):
            return eta.copy()
        near = self.near_minimiser(eta, h, H)
        return minimise_model(self, eta, eta, h, H) if near is None else polish(self, near, eta, h, H)

    def near_minimiser(self, eta: Vector, h: Vector, H: Matrix) -> Vector | None:  # noqa: ARG002 - a hook
        """Return a point of the set near the model's minimiser, if that is cheaper than proximal steps."""
        return None

    def check(self, n_kernels: int) -> None:
        """Raise ValueError when the parameters are illegal or do not fit this many kernels."""
        if n_kernels < 1:
            raise ValueError(f"{type(self).__name__} weighs at least 1 kernel, got {n_kernels}.")


def even_to_one(n_parts: int) -> tuple[float, ...]:
    """Return caps in equal ratios from 1/n, where n parts share evenly, to 1, where one may take all."""
    return tuple(np.geomspace(1.0 / n_parts, 1.0, GRID_SIZE).tolist()) if n_parts > 1 else (1.0,)


def is_nonnegative(eta: Vector) -> bool:
    """Tell whether no weight is negative beyond rounding (NaN counts as negative)."""
    return bool(eta.min() >= -FEASIBILITY_SLACK)
