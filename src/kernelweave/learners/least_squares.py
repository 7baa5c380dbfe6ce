"""What the learners of the square loss share: one linear system, several targets at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.learners.base import Learner
from kernelweave.learners.ridge import Factor, Ridge, RidgeSolution, product

# Rounds that refine a solution by its residual: one is enough unless the factor needed a ridge of its own.
ROUNDS = 5


class LeastSquares(Learner, ABC):
    r"""A learner whose loss is a square: ½||f||² + Σ_i (s_i − f_i − b)² / (2 d_i).

    Its dual is s'v − ½v'diag(d)v − ½v'Kv over all v (that sum to zero, with a bias): a linear system. Several
    columns of y are several targets on one kernel and share the factor.
    """

    streams_from = 5_001
    held_matrices = 1  # the factor

    @property
    def has_bias(self) -> bool:
        return True

    def check(self, y: AnyArray, weight: Vector) -> None:
        self.ridge(_as_columns(y), weight)

    def for_columns(self) -> Self:
        return self

    @abstractmethod
    def ridge(self, Y: Matrix, weight: Vector) -> Ridge:
        """Return the linear system of these targets and sample weights."""

    def intercept(self, F: Matrix, Y: Matrix, weight: Vector, ridge: Ridge) -> Vector:  # noqa: ARG002
        """Return what is added to the decision values F of every target."""
        return np.asarray(ridge.bias(F) + ridge.centre)

    def scale(self) -> float:
        """Return the size of decision values that is reported as 1."""
        return 1.0

    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,  # noqa: ARG002 - a linear system needs no start
        tol: float = 1e-3,
    ) -> RidgeSolution:
        Y, weight = _as_columns(y), _weights(y, weight)
        ridge = self.ridge(Y, weight)
        factor = ridge.factor(K)
        V = np.zeros_like(Y)
        F = np.zeros_like(Y)
        for _ in range(ROUNDS):
            V = V + factor.solve(ridge.residual(V, F))
            F = product(K, V)
            inner = self._solution(y, ridge, V, F, weight, factor)
            if inner.relative_gap <= tol:
                break
        return inner

    def measure(
        self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None
    ) -> RidgeSolution:
        Y, weight = _as_columns(y), _weights(y, weight)
        return self._solution(y, self.ridge(Y, weight), _as_columns(coef), _as_columns(f), weight, None)

    def _solution(
        self, y: AnyArray, ridge: Ridge, V: Matrix, F: Matrix, weight: Vector, factor: Factor | None
    ) -> RidgeSolution:
        errors, used = ridge.errors(F), ridge.used
        slopes = errors / ridge.d[used, None]
        shape = np.shape(y)[1:]
        return RidgeSolution(
            coef=V.reshape(np.shape(y)),
            intercept=self.intercept(F, _as_columns(y), weight, ridge).reshape(shape),
            margin=np.ones(shape),
            g=ridge.gain(V),
            quadratic=float(np.sum(V * F)),
            loss=float(0.5 * np.sum(errors * slopes)),
            gradient_bound=float(np.linalg.norm(slopes)),
            curvature_bound=float(1.0 / ridge.d[used].min()),
            programs=(),
            scale=np.full(shape, self.scale()),
            ridge=ridge,
            factors=[] if factor is None else [factor],
            bias=np.asarray(ridge.bias(F) + ridge.centre).reshape(shape),
        )


def _as_columns(y: AnyArray) -> Matrix:
    y = np.asarray(y, dtype=np.float64)
    return y.reshape(y.shape[0], -1)


def _weights(y: AnyArray, weight: Vector | None) -> Vector:
    return np.ones(len(y)) if weight is None else weight
