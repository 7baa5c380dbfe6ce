"""The ν form of the hinge loss: the margin is a variable, ν bounds the share of margin errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import DegenerateSamplesError
from kernelweave.learners.base import positive
from kernelweave.learners.bias import margin_quantile
from kernelweave.learners.program import DualProgram
from kernelweave.learners.support_vector import Loss, SupportVectorLearner

# What a search tries of the largest legal nu; it stays below, since classes are not as even in every fold.
SHARES = (0.8, 0.4, 0.2, 0.1, 0.05)


@dataclass
class NuHinge(SupportVectorLearner):
    r"""Support vector classification in the ν form of [Xu13, Eq. (2)–(4)].

    .. math:: \min_{f, b, \rho} \tfrac12\|f\|^2 + C\sum_i \max(0, \rho - y_i(f(x_i) + b)) - \rho
       = \max_{0 \le \alpha \le C,\; y'\alpha = 0,\; 1'\alpha = 1} -\tfrac12 (\alpha∘y)'K(\alpha∘y),
       \quad C = 1/(\nu n)

    Parameters
    ----------
    nu : float, default=0.5
        Between 0 and twice the share of the smaller class: at most this share of the samples lies inside the
        margin, at least this share supports it.
    tol : float or None, default=None
        Relative gap of every inner solve; None lets the outer solver ask for what it needs.

    Notes
    -----
    Weighted samples count by weight: C_i = w_i / (ν Σ w). Fitted estimators divide by ρ, so that decision
    values have the margin at ±1 as in scikit-learn's NuSVC (unless ρ is not above zero, where the classes
    cannot be separated); the certificate speaks of the problem above.
    Symbols: paper α∘y → ``coef``, ρ → ``margin``. Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import NuHinge
    >>> inner = NuHinge(nu=1.0).solve(np.eye(2), np.array([1.0, -1.0]))
    >>> inner.coef
    array([ 0.5, -0.5])

    """

    tunable: ClassVar[str] = "nu"
    decreases_with_margin = True

    nu: float = 0.5
    tol: float | None = None

    def grid(self, y: AnyArray, weight: Vector) -> tuple[float, ...]:
        largest = min(_largest(column, weight) for column in y.T)
        return tuple(share * largest for share in SHARES)

    def program(self, y: Vector, weight: Vector) -> DualProgram:
        largest = _largest(y, weight)
        if not 0.0 < positive("nu", self.nu) <= largest * (1.0 + 1e-12):
            raise DegenerateSamplesError(
                f"NuHinge got nu={self.nu}, but with these classes nu must be above 0 and at most "
                f"{largest:.6g} (twice the weight share of the smaller class)."
            )
        return DualProgram.of_classes(y, self._costs(weight), s=np.zeros(y.size), class_sum=0.5)

    def loss(self, f: Vector, y: Vector, weight: Vector) -> Loss:
        # With ρ± = ρ ∓ b the sum splits by class, and each half is a weighted quantile.
        C, up = self._costs(weight), y > 0
        above = margin_quantile(f[up], C[up], 0.5)
        below = margin_quantile(-f[~up], C[~up], 0.5)
        rho, b = 0.5 * (above + below), 0.5 * (below - above)
        value = float(C @ np.maximum(0.0, rho - y * (f + b))) - rho
        return Loss(value, b, margin=rho, gradient_bound=float(np.linalg.norm(C)), curvature_bound=0.0)

    def unit(self, K: AnyArray, y: Vector) -> float:  # noqa: ARG002 - its coefficients do not grow with y
        # The coefficients have absolute sum one, so no decision value exceeds the largest diagonal entry.
        return float(np.diagonal(K).max())

    def _costs(self, weight: Vector) -> Vector:
        return np.asarray(weight / (self.nu * weight.sum()))


def _largest(y: Vector, weight: Vector) -> float:
    """Return the largest legal nu: beyond it the smaller class cannot hold its half of the coefficients."""
    return float(2.0 * min(weight[y > 0].sum(), weight[y < 0].sum()) / weight.sum())
