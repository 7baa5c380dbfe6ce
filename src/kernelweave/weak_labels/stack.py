"""M kernels times T candidates as a stack of Gram matrices of which none exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.gram.rounding import of_arithmetic
from kernelweave.weak_labels.protocol import Ambiguity, Candidate


@dataclass(frozen=True)
class InputOutputGrams:
    r"""The input-output kernels A(h) K_m A(h)' of every kernel m and its candidates h.

    Held are the M kernels of the points and the candidates; the combined matrix is made in place. Kernel m of
    round t has the place t M + m.

    Parameters
    ----------
    grams : M kernel matrices of the points.
    ambiguity : what candidates mean.
    candidates : for each round one candidate per kernel.

    Notes
    -----
    [Xu14, Def. 4.7, Eq. (4.1)]. Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.weak_labels import Balanced
    >>> y = np.array([1, -1], dtype=np.int8)
    >>> stack = InputOutputGrams((np.ones((2, 2)),), Balanced(np.array([1.0, 0.0]), 0, 1), ((y,),))
    >>> stack.combine(np.array([0.5]))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])

    """

    grams: Sequence[Matrix]
    ambiguity: Ambiguity
    candidates: Sequence[Sequence[Candidate]]
    n_threads: int = 1

    @property
    def n_kernels(self) -> int:
        return len(self.grams) * len(self.candidates)

    @property
    def n_samples(self) -> int:
        return self.ambiguity.n_samples

    @property
    def sizes(self) -> Vector:
        # A sample is a mean of signed points: no longer than the longest of them.
        return np.tile([float(np.diagonal(K).max()) for K in self.grams], len(self.candidates))

    @property
    def errors(self) -> Vector:
        return of_arithmetic(self.sizes, self.ambiguity.n_points)

    @property
    def shifts(self) -> Matrix:
        return np.zeros((self.n_kernels, self.n_samples))

    @property
    def is_rounded(self) -> bool:
        return False

    def combine(self, eta: Vector, out: AnyArray | None = None) -> AnyArray:
        Q = np.zeros((self.n_samples, self.n_samples)) if out is None else out
        Q.fill(0.0)
        weights = eta.reshape(len(self.candidates), len(self.grams))
        for m, K in enumerate(self.grams):
            self.ambiguity.add(K, [row[m] for row in self.candidates], weights[:, m], Q)
        return Q

    def images(self, coef: AnyArray) -> AnyArray:
        columns = coef.reshape(self.n_samples, -1)
        parts = np.stack([self._images(np.ascontiguousarray(column)) for column in columns.T], axis=-1)
        return parts.reshape(self.n_kernels, *coef.shape)

    def energies(self, coef: AnyArray) -> Vector:
        return np.asarray(0.5 * self.images(coef).reshape(self.n_kernels, -1) @ coef.ravel())

    def offset(self, eta: Vector, coef: AnyArray) -> AnyArray:  # noqa: ARG002 - nothing was centred
        return np.zeros(coef.shape[1:])

    def point_coefficients(self, eta: Vector, alpha: Vector) -> Matrix:
        """Return, per kernel, Σ_t eta_mt A(h_mt)'α: the classifier's coefficients on the points."""
        weights = eta.reshape(len(self.candidates), len(self.grams))
        c = np.zeros((len(self.grams), self.ambiguity.n_points))
        for row, weight in zip(self.candidates, weights, strict=True):
            for m, candidate in enumerate(row):
                if weight[m]:
                    c[m] += weight[m] * self.ambiguity.spread(candidate, alpha)
        return c

    def _images(self, alpha: Vector) -> Matrix:
        images = np.empty((len(self.candidates), len(self.grams), self.n_samples))
        for m, K in enumerate(self.grams):
            mine = [row[m] for row in self.candidates]
            values = K @ np.column_stack([self.ambiguity.spread(h, alpha) for h in mine])
            for t, candidate in enumerate(mine):
                images[t, m] = self.ambiguity.gather(candidate, np.ascontiguousarray(values[:, t]))
        return images.reshape(self.n_kernels, self.n_samples)
