"""Kernel ridge regression: the square loss on real targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.learners.base import COSTS, positive
from kernelweave.learners.least_squares import LeastSquares
from kernelweave.learners.program import DualProgram
from kernelweave.learners.ridge import Ridge

# Differences from the mean below this share of the targets are those of rounding.
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


@dataclass
class Square(LeastSquares):
    r"""Regression with the square loss (kernel ridge regression).

    .. math:: \min_{f, b} \tfrac12\|f\|^2 + \sum_i \tfrac{C_i}{2} (y_i - f(x_i) - b)^2
       = \max_{1'v = 0} y'v - \tfrac12 v'Kv - \sum_i \tfrac{1}{2C_i} v_i^2

    Parameters
    ----------
    C : float, default=1.0
        Price of a squared error, C > 0; sample i pays C times its weight. 1/C is the usual ridge.
    fit_intercept : bool, default=True
        Whether there is a free b. Without it this is scikit-learn's ``KernelRidge(alpha=1 / C)``.

    Notes
    -----
    Several targets (columns of y) share the kernel and the factorisation; values and bounds add up.
    Differs from the paper: it is in none; the square learner of [Yan09] with any targets.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import Square
    >>> Square(C=1.0).solve(np.eye(2), np.array([4.0, 0.0])).coef
    array([ 1., -1.])

    """

    learns_from: ClassVar[tuple[str, ...]] = ("real", "classes")
    tunable: ClassVar[str] = "C"
    tried: ClassVar[tuple[float, ...]] = COSTS

    C: float = 1.0
    fit_intercept: bool = True

    @property
    def has_bias(self) -> bool:
        return self.fit_intercept

    def ridge(self, Y: Matrix, weight: Vector) -> Ridge:
        C = positive("C", self.C) * weight
        d = np.divide(1.0, C, out=np.full(C.size, np.inf), where=C > 0.0)
        if not self.has_bias:
            return Ridge(Y, d, has_bias=False)
        # A constant in the targets is the bias's; without it large ones lose no digits, and equal ones are 0.
        centre = weight @ Y / weight.sum()
        S = Y - centre
        S[np.abs(S) <= ROUNDING * np.abs(Y).max(axis=0)] = 0.0
        return Ridge(S, d, has_bias=True, centre=centre)

    def elementwise(self, y: Vector, weight: Vector) -> DualProgram:
        """Return the dual of the samples' losses; one of weight zero has a coefficient of zero."""
        C = positive("C", self.C) * weight
        unbounded = np.where(C > 0.0, np.inf, 0.0)
        d = np.divide(1.0, C, out=np.zeros(C.size), where=C > 0.0)
        group, sums = np.zeros(y.size, dtype=np.int64), np.zeros(int(self.has_bias))
        return DualProgram(y, d, -unbounded, unbounded, group, sums)
