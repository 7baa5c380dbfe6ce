"""Both spaces of SVM+ as one: their kernels as one stack, their weights as one geometry.

With these the solvers of ordinary multiple kernel learning learn the weights of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import AnyArray, Indices, Vector
from kernelweave.geometry import Geometry
from kernelweave.gram.plain import PlainGrams
from kernelweave.gram.protocol import GramStack


@dataclass(frozen=True)
class TwoSpaces(PlainGrams):
    """Kernels K_1 .. K_M, then K*_1/λ .. K*_L/λ, on coefficients with the columns v and e.

    ``rows`` are the samples with privileged features, in order. A combination is one array (2, n, n): K(η)
    and K*(ν)/λ, with zeros for samples without privileged features.
    """

    decision: GramStack = field(repr=False)
    privileged: GramStack | None = field(repr=False)
    rows: Indices = field(repr=False)
    lam: float

    @property
    def n_kernels(self) -> int:
        return self.decision.n_kernels + (0 if self.privileged is None else self.privileged.n_kernels)

    @property
    def n_samples(self) -> int:
        return self.decision.n_samples

    @property
    def n_threads(self) -> int:
        return self.decision.n_threads

    @property
    def sizes(self) -> Vector:
        return self._joined(self.decision.sizes, None if self.privileged is None else self.privileged.sizes)

    @property
    def errors(self) -> Vector:
        return self._joined(self.decision.errors, None if self.privileged is None else self.privileged.errors)

    @property
    def is_rounded(self) -> bool:
        return self.decision.is_rounded or (self.privileged is not None and self.privileged.is_rounded)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        both = np.zeros((2, self.n_samples, self.n_samples)) if out is None else out
        self.decision.combine(eta[: self.decision.n_kernels], both[0])
        if self.privileged is None:
            return both
        nu = eta[self.decision.n_kernels :] / self.lam
        if self.rows.size == self.n_samples:
            self.privileged.combine(nu, both[1])
        else:
            both[1][np.ix_(self.rows, self.rows)] = self.privileged.combine(nu)
        return both

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:  # noqa: ARG002
        out = np.zeros((self.n_kernels, self.n_samples, 2))
        n_decision = self.decision.n_kernels
        out[:n_decision, :, 0] = self.decision.matvecs(np.ascontiguousarray(coef[:, 0]))
        if self.privileged is not None:
            out[n_decision:, self.rows, 1] = self.privileged.matvecs(coef[self.rows, 1]) / self.lam
        return out

    def energies(self, coef: AnyArray, which: Indices | None = None) -> Vector:
        h = self.decision.energies(np.ascontiguousarray(coef[:, 0]))
        other = None if self.privileged is None else self.privileged.energies(coef[self.rows, 1])
        every = self._joined(h, other)
        return every if which is None else every[which]

    def _joined(self, decision: Vector, privileged: Vector | None) -> Vector:
        return decision if privileged is None else np.concatenate([decision, privileged / self.lam])


@dataclass(frozen=True)
class BothGeometries(Geometry):
    r"""Ω(η) + Ω*(ν) of the decision weights η, the first ``n_decision``, and the privileged weights ν.

    Everything a solver asks for falls into the two parts but the quadratic model, whose curvature couples
    them: an α moves both energies.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.geometry import LpBall, Simplex
    >>> both = BothGeometries(Simplex(), LpBall(2.0), n_decision=2)
    >>> both.start(3)
    array([0.5, 0.5, 1. ])
    >>> both.conjugate(np.array([1.0, 3.0, 2.0]))
    5.0

    """

    decision: Geometry
    privileged: Geometry
    n_decision: int

    def contains(self, eta: Vector) -> bool:
        return all(geometry.contains(part) for geometry, part in self._parts(eta))

    def penalty(self, eta: Vector) -> float:
        return sum(geometry.penalty(part) for geometry, part in self._parts(eta))

    def conjugate(self, h: Vector) -> float:
        return sum(geometry.conjugate(part) for geometry, part in self._parts(h))

    def maximizer(self, h: Vector) -> Vector:
        return self._join(lambda geometry, part: geometry.maximizer(part), h)

    def start(self, n_kernels: int) -> Vector:
        return self._join(lambda geometry, part: geometry.start(len(part)), np.zeros(n_kernels))

    def project(self, z: Vector) -> Vector:
        return self._join(lambda geometry, part: geometry.project(part), z)

    def prox(self, z: Vector, step: float) -> Vector:
        return self._join(lambda geometry, part: geometry.prox(part, step), z)

    def reweight(self, norms: Vector) -> Vector:
        return self._join(lambda geometry, part: geometry.reweight(part), norms)

    def check(self, n_kernels: int) -> None:
        for geometry, part in self._parts(np.zeros(n_kernels)):
            geometry.check(len(part))

    def _parts(self, x: Vector) -> list[tuple[Geometry, Vector]]:
        """Return each geometry with its entries; without privileged features there is only the first."""
        parts = [(self.decision, x[: self.n_decision]), (self.privileged, x[self.n_decision :])]
        return [(geometry, part) for geometry, part in parts if part.size]

    def _join(self, verb: Callable[[Geometry, Vector], Vector], x: Vector) -> Vector:
        return np.concatenate([verb(geometry, part) for geometry, part in self._parts(x)])
