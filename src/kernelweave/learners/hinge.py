"""The C-SVC: hinge loss with a box on every coefficient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.learners.base import COSTS, positive
from kernelweave.learners.bias import hinge_bias
from kernelweave.learners.leave_one_out import USUAL_COST, leave_one_out_cost
from kernelweave.learners.program import DualProgram
from kernelweave.learners.support_vector import Loss, SupportVectorLearner

LOO = "loo"


@dataclass
class Hinge(SupportVectorLearner):
    r"""Support vector classification with the hinge loss (C-SVC).

    .. math:: \min_{f, b} \tfrac12\|f\|^2 + \sum_i C_i \max(0, 1 - y_i(f(x_i) + b))
       = \max_{0 \le \alpha \le C,\; y'\alpha = 0} 1'\alpha - \tfrac12 (\alpha∘y)'K(\alpha∘y)

    Parameters
    ----------
    C : float or "loo", default=1.0
        Price of a margin violation, C > 0; sample i pays C times its weight. Small C: smooth and simple. "loo":
        3, 1 or 0.3 over the variance of the mean kernel, by how much a ridge regression on it has to shrink for the
        least leave-one-out error, on 500 samples at most; on explicit features, which have no kernel, 3.
    tol : float or None, default=None
        Relative gap of every inner solve; None lets the outer solver ask for what it needs.

    Notes
    -----
    All experiments of [Xu13, V-A] use this learner. Symbols: paper α∘y → ``coef``.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import Hinge
    >>> inner = Hinge(C=10.0).solve(np.eye(2), np.array([1.0, -1.0]))
    >>> inner.coef
    array([ 1., -1.])

    """

    tunable: ClassVar[str] = "C"
    is_elementwise: ClassVar[bool] = True
    tried: ClassVar[tuple[float, ...]] = COSTS
    degree: ClassVar[int] = 1
    decreases_with_margin = True

    C: float | str = 1.0
    tol: float | None = None

    @property
    def reads_kernel(self) -> bool:
        return isinstance(self.C, str) and self.C == LOO

    def check(self, y: Vector, weight: Vector) -> None:
        if not self.reads_kernel:
            super().check(y, weight)

    def for_kernel(self, K: Matrix | None, y: AnyArray, weight: Vector) -> Hinge:
        if not self.reads_kernel:
            return self
        return replace(self, C=USUAL_COST if K is None else leave_one_out_cost(K, y, weight))

    def program(self, y: Vector, weight: Vector) -> DualProgram:
        return DualProgram.of_classes(y, positive("C", self.C) * weight, s=y)

    def loss(self, f: Vector, y: Vector, weight: Vector) -> Loss:
        C = positive("C", self.C) * weight
        b = hinge_bias(f, y, C)
        value = float(C @ np.maximum(0.0, 1.0 - y * (f + b)))
        return Loss(value, b, margin=1.0, gradient_bound=float(np.linalg.norm(C)), curvature_bound=0.0)
