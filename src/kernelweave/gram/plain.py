"""What stacks share that are neither centred nor rounded."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.errors import IncompatiblePartsError
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.rounding import arithmetic_errors
from kernelweave.gram.storage import Storage, kernels_in_words


class PlainGrams:
    """A stack of float64 matrices as they are: subclasses bring shape, sizes, `combine` and `matvecs`."""

    @property
    def is_rounded(self) -> bool:
        return False

    @property
    def n_threads(self) -> int:
        return 1

    @property
    def errors(self: GramStack) -> Vector:
        return arithmetic_errors(self.sizes, self.n_samples)

    @property
    def shifts(self: GramStack) -> Matrix:
        return np.zeros((self.n_kernels, self.n_samples))

    @property
    def storage(self: GramStack) -> Storage:
        return Storage(f"{kernels_in_words(self.n_kernels)} in {type(self).__name__}", 0.0)

    def energies(self: GramStack, coef: AnyArray, which: Indices | None = None) -> Vector:
        every = np.asarray(0.5 * self.matvecs(coef).reshape(self.n_kernels, -1) @ coef.ravel())
        return every if which is None else every[which]

    def matvec_with_error(self: GramStack, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        return np.tensordot(eta, self.matvecs(coef), axes=1), np.zeros(coef.shape)

    def energy_errors(self: GramStack, coef: AnyArray) -> Vector:  # noqa: ARG002
        return np.zeros(self.n_kernels)

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:  # noqa: ARG002
        return np.zeros(coef.shape[1:])

    def sample(self, rows: Indices) -> GramStack:  # noqa: ARG002
        raise IncompatiblePartsError(f"{type(self).__name__} has no subsamples; give a solver by name.")

    def subset(self, which: Indices) -> GramStack:  # noqa: ARG002
        raise IncompatiblePartsError(f"{type(self).__name__} cannot be split, use Newton() to solve on it.")
