"""The one-class SVM: a half-space that holds most of the samples, as far from the origin as can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.learners.base import positive
from kernelweave.learners.bias import margin_quantile
from kernelweave.learners.program import DualProgram
from kernelweave.learners.support_vector import Loss, SupportVectorLearner

# Shares of outliers a search tries, from many to few.
SHARES = (0.5, 0.2, 0.1, 0.05, 0.01)


@dataclass
class OneClass(SupportVectorLearner):
    r"""Novelty detection with the ν one-class SVM.

    .. math:: \min_{f, \rho} \tfrac12\|f\|^2 + C\sum_i \max(0, \rho - f(x_i)) - \rho
       = \max_{0 \le \alpha \le C,\; 1'\alpha = 1} -\tfrac12\alpha'K\alpha, \quad C = 1/(\nu n)

    Parameters
    ----------
    nu : float, default=0.5
        0 < ν ≤ 1: at most this share of the training samples is left outside, at least this share supports.
    tol : float or None, default=None
        Relative gap of every inner solve; None lets the outer solver ask for what it needs.

    Notes
    -----
    [Schoelkopf01]. y is not read. There is no intercept: the origin matters, so kernels are not centred.
    Weighted samples count by weight: C_i = w_i / (ν Σ w). Decision values are reported as scikit-learn's
    ``OneClassSVM`` does, νΣw times those of the problem above; the certificate speaks of the problem.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import OneClass
    >>> OneClass(nu=1.0).solve(np.eye(2), np.ones(2)).coef
    array([0.5, 0.5])

    """

    learns_from: ClassVar[tuple[str, ...]] = ("none",)
    tunable: ClassVar[str] = "nu"
    tried: ClassVar[tuple[float, ...]] = SHARES

    nu: float = 0.5
    tol: float | None = None

    has_bias = False

    def program(self, y: Vector, weight: Vector) -> DualProgram:
        if not positive("nu", self.nu) <= 1.0:
            raise ValueError(
                f"OneClass needs nu above 0 and at most 1, the share left outside; got {self.nu}."
            )
        zero, group = np.zeros(y.size), np.zeros(y.size, dtype=np.int64)
        return DualProgram(s=zero, d=zero, lo=zero, hi=self._costs(weight), group=group, sums=np.ones(1))

    def loss(self, f: Vector, y: Vector, weight: Vector) -> Loss:  # noqa: ARG002 - there are no labels
        C = self._costs(weight)
        rho = margin_quantile(f, C, 1.0)
        value = float(C @ np.maximum(0.0, rho - f)) - rho
        scale = 1.0 / (self.nu * float(weight.sum()))
        return Loss(
            value, -rho, margin=1.0, gradient_bound=float(np.linalg.norm(C)), curvature_bound=0.0, scale=scale
        )

    def unit(self, K: AnyArray, y: Vector) -> float:  # noqa: ARG002 - the coefficients sum to one
        return float(np.diagonal(K).max())

    def _costs(self, weight: Vector) -> Vector:
        return np.asarray(weight / (self.nu * weight.sum()))
