"""The restricted likelihood of kernel weights: its value, its derivatives, and a start for its maximum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs
from scipy.optimize import nnls

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.evidence.components import Components


@dataclass(frozen=True)
class Evaluation:
    """The restricted likelihood of targets at common weights theta, the noise of each at its best value.

    ``lower`` is the Cholesky factor of V, ``half`` is L⁻¹Y, ``scale`` the noise variances s², ``value`` the
    logarithms of the likelihoods.
    """

    theta: Vector
    lower: AnyArray = field(repr=False)
    half: AnyArray = field(repr=False)
    scale: Vector
    value: Vector

    def solution(self) -> AnyArray:
        """Return V⁻¹Y."""
        return _triangular(self.lower, self.half, transposed=True)

    def half_solved(self, B: AnyArray) -> AnyArray:
        """Return L⁻¹B."""
        return _triangular(self.lower, B)


def evaluate(components: Components, theta: Vector) -> Evaluation:
    """Return the likelihood of every target at these weights; LinAlgError where V is not positive definite.

    log p = -½ (dof (log 2πs² + 1) + log |V|),  s² = y'V⁻¹y / dof.
    """
    lower = cholesky(components.covariance(theta))
    half = _triangular(lower, components.Y)
    squares = np.einsum("it,it->t", half, half).astype(np.float64) + components.rest
    scale = squares / components.dof
    log_determinant = 2.0 * float(np.log(np.diagonal(lower)).sum(dtype=np.float64))
    value = -0.5 * (components.dof * (np.log(2.0 * np.pi * scale) + 1.0) + log_determinant)
    return Evaluation(theta, lower, half, scale, value)


def derivatives(components: Components, at: Evaluation) -> tuple[Matrix, AnyArray]:
    """Return the gradient in log theta, (T, M), and the average information about it, (T, M, M).

    The average information is the mean of the observed and the expected one, without their traces of two
    inverses; the noise is eliminated from it.
    """
    A = at.solution()
    KA = components.K @ A  # (M, d, T)
    halves = np.stack([_triangular(at.lower, one) for one in KA])
    quadratic = np.einsum("dt,mdt->tm", A, KA) * (at.theta / at.scale[:, None])
    gradient = 0.5 * (quadratic - at.theta * _traces(components, at.lower))
    products = np.einsum("mdt,ldt->tml", halves, halves) / at.scale[:, None, None]
    information = products * np.outer(at.theta, at.theta)
    information -= quadratic[:, :, None] * quadratic[:, None, :] / components.dof
    return gradient, 0.5 * information


def moment_estimate(components: Components) -> tuple[Matrix, Vector]:
    """Return weights (T, M) and noise variances (T,) that fit yy' best, none of them negative.

    Haseman and Elston's regression of y_i y_j on the entries of the kernels, by non-negative least squares.
    """
    K, M = components.K.reshape(components.n_kernels, -1), components.n_kernels
    G = np.empty((M + 1, M + 1))
    G[:M, :M] = K @ K.T
    G[:M, M] = G[M, :M] = np.trace(components.K, axis1=1, axis2=2)
    G[M, M] = components.dof
    q = np.empty((M + 1, components.Y.shape[1]))
    for m in range(M):
        q[m] = np.einsum("it,it->t", components.Y, components.K[m] @ components.Y)
    q[M] = np.einsum("it,it->t", components.Y, components.Y) + components.rest
    G[np.diag_indices(M + 1)] += 1e-10 * np.trace(G)  # kernels may be the same twice
    lower = np.linalg.cholesky(G)
    found = np.array([nnls(lower.T, one)[0] for one in np.linalg.solve(lower, q).T])
    return found[:, :M], found[:, M]


def cholesky(V: AnyArray) -> AnyArray:
    """Return the lower Cholesky factor of a symmetric matrix in column-major order, which it overwrites."""
    potrf: Any = get_lapack_funcs("potrf", (V,))
    lower, info = potrf(V, lower=1, overwrite_a=1, clean=1)
    if info:
        raise np.linalg.LinAlgError("I + Σ theta_m K_m is not positive definite: a kernel is not.")
    return np.asarray(lower)


def _triangular(lower: AnyArray, B: AnyArray, *, transposed: bool = False) -> AnyArray:
    """Return L⁻¹B or L⁻ᵀB."""
    trsm: Any = get_blas_funcs("trsm", (lower,))
    B = np.asarray(B, dtype=lower.dtype, order="F")
    return np.asarray(trsm(1.0, lower, B, lower=1, trans_a=int(transposed)))


def _traces(components: Components, lower: AnyArray) -> Vector:
    """Return tr(V⁻¹K_m) for every kernel."""
    potri: Any = get_lapack_funcs("potri", (lower,))
    inverse = np.asarray(potri(lower, lower=1)[0])  # its lower triangle, zeros above
    inverse *= 2.0
    inverse[np.diag_indices(len(inverse))] *= 0.5
    return np.asarray(components.K.reshape(components.n_kernels, -1) @ inverse.T.ravel(), dtype=np.float64)
