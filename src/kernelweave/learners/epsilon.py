"""Support vector regression: errors below epsilon cost nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.learners.base import COSTS, positive
from kernelweave.learners.bias import epsilon_bias
from kernelweave.learners.program import DualProgram
from kernelweave.learners.support_vector import Loss, SupportVectorLearner


@dataclass
class EpsilonInsensitive(SupportVectorLearner):
    r"""Regression with the ε-insensitive loss (ε-SVR).

    .. math:: \min_{f, b} \tfrac12\|f\|^2 + \sum_i C_i \max(0, |y_i - f(x_i) - b| - \epsilon)
       = \max_{|v| \le C,\; 1'v = 0} y'v - \epsilon\|v\|_1 - \tfrac12 v'Kv

    Parameters
    ----------
    C : float, default=1.0
        Price of an error beyond ε, C > 0; sample i pays C times its weight.
    epsilon : float, default=0.1
        Errors up to this size are free, in the units of y; 0 is the absolute loss.
    tol : float or None, default=None
        Relative gap of every inner solve; None lets the outer solver ask for what it needs.

    Notes
    -----
    With one kernel scikit-learn's ``SVR(C, epsilon)``. Samples inside the tube have coefficient zero.
    Differs from the paper: it is in none of them.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import EpsilonInsensitive
    >>> EpsilonInsensitive(C=10.0, epsilon=1.0).solve(np.eye(2), np.array([4.0, 0.0])).coef
    array([ 1., -1.])

    """

    learns_from: ClassVar[tuple[str, ...]] = ("real", "classes")
    tunable: ClassVar[str] = "C"
    is_elementwise: ClassVar[bool] = True
    tried: ClassVar[tuple[float, ...]] = COSTS

    C: float = 1.0
    epsilon: float = 0.1
    tol: float | None = None

    def unit(self, K: AnyArray, y: Vector) -> float:  # noqa: ARG002 - decision values are of the size of y
        return max(float(np.std(y)), float(self.epsilon)) or 1.0

    def program(self, y: Vector, weight: Vector) -> DualProgram:
        # The coefficients sum to zero, so a constant in y changes nothing but digits.
        return self.elementwise(y - np.average(y, weights=weight), weight)

    def elementwise(self, y: Vector, weight: Vector) -> DualProgram:
        C = positive("C", self.C) * weight
        epsilon = self.epsilon
        real = isinstance(epsilon, Real) and not isinstance(epsilon, bool)
        if not real or not 0.0 <= float(epsilon) < math.inf:
            raise ValueError(f"epsilon must be a finite number of at least 0; got {epsilon!r}.")
        group, kink = np.zeros(y.size, dtype=np.int64), np.full(y.size, float(self.epsilon))
        return DualProgram(y, np.zeros(y.size), -C, C, group, sums=np.zeros(1), kink=kink)

    def loss(self, f: Vector, y: Vector, weight: Vector) -> Loss:
        C = self.C * weight
        b = epsilon_bias(y - f, C, self.epsilon)
        value = float(C @ np.maximum(0.0, np.abs(y - f - b) - self.epsilon))
        return Loss(value, b, margin=1.0, gradient_bound=float(np.linalg.norm(C)), curvature_bound=0.0)
