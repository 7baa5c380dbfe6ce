"""Fisher discriminants as ridge regression on targets made of the labels, and where to cut their axes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.errors import DegenerateSamplesError
from kernelweave.learners.base import positive
from kernelweave.learners.least_squares import LeastSquares
from kernelweave.learners.ridge import Ridge

# Regularisations a search tries unless it is given others; the paper's grid runs from 1e-1 to 1e-9.
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
        """Return the problem in the form all square losses share: with v = α/√(2λ) its value is J₂."""
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
    centred with the training means. The intercept puts zero midway between the projected class
    means, and decision values are those of (1/2λ) Σ α_i k̃(x_i, x).
    Weighted samples count by weight, in m⁺ and m⁻, in the means and in the loss.
    Differs from the paper: the threshold, on which it is silent; weights.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import Fisher
    >>> inner = Fisher(reg=1.0).solve(np.eye(2), np.array([1.0, -1.0]))
    >>> round(inner.primal, 12)  # a = (1, -1) and half of the kernel's energy is kept
    1.0

    """

    def targets(self, Y: Matrix, weight: Vector) -> Matrix:
        """Return the centred labels, one column per problem."""
        up = Y > 0.0
        positives, negatives = weight @ up, weight @ ~up
        if (positives <= 0.0).any() or (negatives <= 0.0).any():
            raise DegenerateSamplesError(
                "The Fisher discriminant needs samples of both classes with some weight."
            )
        return np.where(up, 1.0 / positives, -1.0 / negatives)

    def intercept(self, F: Matrix, Y: Matrix, weight: Vector, ridge: Ridge) -> Vector:  # noqa: ARG002
        up = Y > 0.0
        above = weight @ np.where(up, F, 0.0) / (weight @ up)
        below = weight @ np.where(up, 0.0, F) / (weight @ ~up)
        return np.asarray(-0.5 * (above + below))


@dataclass
class Discriminant(ScatterLearner):
    r"""The regularised kernel discriminant of several classes, all of them in one problem.

    .. math:: \min_W \|\tilde\Phi'W - H\|_F^2 + \lambda\|W\|_F^2
       = \sum_c h_c'(I + \tilde K/\lambda)^{-1}h_c, \qquad
       h_{ic} = [y_i = c]\sqrt{n/n_c} - \sqrt{n_c/n}

    Its minimum is n(k − 1) less n times the largest trace of (S_T + λI)⁻¹S_B, whose axes `axes` returns.

    Parameters
    ----------
    reg : float, default=1e-4
        λ > 0, in the units of the kernels.

    Notes
    -----
    The joint form of [Ye08] in the notation of [Yan09]. y has one column of ±1 per class. With two classes
    the axis is that of `Fisher`.
    Differs from the paper: one set of weights in any geometry; sample weights count as repeated samples.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.learners import Discriminant
    >>> Y = 2.0 * np.eye(3) - 1.0
    >>> round(Discriminant(reg=1.0).solve(np.eye(3), Y).primal, 12)  # half of tr H'H = 3 (3 - 1)
    3.0

    """

    def targets(self, Y: Matrix, weight: Vector) -> Matrix:
        """Return the centred and scaled class indicators H."""
        inside = Y > 0.0
        share = weight @ inside / weight.sum()
        if (share <= 0.0).any():
            raise DegenerateSamplesError("The discriminant needs samples of every class with some weight.")
        return np.asarray(inside / np.sqrt(share) - np.sqrt(share))


@dataclass(frozen=True)
class Axes:
    """Discriminant axes as combinations of the regressions' columns, and the class centroids along them.

    Centred values of the regressions times ``rotation`` are the coordinates, in which the scatter within the
    classes, ridge included, is a unit matrix.
    """

    rotation: Matrix
    centroids: Matrix


def axes(fitted: Matrix, targets: Matrix, inside: AnyArray, weight: Vector) -> Axes:
    r"""Return the axes that the regularised trace criterion finds, the most telling first.

    With fitted values F = S H of the regressions, H'F/n = Θ diag(ρ) Θ' has the eigenvalues ρ of
    (S_T + λI)⁻¹S_B, and FΘ scaled by (ρ(1 − ρ))^(−1/2) has unit within-class scatter, the ridge included
    (optimal scoring, [Hastie94]).
    """
    negligible = 1e-10  # axes that explain less of the class structure than this are rounding
    total = float(weight.sum())
    explained = targets.T @ (weight[:, None] * fitted) / total
    values, vectors = np.linalg.eigh(0.5 * (explained + explained.T))
    order = [c for c in np.argsort(values)[::-1] if values[c] > negligible][: targets.shape[1] - 1]
    rho = np.clip(values[order], negligible, 1.0 - negligible)
    rotation = vectors[:, order] / np.sqrt(rho * (1.0 - rho))
    counted = weight[:, None] * inside
    centroids = (counted.T @ (fitted @ rotation)) / counted.sum(axis=0)[:, None]
    return Axes(np.asarray(rotation), np.asarray(centroids))


def fewest_errors(values: Vector, above: AnyArray, weight: Vector, near: float) -> float:
    """Return the cut with the least weight of samples on the wrong side.

    ``above`` marks the samples that belong above it; one at the cut counts as below. Of equally good cuts the
    one nearest to ``near`` is taken: ``near`` itself where it is as good as any, else the middle of the
    nearest stretch without samples.
    """
    order = np.argsort(values)
    levels = values[order]
    signed = np.where(above, weight, -weight)[order]
    # Cut k lies above the k lowest values: moving one more below it is an error if it belongs above.
    errors = np.concatenate([[0.0], np.cumsum(signed)])
    errors[1:-1][levels[1:] == levels[:-1]] = np.inf  # no cut lies between equal values
    best = np.flatnonzero(errors <= errors.min() + 1e-12 * weight.sum())
    edges = np.concatenate([[-np.inf], levels, [np.inf]])
    lower, upper = edges[best], edges[best + 1]
    if ((lower <= near) & (near < upper)).any():
        return near
    closest = int(np.argmin(np.minimum(np.abs(lower - near), np.abs(upper - near))))
    low, high = lower[closest], upper[closest]
    if not np.isfinite(low):
        return float(np.nextafter(high, -np.inf))
    return float(low if not np.isfinite(high) else 0.5 * (low + high))
