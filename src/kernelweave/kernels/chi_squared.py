"""The chi-squared kernel for histograms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.kernels.base import ScaledKernel


@dataclass
class ChiSquared(ScaledKernel):
    r"""The chi-squared kernel k(x, z) = exp(-gamma D), D = sum_k (x_k - z_k)^2 / (x_k + z_k), 0/0 = 0.

    Parameters
    ----------
    gamma : number > 0 or None; the rate.
    scale : number > 0; without gamma, gamma = scale / mean(D) is learnt. Features have to be >= 0.

    Notes
    -----
    [Xu13, Sec. V-D]. Symbols: A -> mean(D), 1 / 4^(n-1) -> scale.
    Differs from the paper: the mean runs over the pairs i != j of training rows.

    Examples
    --------
    >>> ChiSquared(gamma=1.0)([[1.0, 0.0]], [[0.0, 1.0]]).round(4)
    array([[0.1353]])

    """

    metric: ClassVar[str] = "chi2"
    stem: ClassVar[str] = "chi_squared"

    gamma: float | None = None
    scale: float = 1.0
    mean_: float | None = field(default=None, init=False, repr=False)

    def from_distances(self, D: Matrix) -> Matrix:
        return np.exp(-self.rate * D)
