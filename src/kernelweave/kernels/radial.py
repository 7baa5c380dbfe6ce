"""Kernels of the Euclidean distance D: Gaussian, Laplacian and the two inverse distances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.kernels.base import Formula, ScaledKernel, require_positive


class EuclideanKernel(ScaledKernel):
    """A kernel of the squared Euclidean distance, with gamma_0 = 1 / mean(D^2) [Xu13, Sec. V-E]."""

    metric: ClassVar[str] = "sqeuclidean"
    accepts_sparse: ClassVar[bool] = True


@dataclass
class Gaussian(EuclideanKernel):
    r"""The Gaussian kernel k(x, z) = exp(-D^2 / (2 width^2)) or exp(-gamma D^2), D = ||x - z||.

    Parameters
    ----------
    width : number > 0 or None; the standard deviation of the bell.
    gamma : number > 0 or None; the rate directly. Give at most one of ``width`` and ``gamma``.
    scale : number > 0; with neither given, gamma = scale / mean(D^2) is learnt. Large: near-diagonal Gram.

    Notes
    -----
    [Xu13, Sec. V-B] uses widths 2^-3 .. 2^6, [Xu13, Sec. V-E] gamma = 4^(n-1) gamma_0.
    Symbols: sigma -> width, gamma_0 = 1/A -> 1 / mean(D^2).
    Differs from the paper: A is the mean over the pairs i != j of training rows (the paper does not say if
    the zeros i = j count); gamma_0 = 1 when all rows coincide.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(width=1.0)([[0.0]], [[np.sqrt(2.0)]]).round(4)
    array([[0.3679]])
    >>> kernel = Gaussian(scale=4.0).resolve([[0.0], [2.0]])
    >>> kernel.label, kernel.rate
    ('gaussian(scale=4)', 1.0)

    """

    stem: ClassVar[str] = "gaussian"

    width: float | None = None
    gamma: float | None = None
    scale: float = 1.0
    mean_: float | None = field(default=None, init=False, repr=False)

    @property
    def spread(self) -> str:
        return super().spread if self.width is None else f"width={self.width:g}"

    @property
    def is_open(self) -> bool:
        return self.width is None and super().is_open

    @property
    def rate(self) -> float:
        return super().rate if self.width is None else 0.5 / self.width**2

    def check(self) -> None:
        super().check()
        require_positive(self, "width", self.width, optional=True)
        if self.width is not None and self.gamma is not None:
            raise ValueError(
                f"Gaussian received width={self.width:g} and gamma={self.gamma:g}; give only one of them."
            )

    def from_distances(self, D: Matrix) -> Matrix:
        return np.exp(-self.rate * D)

    def formula(self) -> Formula:
        return Formula(self.metric, "exp", self.rate)


@dataclass
class Laplacian(EuclideanKernel):
    r"""The Laplacian kernel k(x, z) = exp(-sqrt(gamma) D), D = ||x - z||.

    Parameters
    ----------
    gamma : number > 0 or None; the rate under the root.
    scale : number > 0; without gamma, gamma = scale / mean(D^2) is learnt.

    Notes
    -----
    [Xu13, Sec. V-E]. Symbols: gamma_0 = 1/A -> 1 / mean(D^2).
    Differs from the paper: the mean runs over the pairs i != j of training rows. D is Euclidean, not the
    city-block distance of scikit-learn's ``laplacian_kernel``.

    Examples
    --------
    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.0067]])

    """

    stem: ClassVar[str] = "laplacian"

    gamma: float | None = None
    scale: float = 1.0
    mean_: float | None = field(default=None, init=False, repr=False)

    def from_distances(self, D: Matrix) -> Matrix:
        return np.exp(-np.sqrt(self.rate * D))

    def formula(self) -> Formula:
        return Formula(self.metric, "exp_root", self.rate)


@dataclass
class InverseSquareDistance(EuclideanKernel):
    r"""The inverse square distance kernel k(x, z) = 1 / (gamma D^2 + 1), D = ||x - z||.

    Parameters
    ----------
    gamma : number > 0 or None; the rate.
    scale : number > 0; without gamma, gamma = scale / mean(D^2) is learnt.

    Notes
    -----
    [Xu13, Sec. V-E]; a mixture of Gaussians, hence positive definite.
    Symbols: ISD -> InverseSquareDistance, gamma_0 = 1/A -> 1 / mean(D^2).
    Differs from the paper: the mean runs over the pairs i != j of training rows. [Xu14] prints the formula of
    the inverse distance for this kernel; this is the one of [Xu13].

    Examples
    --------
    >>> InverseSquareDistance(gamma=1.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.0385]])

    """

    stem: ClassVar[str] = "inverse_square_distance"

    gamma: float | None = None
    scale: float = 1.0
    mean_: float | None = field(default=None, init=False, repr=False)

    def from_distances(self, D: Matrix) -> Matrix:
        K = D * self.rate
        K += 1.0
        return np.reciprocal(K, out=K)

    def formula(self) -> Formula:
        return Formula(self.metric, "inverse", self.rate)


@dataclass
class InverseDistance(EuclideanKernel):
    r"""The inverse distance kernel k(x, z) = 1 / (sqrt(gamma) D + 1), D = ||x - z||.

    Parameters
    ----------
    gamma : number > 0 or None; the rate under the root.
    scale : number > 0; without gamma, gamma = scale / mean(D^2) is learnt.

    Notes
    -----
    [Xu13, Sec. V-E]; a mixture of Laplacians, hence positive definite.
    Symbols: ID -> InverseDistance, gamma_0 = 1/A -> 1 / mean(D^2).
    Differs from the paper: the mean runs over the pairs i != j of training rows.

    Examples
    --------
    >>> InverseDistance(gamma=1.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.1667]])

    """

    stem: ClassVar[str] = "inverse_distance"

    gamma: float | None = None
    scale: float = 1.0
    mean_: float | None = field(default=None, init=False, repr=False)

    def from_distances(self, D: Matrix) -> Matrix:
        K = np.sqrt(D)
        K *= np.sqrt(self.rate)
        K += 1.0
        return np.reciprocal(K, out=K)

    def formula(self) -> Formula:
        return Formula(self.metric, "inverse_root", self.rate)
