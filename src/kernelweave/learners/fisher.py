"""The Fisher discriminant as ridge regression on the centred labels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.learners.least_squares import LeastSquares
from kernelweave.learners.ridge import Ridge
from kernelweave.learners.validation import positive

# Regularisations a search tries if it is not told which; the paper's grid runs from 1e-1 to 1e-9.
REGULARISATIONS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


@dataclass
class ScatterLearner(LeastSquares):
    """Regression on targets a made of labels: ||Φ̃'w − a||² + λ||w||², whose minimum is J₂."""

    tunable: ClassVar[str] = "reg"
    tried: ClassVar[tuple[float, ...]] = REGULARISATIONS

    reg: float = 1e-4

    def scale(self) -> float:
        return float(np.sqrt(2.0 * self.reg))

    def ridge(self, Y: Matrix, weight: Vector) -> Ridge:
        """Return the problem in the form the machines share: with v = α/√(2λ) its value is J₂."""
        reg = positive("reg", self.reg)
        d = np.divide(reg, weight, out=np.full(weight.size, np.inf), where=weight > 0.0)
        return Ridge(np.sqrt(2.0 * reg) * self.targets(Y, weight), d, has_bias=True)

    @abstractmethod
    def targets(self, Y: Matrix, weight: Vector) -> Matrix:
        """Return the targets, one column per problem, of labels Y = ±1."""


@dataclass
class Fisher(ScatterLearner):
    r"""The regularised kernel Fisher discriminant of two classes.

    .. math:: J_2 = \min_w \|\tilde\Phi'w - a\|^2 + \lambda\|w\|^2
       = \max_\alpha \alpha'a - \tfrac14\alpha'\alpha - \tfrac1{4\lambda}\alpha'\tilde K\alpha,
       \qquad a_i = 1/m^+ \text{ or } -1/m^-

    Maximising the ratio of between-class to total scatter with a ridge λ has the same solution, with the
    value a'a − J₂. K̃ is the kernel centred in feature space.

    Parameters
    ----------
    reg : float, default=1e-4
        λ > 0, in the units of the kernels: it is added to the scatter in feature space. Kernels of unit trace
        go with the paper's 1e-4.

    Notes
    -----
    [Yan09, Eq. (6)–(11), (14), (20)], [Ye08]. Symbols: α/√(2λ) → ``coef``, λ → ``reg``.
    Σ a_i = 0, so a free intercept centres the kernels: nothing is centred by hand, and new samples are
    centred with the training means. The machine's intercept puts zero midway between the projected class
    means, and decision values are those of (1/2λ) Σ α_i k̃(x_i, x).
    Weighted samples count by weight, in m⁺ and m⁻, in the means and in the loss.
    Differs from the paper: the threshold, on which it is silent; weights.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import Fisher
    >>> machine = Fisher(reg=1.0).solve(np.eye(2), np.array([1.0, -1.0]))
    >>> round(machine.primal, 12)  # a = (1, -1) and half of the kernel's energy is kept
    1.0

    """

    def targets(self, Y: Matrix, weight: Vector) -> Matrix:
        """Return the centred labels, one column per problem."""
        up = Y > 0.0
        positives, negatives = weight @ up, weight @ ~up
        if (positives <= 0.0).any() or (negatives <= 0.0).any():
            raise ValueError("The Fisher discriminant needs samples of both classes with some weight.")
        return np.where(up, 1.0 / positives, -1.0 / negatives)

    def intercept(self, F: Matrix, Y: Matrix, weight: Vector, ridge: Ridge) -> Vector:  # noqa: ARG002
        up = Y > 0.0
        above = weight @ np.where(up, F, 0.0) / (weight @ up)
        below = weight @ np.where(up, 0.0, F) / (weight @ ~up)
        return np.asarray(-0.5 * (above + below))
