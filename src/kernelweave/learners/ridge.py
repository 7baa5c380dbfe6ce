"""The linear system of the square loss: one Cholesky factor for the coefficients and the curvature."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.learners.solution import InnerSolution

# Relative ridges that are tried when rounding in storage has made K + diag(d) indefinite.
RIDGES = (0.0, 1e-12, 1e-9, 1e-7)
# Columns of a matrix that are copied or solved for at a time.
COLUMNS = 512


@dataclass(frozen=True)
class Ridge:
    """min over V of ½ tr V'(K + diag(d))V − tr S'V, the columns of V summing to zero where there is a bias.

    ``S`` has one column per target; samples with infinite ``d`` are absent. ``centre`` was taken from the
    targets before, and belongs to the bias.
    """

    S: Matrix
    d: Vector
    has_bias: bool
    centre: Vector | float = 0.0

    @property
    def used(self) -> AnyArray:
        """The samples that take part."""
        return np.flatnonzero(np.isfinite(self.d))

    def factor(self, K: AnyArray) -> Factor:
        """Return the Cholesky factor of K + diag(d) over the samples that take part."""
        used = self.used
        A = np.empty((used.size, used.size), order="F")
        diagonal = np.asarray(K.diagonal()[used] + self.d[used], dtype=np.float64)
        for ridge in RIDGES:
            # The one matrix of all samples that is held beside K: it is filled in parts and factored in place.
            for first in range(0, used.size, COLUMNS):
                part = used[first : first + COLUMNS]
                A[:, first : first + COLUMNS] = K[part].T if used.size == len(K) else K[np.ix_(part, used)].T
            np.fill_diagonal(A, diagonal + ridge * float(np.abs(diagonal).max(initial=0.0)))
            try:
                R = cho_factor(A, lower=False, overwrite_a=True, check_finite=False)[0]
                return Factor(R, used, self.has_bias)
            except LinAlgError:
                continue
        raise LinAlgError(
            "K + diag(d) is far from positive definite: a kernel is not positive semidefinite, or the "
            "regularisation is below the rounding of the kernels; clip negative eigenvalues or raise it."
        )

    def residual(self, V: Matrix, F: Matrix) -> Matrix:
        """Return S − diag(d) V − F, which is the bias in every row at the optimum."""
        used = self.used
        R = np.zeros_like(V)
        R[used] = self.S[used] - self.d[used, None] * V[used] - F[used]
        return R

    def gain(self, V: Matrix) -> float:
        """Return tr S'V − ½ tr V'diag(d)V."""
        used = self.used
        return float(np.sum(self.S[used] * V[used]) - 0.5 * np.sum(self.d[used, None] * V[used] ** 2))

    def bias(self, F: Matrix) -> Vector:
        """Return the intercepts that minimise the loss at decision values F, from the centre on."""
        if not self.has_bias:
            return np.zeros(F.shape[1])
        used = self.used
        weight = 1.0 / self.d[used]
        return np.asarray(weight @ (self.S[used] - F[used]) / weight.sum())

    def left_out(self, K: AnyArray, V: Matrix) -> Matrix:
        """Return the decision value of each sample if the others alone were learnt from, bias included.

        The solution without sample i differs by the one column of the inverse that undoes its residual, so
        s_i − v_i / (inverse)_ii is exact. Absent samples get their target.
        """
        used, held_out = self.used, self.S.copy()
        held_out[used] -= V[used] / self.factor(K).diagonal()[:, None]
        return held_out + self.centre

    def errors(self, F: Matrix) -> Matrix:
        """Return S − F − bias of the samples that take part."""
        return np.asarray((self.S - F - self.bias(F))[self.used])


@dataclass(frozen=True)
class Factor:
    """R'R = K + diag(d) over the ``used`` samples, and solutions that keep the sum where there is a bias."""

    R: Matrix = field(repr=False)
    used: AnyArray = field(repr=False)
    has_bias: bool

    def solve(self, B: Matrix) -> Matrix:
        """Return argmin of ½ V'AV − B'V with the columns of V summing to zero, zero for absent samples."""
        V = np.zeros_like(B)
        V[self.used] = self._within(B[self.used])
        return V

    def _within(self, B: Matrix) -> Matrix:
        if not self.has_bias:
            return self._inverse(B)
        ones = np.ones((B.shape[0], 1))
        both = self._inverse(np.hstack([B, ones]))
        AB, A1 = both[:, :-1], both[:, -1:]
        V = AB - A1 * (AB.sum(axis=0) / A1.sum())
        return np.asarray(V - V.mean(axis=0))  # the sum is zero up to the last digit

    def diagonal(self) -> Vector:
        """Return the diagonal of the map from B to V over the samples that take part."""
        found = np.empty(self.used.size)
        for first in range(0, found.size, COLUMNS):
            part = slice(first, min(first + COLUMNS, found.size))
            B = np.eye(found.size, part.stop - first, -first)
            found[part] = np.diagonal(self._within(B)[part])
        return found

    def _inverse(self, B: Matrix) -> Matrix:
        return np.asarray(cho_solve((self.R, False), B, check_finite=False))


class LandmarkInverse:
    """An approximate inverse of K + diag(d): K by its columns at a few landmarks, K_nL K_LL⁻¹ K_Ln.

    With Z Z' for that, (Z Z' + D)⁻¹ = D⁻¹ − D⁻¹Z (I + Z'D⁻¹Z)⁻¹ Z'D⁻¹. It is exact on the landmarks' span, which
    has nearly all of a smooth kernel, and the ridge elsewhere.

    Parameters
    ----------
    columns : K between all samples and the landmarks.
    landmarks : their places.
    d : the ridge; samples where it is infinite are absent.
    has_bias : whether solutions are to sum to zero.
    """

    def __init__(self, columns: AnyArray, landmarks: Indices, d: Vector, has_bias: bool) -> None:
        W = np.asarray(columns[landmarks], dtype=np.float64)
        values, vectors = np.linalg.eigh(0.5 * (W + W.T))
        kept = values > 1e-7 * max(float(values[-1]), np.finfo(np.float64).tiny)  # the rest is rounding
        inverse = np.divide(1.0, d, out=np.zeros_like(d), where=np.isfinite(d))
        root = np.sqrt(inverse)
        # Rows of absent samples are zero.
        self._Z = root[:, None].astype(columns.dtype) * (
            columns @ (vectors[:, kept] / np.sqrt(values[kept])).astype(columns.dtype)
        )
        small = (self._Z.T @ self._Z).astype(np.float64)
        small[np.diag_indices_from(small)] += 1.0
        self._small = cho_factor(small, check_finite=False)
        self._root, self._present = root, np.isfinite(d)
        self._has_bias = has_bias
        ones = self._present.astype(np.float64)[:, None]
        self._of_ones = self._unconstrained(ones)

    def apply(self, B: Matrix) -> Matrix:
        """Return the approximate solutions of (K + diag d) V = B whose columns sum to zero, if they have to."""
        V = self._unconstrained(B)
        if not self._has_bias:
            return V
        V = V - self._of_ones * (V.sum(axis=0) / self._of_ones.sum())
        return np.where(self._present[:, None], V - V.sum(axis=0) / self._present.sum(), 0.0)

    def _unconstrained(self, B: Matrix) -> Matrix:
        scaled = self._root[:, None] * B
        inside = cho_solve(self._small, (self._Z.T @ scaled.astype(self._Z.dtype)).astype(np.float64))
        return np.asarray(self._root[:, None] * (scaled - (self._Z @ inside.astype(self._Z.dtype))))


@dataclass(frozen=True)
class RidgeSolution(InnerSolution):
    """A solution of the square loss: its support never changes, so its curvature is exact everywhere.

    ``bias`` is the intercept of the regression, whatever intercept is reported. ``factors`` has the factor of the
    system until it is forgotten; it is then computed again where curvature is asked for.
    """

    ridge: Ridge | None = field(default=None, repr=False)
    factors: list[Factor] = field(default_factory=list, repr=False)
    bias: AnyArray = field(default_factory=lambda: np.zeros(()), repr=False)

    @property
    def needed_matvecs(self) -> AnyArray:
        assert self.ridge is not None
        used = np.isfinite(self.ridge.d).reshape(-1, *(1,) * (self.coef.ndim - 1))
        return np.asarray(used | (self.coef != 0.0))

    def forget(self) -> None:
        self.factors.clear()

    def curvature(self, K: AnyArray, matvecs: Matrix, n_threads: int = 1) -> Matrix:  # noqa: ARG002
        assert self.ridge is not None
        factor = self.factors[0] if self.factors else self.ridge.factor(K)
        M, n = matvecs.shape[:2]
        U = matvecs.reshape(M, n, -1).transpose(1, 0, 2)  # (n, M, columns)
        U = np.where(np.isfinite(self.ridge.d)[:, None, None], U, 0.0)
        AU = factor.solve(U.reshape(n, -1)).reshape(U.shape)
        H = np.tensordot(U, AU, axes=([0, 2], [0, 2]))
        return np.asarray(0.5 * (H + H.T))


def product(K: AnyArray, V: Matrix) -> Matrix:
    """Return K V in double arithmetic, whatever K is stored in, without a copy of it."""
    if K.dtype == np.float64:
        return np.asarray(K @ V)
    step = max(1, (1 << 22) // max(K.shape[1], 1))
    return np.concatenate([K[i : i + step].astype(np.float64) @ V for i in range(0, K.shape[0], step)])
