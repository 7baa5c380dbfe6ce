"""Kernels and targets in common coordinates, where the intercept is gone and all samples are equally noisy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector

# What centring leaves of a kernel below this share of its size is the rounding of a constant kernel.
CONSTANT = 1e-12


@dataclass(frozen=True)
class Components:
    r"""Targets as sums of Gaussian processes and noise: y_t ~ N(0, s_t² (I + Σ_m theta_tm K_m)).

    Parameters
    ----------
    K : array of shape (M, d, d); the kernels, each with a trace of ``dof``, or zero where it is constant.
    Y : array of shape (d, T), one column per target.
    rest : what the coordinates do not see of y_t'y_t, where all kernels are zero.
    dof : degrees of freedom, one less than there are samples.

    Notes
    -----
    With a trace of ``dof`` the share of kernel m in the variance of y_t is theta_tm / (1 + Σ theta_t).
    """

    K: AnyArray = field(repr=False)
    Y: Matrix = field(repr=False)
    rest: Vector = field(repr=False)
    dof: int

    @property
    def n_kernels(self) -> int:
        """How many kernels there are."""
        return len(self.K)

    def covariance(self, theta: Vector) -> AnyArray:
        """Return V = I + Σ theta_m K_m in column-major order, for LAPACK to overwrite."""
        used, d = np.flatnonzero(theta), self.K.shape[1]
        if not used.size:
            return np.asfortranarray(np.eye(d, dtype=self.K.dtype))
        K = self.K if used.size == len(self.K) else self.K[used]
        V = (theta[used].astype(K.dtype) @ K.reshape(used.size, -1)).reshape(d, d).T  # symmetric
        V[np.diag_indices(d)] += 1.0
        return V

    def of_targets(self, targets: Any) -> Components:
        """Return the same kernels with some of the targets."""
        return Components(self.K, np.asfortranarray(self.Y[:, targets]), self.rest[targets], self.dof)

    def in_float32(self) -> Components:
        """Return the same with kernels and targets in single precision."""
        Y = np.asfortranarray(self.Y, dtype=np.float32)
        return Components(self.K.astype(np.float32), Y, self.rest, self.dof)  # type: ignore[arg-type]


@dataclass(frozen=True)
class CentredKernels:
    """How Gram matrices were brought to the coordinates of `Components`: one for each training sample.

    Parameters
    ----------
    root : square roots of the samples' weights.
    factors : what each kernel was multiplied with, 0 for one that is constant.
    column_means : array of shape (M, n), the weighted mean of every column of each kernel.
    """

    root: Vector = field(repr=False)
    factors: Vector
    column_means: Matrix = field(repr=False)

    @property
    def share(self) -> Vector:
        """The weights of the samples, summing to one."""
        return np.asarray(self.root**2 / np.sum(self.root**2))

    def rows(self, K: Sequence[Matrix]) -> AnyArray:
        """Return new samples in the coordinates, (M, rows, n), given the values of each kernel."""
        out, share = np.empty((len(K), *K[0].shape)), self.share
        for m, values in enumerate(K):
            means = self.column_means[m]
            out[m] = values - means - (values @ share - float(means @ share))[:, None]
            out[m] *= self.factors[m] * self.root
        return out

    def diagonals(self, K: Sequence[Matrix], diagonals: Matrix) -> Matrix:
        """Return k_m(x, x) of new samples in the coordinates, (M, rows), given (rows, M) before."""
        share = self.share
        found = [
            diagonals[:, m] - 2.0 * (values @ share) + float(self.column_means[m] @ share)
            for m, values in enumerate(K)
        ]
        return np.maximum(np.array(found), 0.0) * self.factors[:, None]

    def coefficients(self, B: AnyArray) -> tuple[AnyArray, Vector]:
        """Return coefficients of the kernels as given, (M, n, T), and what to add to each target.

        ``B`` are those in the coordinates. Its columns are orthogonal to the intercept, so that the means of new
        rows do not count.
        """
        coef = B * (self.factors[:, None] * self.root)[:, :, None]
        return coef, -np.einsum("mn,mnt->t", self.column_means, coef)


def centred_components(
    grams: Iterable[tuple[int, Matrix]], n_kernels: int, Y: Matrix, weight: Vector
) -> tuple[Components, CentredKernels]:
    """Return the components of numbered Gram matrices, for targets without their weighted mean.

    With R the diagonal matrix of the square roots of the weights and P the projection off R1, K_m becomes
    P R K_m R P and y becomes R y: the restricted likelihood is that of what is orthogonal to the intercept.
    """
    n, root = len(Y), np.sqrt(weight)
    share, dof = weight / weight.sum(), int(np.count_nonzero(weight)) - 1
    K, means, factors = np.empty((n_kernels, n, n)), np.empty((n_kernels, n)), np.zeros(n_kernels)
    for m, gram in grams:
        means[m] = gram @ share
        shift = means[m] - 0.5 * float(means[m] @ share)
        np.subtract(gram, shift, out=K[m])
        K[m] -= shift[:, None]
        K[m] *= root
        K[m] *= root[:, None]
        trace = float(np.trace(K[m]))
        if trace > CONSTANT * float(np.diagonal(gram) @ weight):
            factors[m] = dof / trace
        K[m] *= factors[m]
    return Components(K, root[:, None] * Y, np.zeros(Y.shape[1]), dof), CentredKernels(root, factors, means)
