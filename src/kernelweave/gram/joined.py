"""Several stacks as one: each kernel is held the way that suits it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.low_rank import LowRankGrams
from kernelweave.gram.protocol import GramStack, KnowsRounding, StoredStack, images_at


@dataclass(frozen=True)
class JoinedGrams:
    """Stacks of the same samples side by side; ``places`` says which kernels each of them holds.

    The first may be of any kind, the others have to be able to add to its combined matrix.
    """

    first: StoredStack
    others: Sequence[LowRankGrams]
    places: Sequence[Indices]
    n_threads: int = 1
    _stacks: tuple[GramStack, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_stacks", (self.first, *self.others))

    @property
    def n_kernels(self) -> int:
        return sum(place.size for place in self.places)

    @property
    def n_samples(self) -> int:
        return self.first.n_samples

    @cached_property
    def sizes(self) -> Vector:
        return self._gathered([stack.sizes for stack in self._stacks])

    @property
    def errors(self) -> Vector:
        return self._gathered([stack.errors for stack in self._stacks])

    @cached_property
    def shifts(self) -> Matrix:
        return self._gathered([stack.shifts for stack in self._stacks])

    @property
    def is_rounded(self) -> bool:
        return any(stack.is_rounded for stack in self._stacks)

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        K = self.first.combine(eta[self.places[0]], out)
        for stack, place in zip(self.others, self.places[1:], strict=True):
            stack.add(eta[place], K)
        _core.mirror(K, self.n_threads)
        return K

    def sample(self, rows: Indices) -> JoinedGrams:
        """Return the kernels of these samples alone; rows ascend."""
        others = [stack.sample(rows) for stack in self.others]
        return replace(self, first=self.first.sample(rows), others=others)

    def images(self, coef: AnyArray) -> AnyArray:
        return self._gathered([stack.images(coef) for stack in self._stacks])

    def images_at(self, coef: AnyArray, where: AnyArray) -> AnyArray:
        return self._gathered([images_at(stack, coef, where) for stack in self._stacks])

    def energies(self, coef: AnyArray) -> Vector:
        return self._gathered([stack.energies(coef) for stack in self._stacks])

    def image_within(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        image, reach = np.zeros(coef.shape), np.zeros(coef.shape)
        for stack, place in zip(self._stacks, self.places, strict=True):
            if not isinstance(stack, KnowsRounding):
                return np.full(coef.shape, np.nan), np.full(coef.shape, np.inf)
            part, error = stack.image_within(eta[place], coef)
            image += part
            reach += error
        return image, reach

    def energy_errors(self, coef: AnyArray) -> Vector:
        return self._gathered(
            [
                stack.energy_errors(coef) if isinstance(stack, KnowsRounding) else np.full(place.size, np.inf)
                for stack, place in zip(self._stacks, self.places, strict=True)
            ]
        )

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:
        offsets = [
            stack.offset(eta[place], coef) for stack, place in zip(self._stacks, self.places, strict=True)
        ]
        return np.asarray(sum(offsets))

    def _gathered(self, values: Sequence[AnyArray]) -> AnyArray:
        out = np.empty((self.n_kernels, *values[0].shape[1:]))
        for place, value in zip(self.places, values, strict=True):
            out[place] = value
        return out
