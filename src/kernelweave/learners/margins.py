"""A learner that asks every sample for a margin of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kernelweave._typing import Vector
from kernelweave.learners.program import DualProgram
from kernelweave.learners.support_vector import Loss, SupportVectorLearner


@dataclass
class ScaledMargins(SupportVectorLearner):
    r"""A learner whose violations are measured against margins τ_i instead of 1.

    .. math:: \xi_i = \max(0, 1 - y_i (f(x_i) + b) / \tau_i)

    Parameters
    ----------
    learner : Hinge or SquaredHinge
        The learner; its loss is a power of the violation, named by its ``degree``.
    margins : array of shape (n,)
        τ > 0; all ones is the learner itself.

    Notes
    -----
    [Liu14, Eq. (11), (13)]: with β = α/τ the dual is that of the learner with the linear term τ'β and the
    costs C τ^-degree, so no kernel is rescaled. Symbols: α/τ∘y → ``coef``.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import Hinge
    >>> from kernelweave.learners.margins import ScaledMargins
    >>> y = np.array([1.0, -1.0])
    >>> inner = ScaledMargins(Hinge(C=10.0), np.array([0.5, 0.5])).solve(np.eye(2), y)
    >>> inner.coef
    array([ 0.5, -0.5])

    """

    learner: SupportVectorLearner
    margins: Vector = field(repr=False)

    @property
    def tol(self) -> float | None:  # type: ignore[override]
        return self.learner.tol

    def program(self, y: Vector, weight: Vector) -> DualProgram:
        return replace(self.learner.program(y, self._costs(weight)), s=y * self.margins)

    def loss(self, f: Vector, y: Vector, weight: Vector) -> Loss:
        # τ - y(f + b) = 1 - y(f - yτ + y + b): the learner's own loss at shifted decision values.
        return self.learner.loss(f - y * self.margins + y, y, self._costs(weight))

    def _costs(self, weight: Vector) -> Vector:
        assert self.learner.degree is not None
        return np.asarray(weight / self.margins**self.learner.degree)
