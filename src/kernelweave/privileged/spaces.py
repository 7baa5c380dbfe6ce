"""The kernels of the decision space and of the privileged space as one stack."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.protocol import GramStack


@dataclass(frozen=True)
class TwoSpaces:
    """Kernels K_1 .. K_M, then K*_1/λ .. K*_L/λ, on coefficients with the columns v and e.

    ``places`` are the samples the privileged kernels know, all in order if they know all. A combination is
    one array (2, n, n): K(η) and K*(ν)/λ, with zeros for samples without privileged features.
    """

    decision: GramStack = field(repr=False)
    privileged: GramStack | None = field(repr=False)
    places: Indices = field(repr=False)
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
    def shifts(self) -> Matrix:
        return np.zeros((self.n_kernels, self.n_samples))

    @property
    def is_rounded(self) -> bool:
        return self.decision.is_rounded or (self.privileged is not None and self.privileged.is_rounded)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        both = np.zeros((2, self.n_samples, self.n_samples)) if out is None else out
        self.decision.combine(eta[: self.decision.n_kernels], both[0])
        if self.privileged is None:
            return both
        nu = eta[self.decision.n_kernels :] / self.lam
        if self.places.size == self.n_samples:
            self.privileged.combine(nu, both[1])
        else:
            both[1][np.ix_(self.places, self.places)] = self.privileged.combine(nu)
        return both

    def images(self, coef: AnyArray) -> AnyArray:
        out = np.zeros((self.n_kernels, self.n_samples, 2))
        split = self.decision.n_kernels
        out[:split, :, 0] = self.decision.images(np.ascontiguousarray(coef[:, 0]))
        if self.privileged is not None:
            out[split:, self.places, 1] = self.privileged.images(coef[self.places, 1]) / self.lam
        return out

    def energies(self, coef: AnyArray) -> Vector:
        h = self.decision.energies(np.ascontiguousarray(coef[:, 0]))
        if self.privileged is None:
            return h
        return np.concatenate([h, self.privileged.energies(coef[self.places, 1]) / self.lam])

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:  # noqa: ARG002 - nothing is centred
        return np.zeros(coef.shape[1:])

    def _joined(self, first: Vector, second: Vector | None) -> Vector:
        return first if second is None else np.concatenate([first, second / self.lam])
