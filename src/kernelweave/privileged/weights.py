"""The weights of both spaces as one vector in a product of two sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Vector
from kernelweave.geometry import Geometry


@dataclass(frozen=True)
class BothGeometries(Geometry):
    r"""Ω(η) + Ω*(ν) of the decision weights η, the first ``split`` entries, and the privileged weights ν.

    Everything a solver asks for falls into the two parts but the quadratic model, whose curvature couples
    them: an α moves both energies.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.geometry import LpBall, Simplex
    >>> both = BothGeometries(Simplex(), LpBall(2.0), split=2)
    >>> both.start(3)
    array([0.5, 0.5, 1. ])
    >>> both.conjugate(np.array([1.0, 3.0, 2.0]))
    5.0

    """

    decision: Geometry
    privileged: Geometry
    split: int

    def contains(self, eta: Vector) -> bool:
        return all(geometry.contains(part) for geometry, part in self._parts(eta))

    def penalty(self, eta: Vector) -> float:
        return sum(geometry.penalty(part) for geometry, part in self._parts(eta))

    def conjugate(self, h: Vector) -> float:
        return sum(geometry.conjugate(part) for geometry, part in self._parts(h))

    def maximizer(self, h: Vector) -> Vector:
        return self._join(lambda geometry, part: geometry.maximizer(part), h)

    def project(self, z: Vector) -> Vector:
        return self._join(lambda geometry, part: geometry.project(part), z)

    def prox(self, z: Vector, step: float) -> Vector:
        return self._join(lambda geometry, part: geometry.prox(part, step), z)

    def reweight(self, norms: Vector) -> Vector:
        return self._join(lambda geometry, part: geometry.reweight(part), norms)

    def start(self, n_kernels: int) -> Vector:
        counts = self._counts(n_kernels)
        parts = [geometry.start(count) for geometry, count in counts if count]
        return np.concatenate(parts)

    def check(self, n_kernels: int) -> None:
        for geometry, count in self._counts(n_kernels):
            if count:
                geometry.check(count)

    def _counts(self, n_kernels: int) -> list[tuple[Geometry, int]]:
        return [(self.decision, self.split), (self.privileged, n_kernels - self.split)]

    def _parts(self, x: Vector) -> list[tuple[Geometry, Vector]]:
        parts = [(self.decision, x[: self.split]), (self.privileged, x[self.split :])]
        return [(geometry, part) for geometry, part in parts if part.size]

    def _join(self, verb: Callable[[Geometry, Vector], Vector], x: Vector) -> Vector:
        return np.concatenate([verb(geometry, part) for geometry, part in self._parts(x)])
