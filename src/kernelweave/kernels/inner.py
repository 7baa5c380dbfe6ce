"""Kernels of the inner product: linear and polynomial."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.kernels.base import Formula, Kernel, Rows, require_positive, require_whole
from kernelweave.kernels.distances import squared_norms
from kernelweave.kernels.pairs import Pairs


@dataclass
class Linear(Kernel):
    r"""The linear kernel k(x, z) = x'z.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])

    """

    accepts_sparse: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    label = "linear"

    def matrix(self, pairs: Pairs) -> Matrix:
        return pairs.matrix("inner").copy()

    def formula(self) -> Formula:
        return Formula("inner", "power")

    def diagonal_of(self, X: Rows) -> Vector:
        return squared_norms(X)


@dataclass
class Polynomial(Kernel):
    r"""The polynomial kernel k(x, z) = (gamma x'z + offset)^degree.

    Parameters
    ----------
    degree : whole number >= 1; 1 with ``offset=0`` is the linear kernel.
    offset : number >= 0; 0 keeps the monomials of exactly this degree, larger values weigh low degrees up.
    gamma : number > 0 that multiplies the inner product.

    Notes
    -----
    Degrees 1, 2, 3 on all variables and on each single one are half of SimpleMKL's bank
    [Rakotomamonjy08], [Xu13, Sec. V-B].
    Differs from the paper: [Xu13] leaves the offset open; it is 1 here.

    Examples
    --------
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    >>> Polynomial(degree=2).label
    'polynomial(degree=2)'

    """

    accepts_sparse: ClassVar[bool] = True

    degree: int = 2
    offset: float = 1.0
    gamma: float = 1.0

    @property
    def label(self) -> str:
        extras = [("offset", self.offset), ("gamma", self.gamma)]
        text = "".join(f", {name}={value:g}" for name, value in extras if value != 1.0)
        return f"polynomial(degree={self.degree}{text})"

    def check(self) -> None:
        require_whole(self, "degree", self.degree)
        if not isinstance(self.offset, Real) or not 0.0 <= self.offset < np.inf:
            raise ValueError(
                f"Polynomial cannot use offset={self.offset!r}; it has to be a finite number >= 0."
            )
        require_positive(self, "gamma", self.gamma)

    def matrix(self, pairs: Pairs) -> Matrix:
        return self._power(pairs.matrix("inner"))

    def formula(self) -> Formula:
        return Formula("inner", "power", float(self.gamma), float(self.offset), int(self.degree))

    def diagonal_of(self, X: Rows) -> Vector:
        return self._power(squared_norms(X))

    def _power(self, products: Matrix) -> Matrix:
        base = self.gamma * products + self.offset
        result = base.copy()
        for _ in range(int(self.degree) - 1):  # several times faster than pow for the degrees in use
            result *= base
        return result
