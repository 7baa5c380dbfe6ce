"""Several stacks as one: each kernel is held the way that suits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.lowrank.low_rank import LowRankGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.storage import Storage


@dataclass(frozen=True)
class JoinedGrams:
    """Two stacks of the same samples side by side; ``places`` says which kernels each of them holds.

    The second one adds to the combined matrix of the first.
    """

    first: GramStack
    second: LowRankGrams
    places: tuple[Indices, Indices]
    n_threads: int = 1

    @property
    def n_kernels(self) -> int:
        return sum(place.size for place in self.places)

    @property
    def n_samples(self) -> int:
        return self.first.n_samples

    @cached_property
    def sizes(self) -> Vector:
        return self._gathered([self.first.sizes, self.second.sizes])

    @property
    def errors(self) -> Vector:
        return self._gathered([self.first.errors, self.second.errors])

    @cached_property
    def shifts(self) -> Matrix:
        return self._gathered([self.first.shifts, self.second.shifts])

    @property
    def is_rounded(self) -> bool:
        return True

    @property
    def storage(self) -> Storage:
        parts = [self.first.storage, self.second.storage]
        return Storage("; ".join(part.how for part in parts), max(part.error for part in parts))

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        K = self.first.combine(eta[self.places[0]], out)
        self.second.add(eta[self.places[1]], K)
        _core.mirror(K, self.n_threads)
        return K

    def energies(self, coef: AnyArray) -> Vector:
        return self._gathered([self.first.energies(coef), self.second.energies(coef)])

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:
        return self._gathered([self.first.matvecs(coef, needed), self.second.matvecs(coef, needed)])

    def matvec_with_error(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        one, error_of_one = self.first.matvec_with_error(eta[self.places[0]], coef)
        other, error_of_other = self.second.matvec_with_error(eta[self.places[1]], coef)
        return one + other, error_of_one + error_of_other

    def energy_errors(self, coef: AnyArray) -> Vector:
        return self._gathered([self.first.energy_errors(coef), self.second.energy_errors(coef)])

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        one, other = (eta[place] for place in self.places)
        return np.asarray(self.first.offset(one, coef) + self.second.offset(other, coef))

    def sample(self, rows: Indices) -> JoinedGrams:
        return replace(self, first=self.first.sample(rows), second=self.second.sample(rows))

    def subset(self, which: Indices) -> GramStack:
        for place, part in zip(self.places, (self.first, self.second), strict=True):
            if np.isin(which, place).all():  # the other one would be left with nothing
                return part.subset(_positions(which, place))
        held = [np.flatnonzero(np.isin(place, which)) for place in self.places]
        one, other = (_positions(place[own], which) for place, own in zip(self.places, held, strict=True))
        first, second = self.first.subset(held[0]), self.second.subset(held[1])
        return replace(self, first=first, second=second, places=(one, other))

    def _gathered(self, values: Sequence[AnyArray]) -> AnyArray:
        out = np.empty((self.n_kernels, *values[0].shape[1:]))
        for place, value in zip(self.places, values, strict=True):
            out[place] = value
        return out


def _positions(kernels: Indices, among: Indices) -> Indices:
    """Return where each of the kernels stands among others."""
    position = {int(m): place for place, m in enumerate(among)}
    return np.array([position[int(m)] for m in kernels], dtype=np.intp)
