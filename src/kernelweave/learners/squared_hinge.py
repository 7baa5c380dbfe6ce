"""The squared hinge loss: a smooth loss, so the coefficients have no upper bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Vector
from kernelweave.learners.base import COSTS, positive
from kernelweave.learners.bias import squared_hinge_bias
from kernelweave.learners.program import DualProgram
from kernelweave.learners.support_vector import Loss, SupportVectorLearner


@dataclass
class SquaredHinge(SupportVectorLearner):
    r"""Support vector classification with the squared hinge loss.

    .. math:: \min_{f, b} \tfrac12\|f\|^2 + \sum_i \tfrac{C_i}{2} \max(0, 1 - y_i(f(x_i) + b))^2
       = \max_{\alpha \ge 0,\; y'\alpha = 0} 1'\alpha - \tfrac12 (\alpha∘y)'K(\alpha∘y)
       - \sum_i \tfrac{1}{2C_i}\alpha_i^2

    Parameters
    ----------
    C : float, default=1.0
        Price of a squared margin violation, C > 0; sample i pays C times its weight.
    tol : float or None, default=None
        Relative gap of every inner solve; None lets the outer solver ask for what it needs.

    Notes
    -----
    The loss of [Xu14, Eq. (4.12)] in its C form and with an intercept. Symbols: paper α∘y → ``coef``.
    Differs from the paper: it has an intercept, and 1'α is free instead of fixed at one.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import SquaredHinge
    >>> inner = SquaredHinge(C=1.0).solve(np.eye(2), np.array([1.0, -1.0]))
    >>> inner.coef
    array([ 0.5, -0.5])

    """

    tunable: ClassVar[str] = "C"
    is_elementwise: ClassVar[bool] = True
    tried: ClassVar[tuple[float, ...]] = COSTS
    degree: ClassVar[int] = 2
    decreases_with_margin = True

    C: float = 1.0
    tol: float | None = None

    def program(self, y: Vector, weight: Vector) -> DualProgram:
        C = positive("C", self.C) * weight
        # A sample of weight zero is absent: its coefficient is held at zero.
        ceiling = np.where(C > 0, np.inf, 0.0)
        d = np.divide(1.0, C, out=np.zeros(y.size), where=C > 0)
        return DualProgram.of_classes(y, ceiling, s=y, d=d)

    def loss(self, f: Vector, y: Vector, weight: Vector) -> Loss:
        C = self.C * weight
        b = squared_hinge_bias(f, y, C)
        xi = np.maximum(0.0, 1.0 - y * (f + b))
        return Loss(
            value=float(0.5 * C @ xi**2),
            intercept=b,
            margin=1.0,
            gradient_bound=float(np.linalg.norm(C * xi)),
            curvature_bound=float(C.max()),
        )
