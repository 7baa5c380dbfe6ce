"""The learner that sets the classes apart by their weighted means: a distribution over each of them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import DegenerateSamplesError
from kernelweave.learners.bias import best_margin
from kernelweave.learners.program import DualProgram
from kernelweave.learners.support_vector import Loss, SupportVectorLearner

# What a search tries, from the class means to the points where the classes are nearest.
TRADES = (0.99, 0.9, 0.5, 0.1, 0.01)


@dataclass
class MarginDistribution(SupportVectorLearner):
    r"""Kernel optimisation of the margin distribution (KOMD), the learner inside EasyMKL.

    .. math:: \min_{\gamma \in \Gamma} \tfrac12 v'Kv + \tfrac{\lambda}{2(1-\lambda)} \|\gamma\|^2,
       \quad v = \gamma∘y, \quad \Gamma = \{\gamma \ge 0,\; \textstyle\sum_{y_i=+1}\gamma_i = 1,\;
       \sum_{y_i=-1}\gamma_i = 1\}

    Parameters
    ----------
    lam : float, default=0.1
        0 ≤ λ < 1. At 0 the hulls of the classes are set apart (the hard margin); towards 1 γ becomes even
        and the classifier that of the class means.
    tol : float or None, default=None
        Relative gap of every inner solve; None lets the outer solver ask for what it needs.

    Notes
    -----
    [Aiolli08]; [Aiolli15, Sec. 2], whose objective (1−λ) γ'YKYγ + λ‖γ‖² is 2(1−λ) times this one. As there
    the threshold lies in the middle between the two class means weighted by γ; fitted estimators divide by
    half their distance, so that these means have the decision values ±1. A sample of weight w pays λγ²/w.
    With `LpBall` (p = 2) `MKLClassifier` solves EasyMKL's problem before its relaxation, certified.
    Symbols: paper γ∘y → ``coef``. Differs from the paper: λ = 1 itself, where the kernel no longer matters
    to γ, is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import MarginDistribution
    >>> inner = MarginDistribution(lam=0.5).solve(np.eye(4), np.array([1.0, 1.0, 1.0, -1.0]), tol=1e-9)
    >>> inner.coef.round(3)
    array([ 0.333,  0.333,  0.333, -1.   ])

    """

    tunable: ClassVar[str] = "lam"
    tried: ClassVar[tuple[float, ...]] = TRADES

    lam: float = 0.1
    tol: float | None = None

    def program(self, y: Vector, weight: Vector) -> DualProgram:
        if not (weight[y > 0] > 0).any() or not (weight[y <= 0] > 0).any():
            raise DegenerateSamplesError("MarginDistribution needs samples of both classes with some weight.")
        ceiling = np.where(weight > 0, 1.0, 0.0)  # no share exceeds the whole
        d = np.divide(self._trade(), weight, out=np.zeros(y.size), where=weight > 0)
        return DualProgram.of_classes(y, ceiling, s=np.zeros(y.size), d=d, class_sum=1.0)

    def loss(self, f: Vector, y: Vector, weight: Vector) -> Loss:
        # Primal: Σ w_i max(0, ρ_y − y_i f_i)² / (2c) − ρ₊ − ρ₋, so each class has its own best ρ.
        trade, value, means, shares = self._trade(), 0.0, [], []
        for sign in (1.0, -1.0):
            used = (y == sign) & (weight > 0)
            margin = best_margin(sign * f[used], weight[used], trade)
            value += margin.value
            means.append(float(margin.shares @ f[used]))
            shares.append(margin.shares)
        above, below = means
        return Loss(
            value=value,
            intercept=-0.5 * (above + below),
            margin=0.5 * (above - below),
            gradient_bound=float(np.linalg.norm(np.concatenate(shares))) if trade else float(np.sqrt(2.0)),
            curvature_bound=float(weight.max() / trade) if trade else 0.0,
        )

    def unit(self, K: AnyArray, y: Vector) -> float:  # noqa: ARG002 - its coefficients do not grow with y
        # Each class has coefficients of sum one, so decision values stay below twice the largest entry.
        return float(np.diagonal(K).max())

    def _trade(self) -> float:
        """Return c = λ/(1−λ), what a unit of ‖γ‖² costs beside one of v'Kv."""
        lam = self.lam
        if isinstance(lam, bool) or not isinstance(lam, Real) or not 0.0 <= float(lam) < 1.0:
            raise ValueError(f"lam must be a number from 0 to below 1; got {lam!r}.")
        return float(lam) / (1.0 - float(lam))
