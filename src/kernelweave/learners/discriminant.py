"""The discriminant of several classes as one regression on all class indicators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.learners.fisher import ScatterLearner

# Axes that explain less of the class structure than this are rounding.
NEGLIGIBLE = 1e-10


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
            raise ValueError("The discriminant needs samples of every class with some weight.")
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
    total = float(weight.sum())
    explained = targets.T @ (weight[:, None] * fitted) / total
    values, vectors = np.linalg.eigh(0.5 * (explained + explained.T))
    order = [c for c in np.argsort(values)[::-1] if values[c] > NEGLIGIBLE][: targets.shape[1] - 1]
    rho = np.clip(values[order], NEGLIGIBLE, 1.0 - NEGLIGIBLE)
    rotation = vectors[:, order] / np.sqrt(rho * (1.0 - rho))
    counted = weight[:, None] * inside
    centroids = (counted.T @ (fitted @ rotation)) / counted.sum(axis=0)[:, None]
    return Axes(np.asarray(rotation), np.asarray(centroids))
