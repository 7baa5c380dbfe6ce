"""The dual of the p-norm problem near some coefficients: one matrix of a block of samples serves for all kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.multiclass.problem import dual_norm_and_weights


@dataclass(frozen=True)
class KernelSplit:
    """Weights eta of the kernels in the combined matrix, and each kernel's share of it, Σ eta_j share_j = 1."""

    eta: Vector
    share: Vector

    @classmethod
    def of(cls, s: Vector, sizes: Vector, q: float, least: float = 1e-3) -> Self:
        """Return those at energies s, of which none counts for less than ``least`` times the largest.

        Energies are compared in units of the kernels' ``sizes``, their mean k(x, x). Without the floor, kernels
        that have no energy yet would never get any, since their gradient is zero.
        """
        ratios = np.divide(s, sizes, out=np.zeros_like(s), where=sizes > 0.0)
        largest = float(ratios.max(initial=0.0))
        spread = sizes if largest <= 0.0 else np.maximum(s, least * largest * sizes)
        eta = dual_norm_and_weights(spread, q)[1]
        return cls(eta, spread / (float(eta @ spread) or 1.0))


@dataclass
class DualModel:
    r"""The dual as a function of the change S of the coefficients A of some samples.

    .. math::
       s_j(A + S) \approx s_j(A) + 2 \langle S, K_j A \rangle + \mathrm{share}_j \langle S, K S \rangle,
       \qquad K = \sum_j \eta_j K_j, \quad \sum_j \eta_j \mathrm{share}_j = 1

    It is exact to first order, and in the second-order part of the sum Σ_j η_j s_j.

    Parameters
    ----------
    K : the combined matrix of the samples.
    G : their products K_j A, with the coefficients of all samples, of shape (kernels, samples, classes).
    share : shares of the kernels.
    s : the energies s_j; they follow the model.
    alone : for each sample (Σ_j k_j(x, x)^{q/2})^{2/q}.
    scale : λN.
    q : exponent of the dual norm.
    least_curvature : a sample's curvature is at least this share of what it would be alone.

    """

    K: AnyArray
    G: AnyArray
    share: Vector
    s: Vector
    alone: Vector
    scale: float
    q: float
    least_curvature: float = 1e-3
    H: AnyArray = field(init=False)  # (K S)', of shape (classes, samples)

    def __post_init__(self) -> None:
        self.H = np.zeros((self.G.shape[2], self.G.shape[1]), dtype=self.K.dtype)

    def visit(self, A: Matrix, y: AnyArray, weight: Vector, order: Indices) -> int:
        """Maximise the model over one row of A after the other, in place. Return how many moved."""
        least = self.least_curvature * self.alone
        how = (y, weight, self.scale, self.q, order.astype(np.int64))
        return _core.ascend(self.K, self.G, self.share, least, *how, A, self.H, self.s)

    def scores(self) -> AnyArray:
        """Return f (classes, samples) under the model."""
        eta = dual_norm_and_weights(self.s, self.q)[1]
        f = np.tensordot(eta, self.G, axes=1).T + float(eta @ self.share) * self.H
        return np.asarray(f / self.scale)


def norms_of_samples(diagonals: Matrix, q: float) -> Vector:
    """Return (Σ_j k_j(x, x)^{q/2})^{2/q} of every sample, from its k_j(x, x), one row per kernel."""
    largest = np.maximum(diagonals.max(axis=0), np.finfo(float).tiny)
    shares = np.maximum(diagonals, 0.0) / largest
    return np.asarray(largest * (shares ** (0.5 * q)).sum(axis=0) ** (2.0 / q))
