"""What the solvers may ask of a geometry, one protocol per need."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from kernelweave._typing import Matrix, Vector


@runtime_checkable
class WeightGeometry(Protocol):
    """A convex function Omega of the kernel weights: enough to certify any point.

    Omega is r inside the set and infinite outside; r is zero for the plain sets.
    """

    def value(self, eta: Vector) -> float:
        """Return Omega(eta): the penalty inside the set, infinity outside."""
        ...

    def conjugate(self, h: Vector) -> float:
        """Return Omega*(h), the maximum of <eta, h> - Omega(eta)."""
        ...

    def maximizer(self, h: Vector) -> Vector:
        """Return a point that reaches the conjugate; ties share their mass evenly."""
        ...

    def start(self, n_kernels: int) -> Vector:
        """Return the even weights a solver starts from."""
        ...

    def check(self, n_kernels: int) -> None:
        """Raise ValueError when the parameters are illegal or do not fit this many kernels."""
        ...


@runtime_checkable
class Projects(Protocol):
    """A geometry with a Euclidean projection: what gradient steps need."""

    def project(self, z: Vector) -> Vector:
        """Return the point of the set nearest to z; the penalty is ignored."""
        ...

    def prox(self, z: Vector, step: float) -> Vector:
        """Return argmin of ||eta - z||^2 / 2 + step r(eta) over the set."""
        ...


@runtime_checkable
class Reweights(Protocol):
    """A geometry with a block update: what block coordinate descent needs."""

    def reweight(self, norms: Vector) -> Vector:
        """Return argmin of sum_m norms_m^2 / (2 eta_m) + r(eta) over the set, with 0/0 = 0."""
        ...


@runtime_checkable
class Scales(Protocol):
    """A ball: weights in whatever proportion have a multiple on its boundary."""

    @property
    def settles_quickly(self) -> bool:
        """Whether alternating with the block update takes only a few steps to three digits."""
        ...

    def scaled(self, eta: Vector) -> Vector:
        """Return the multiple of eta >= 0 on the boundary; zero stays zero."""
        ...


@runtime_checkable
class Models(Protocol):
    """A geometry that minimises a quadratic model: what Newton's method needs."""

    def model_step(self, eta: Vector, h: Vector, H: Matrix) -> Vector:
        """Return argmin of r(x) - <h, x - eta> + (x - eta)'H(x - eta) / 2 over the set."""
        ...


@runtime_checkable
class Reduces(Protocol):
    """A geometry whose weights sum to one and are otherwise only nonnegative: what SimpleMKL needs."""

    def reduced_direction(self, eta: Vector, gradient: Vector) -> Vector:
        """Return a descent direction that keeps the sum and pushes no zero weight below zero."""
        ...


@runtime_checkable
class Restricts(Protocol):
    """A geometry that leaves most kernels at zero: what column generation needs."""

    def restricted(self, n_kernels: int) -> WeightGeometry:
        """Return the geometry of some of ``n_kernels`` kernels while the others stay at zero."""
        ...

    def fewest(self, n_kernels: int) -> int:
        """Return the least number of kernels in use."""
        ...


@runtime_checkable
class Polyhedral(Protocol):
    """A geometry made of linear constraints, sum eta = 1 among them: what a linear master problem needs."""

    def linear_bounds(self, n_kernels: int) -> list[tuple[float, float]]:
        """Return the lower and upper bound of every weight."""
        ...
