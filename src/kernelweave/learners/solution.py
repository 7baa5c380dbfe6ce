"""What a learner returns: a point on both sides of the duality, and the curvature of the optimal value."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, eigh, get_blas_funcs

from kernelweave import _core
from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.learners.program import DualProgram

# An objective without linear term is zero below this share of the squared lengths it is made of.
VANISHING = 1e-6


@dataclass(frozen=True)
class InnerSolution:
    """The solution for one combined kernel K: primal ≥ optimum ≥ dual.

    ``g`` is g(α), so the dual value is ``g − ½ quadratic`` with ``quadratic`` = v'Kv. The loss as a
    function of the decision values has a gradient no longer than ``gradient_bound`` and second derivatives no
    larger than ``curvature_bound``. ``margin`` is y f(x) on the margin: 1, or ρ for the ν form; ``scale`` is
    the size of decision values that is reported as 1. ``programs`` are the dual programs with their
    coefficients, one per column; none where the dual is a linear system.
    """

    coef: AnyArray
    intercept: AnyArray
    margin: AnyArray
    g: float
    quadratic: float
    loss: float
    gradient_bound: float
    curvature_bound: float
    programs: tuple[tuple[DualProgram, Vector], ...] = field(repr=False)
    scale: AnyArray | float = 1.0

    @property
    def primal(self) -> float:
        return 0.5 * self.quadratic + self.loss

    @property
    def dual(self) -> float:
        return self.g - 0.5 * self.quadratic

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), abs(self.dual), np.finfo(float).tiny)

    def is_zero(self, objective: float, diagonal: Vector, energy: Callable[[AnyArray], float]) -> bool:
        """Tell whether an objective this large is zero, given the diagonal of K and energies ½ v'Kv.

        The ν form and the one-class SVM have no linear term: where hulls overlap, or reach the origin, their optimum
        is 0, and no share of it can be asked for. A millionth of the squared lengths, or distances where the
        coefficients sum to zero, that it is made of can.
        """
        if not self.programs or any(program.s.any() or program.d.any() for program, _ in self.programs):
            return False
        sizes = np.abs(self.coef)
        columns = sizes.reshape(sizes.shape[0], -1)
        lengths = 0.5 * VANISHING * float(columns.sum(axis=0) @ (diagonal @ columns))
        if objective > lengths:
            return False
        is_balanced = all(abs(float(program.sums.sum())) < 1e-9 for program, _ in self.programs)
        return objective <= lengths - (VANISHING * energy(sizes) if is_balanced else 0.0)

    @cached_property
    def norm(self) -> float:
        """||v||, the Euclidean norm of the coefficients."""
        return float(np.linalg.norm(self.coef))

    def rounding_allowance(self, eta: Vector, errors: Vector) -> float:
        """Bound the primal's growth when the entries of each K_m were rounded by at most errors_m.

        The change is the bilinear form (c + v/2)'ΔK v with c the gradient of the loss: a sum of independent
        roundings, bounded as `rounding_of_product` says.
        """
        moved = rounding_of_product(float(eta @ errors), self.norm)
        n_samples = self.coef.shape[0]
        first = moved * (self.gradient_bound + 0.5 * self.norm)
        return float(first + 0.5 * self.curvature_bound * n_samples * moved**2)

    def energy_allowance(self, errors: Vector) -> Vector:
        """Bound what rounding the entries of each K_m by at most errors_m changes in ½ v'K_m v."""
        return np.asarray(0.5 * rounding_of_product(1.0, self.norm) * self.norm * errors)

    def primal_growth(self, error: AnyArray) -> float:
        """Bound the primal's growth when K v moves by at most ``error``, entry by entry, whichever way."""
        size = float(np.linalg.norm(error))
        quadratic = float(np.vdot(np.abs(self.coef), error))
        return 0.5 * quadratic + self.gradient_bound * size + 0.5 * self.curvature_bound * size**2

    @property
    def needed_matvecs(self) -> AnyArray:
        """Entries of products with the coefficients that `curvature` and energies read."""
        needed = (self.coef != 0.0).reshape(self.coef.shape[0], -1)
        for c, (program, v) in enumerate(self.programs):
            needed[program.free(v), c] = True
        return np.asarray(needed.reshape(self.coef.shape))

    def forget(self) -> None:
        """Let go of matrices that only make `curvature` cheaper."""

    def curvature(self, K: AnyArray, matvecs: Matrix, n_threads: int = 1) -> Matrix:
        """Return the Hessian of the optimal value in the weights, given K_m v on the `needed_matvecs`.

        The support stays as it is: H = U' A⁻¹ U on the free coordinates with the group sums held, where
        U_m = (K_m v) restricted to the free coordinates and A = (K + diag(d)) there.
        """
        columns = matvecs.reshape(matvecs.shape[0], matvecs.shape[1], -1)
        return sum(
            (
                _curvature(K, program, v, columns[:, :, c], n_threads)
                for c, (program, v) in enumerate(self.programs)
            ),
            start=np.zeros((matvecs.shape[0], matvecs.shape[0])),
        )


def rounding_of_product(error: float, norm: float) -> float:
    """Bound how far an entry of K v moves when the entries of K were rounded, for coefficients of this norm.

    A sum of independent roundings stays within six times its Euclidean size but for a chance below 1e-7
    (Hoeffding; the model of Higham and Mary). ΔK is symmetric, so each rounding counts twice.
    """
    return float(6.0 * 2.0**0.5 * error * norm)


def free_system(program: DualProgram, v: Vector) -> tuple[AnyArray, Matrix]:
    """Return the free coordinates of v, and one column of ones per group that has some: their sums are held."""
    free = program.free(v)
    E = (program.group[free, None] == np.arange(program.sums.size)).astype(float)
    return free, E[:, E.any(axis=0)]


def _curvature(K: AnyArray, program: DualProgram, v: Vector, matvecs: Matrix, n_threads: int) -> Matrix:
    free, E = free_system(program, v)
    if free.size == 0:
        return np.zeros((matvecs.shape[0], matvecs.shape[0]))
    U = matvecs[:, free].T
    # In the precision of K: the model needs no more digits than the matrix has.
    A = K.take(free, axis=0).take(free, axis=1)
    A[np.diag_indices_from(A)] += program.d[free]
    return reduced_hessian(A, U, E, n_threads)


def reduced_hessian(A: AnyArray, U: Matrix, E: Matrix, n_threads: int) -> Matrix:
    """Return U'A⁻¹U over what leaves the sums E'x as they are; A is overwritten."""
    # Large systems gain from threads; smaller ones lose more where others are busy. Fits leave BLAS one.
    with blas_threads(n_threads) if A.shape[0] >= 4_000 else nullcontext():
        half = half_solved(A, np.vstack([E.T, U.T]).astype(A.dtype)).astype(np.float64)
    lengths = np.linalg.norm(half[: E.shape[1]], axis=1)
    for length, held in zip(lengths, half[: E.shape[1]], strict=True):
        left = float(held @ held)
        if left > (1e-5 * length) ** 2:  # else an earlier one has held it already
            half -= np.outer(half @ held / left, held)
    moving = half[E.shape[1] :]
    return np.asarray(moving @ moving.T)


def approximate_hessian(A: AnyArray, d: Vector, U: Matrix, E: Matrix, n_steps: int) -> Matrix:
    """Return U'(A + diag d)⁻¹U over what leaves the sums E'x as they are, by a few conjugate gradient steps.

    Too few to solve the systems, and enough to see the directions in which they are soft: the model of a Newton
    step needs no more.
    """
    groups = E.astype(A.dtype)
    sizes = np.maximum(groups.sum(axis=0), 1)[:, None]

    def held(X: AnyArray) -> AnyArray:
        return np.asarray(X - groups @ ((groups.T @ X) / sizes))

    B = held(U.astype(A.dtype))
    ridge = d.astype(A.dtype)[:, None]
    X, R = np.zeros_like(B), B.copy()
    P, lengths = R.copy(), np.sum(R * R, axis=0)
    # Directions of less curvature than this, and residuals below it, are rounding: their columns are left.
    digits = np.finfo(A.dtype).eps
    size, small = digits * float(np.trace(A) / len(A) + d.max(initial=0.0)), (digits**2) * lengths
    active = lengths > 0.0
    for _ in range(n_steps):
        AP = held(A @ P + ridge * P)
        curvature = np.sum(P * AP, axis=0)
        active &= (curvature > size * np.sum(P * P, axis=0)) & (lengths > small)
        step = np.divide(lengths, curvature, out=np.zeros_like(lengths), where=active)
        X += step * P
        R -= step * AP
        before, lengths = lengths, np.sum(R * R, axis=0)
        P = R + np.divide(lengths, before, out=np.zeros_like(lengths), where=active) * P
    H = B.astype(np.float64).T @ X.astype(np.float64)
    return _nearest_semidefinite(0.5 * (H + H.T))


def _nearest_semidefinite(H: Matrix) -> Matrix:
    """Return H without its negative eigenvalues, in units that make its diagonal one.

    Each column was solved for by itself, and kernels differ in size by many orders of magnitude.
    """
    roots = np.sqrt(np.maximum(np.diagonal(H), 0.0))
    inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0.0)
    values, vectors = eigh(inverse[:, None] * H * inverse)
    half = roots[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(half @ half.T)


def half_solved(A: AnyArray, B: AnyArray) -> AnyArray:
    """Return Z with ZZ' = B A⁻¹ B' for a positive semidefinite A, with as little ridge as it takes.

    A is overwritten, and B may be.
    """
    # Where all free samples are at the origin A is zero, and any ridge says so.
    scale = max(float(np.trace(A)) / A.shape[0], 0.0) or 1.0
    # A Gram of low rank has no inverse: a relative ridge by the precision of A.
    diagonal, least = np.diagonal(A).copy(), 3e-7 if A.dtype == np.float32 else 1e-10
    (trsm,) = get_blas_funcs(("trsm",), (A,))
    for ridge in (least, 30.0 * least, 1000.0 * least):  # rounding may have made A indefinite
        np.fill_diagonal(A, diagonal + A.dtype.type(ridge * scale))
        try:
            # Symmetric, so its transpose is the same matrix in the order that LAPACK overwrites.
            factor, _ = cho_factor(A.T, lower=True, overwrite_a=True, check_finite=False)
            return np.asarray(trsm(1.0, factor, B.T, lower=1, overwrite_b=1)).T
        except LinAlgError:
            _core.mirror(A)  # what it had overwritten is the other triangle
    np.fill_diagonal(A, diagonal)
    values, vectors = eigh(A, check_finite=False)
    kept = values > least * values[-1]
    return np.asarray((B @ vectors[:, kept]) / np.sqrt(values[kept]))
