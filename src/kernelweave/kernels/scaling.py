"""Scalings of a Gram matrix: what they learn, on the training Gram only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave._part import Part
from kernelweave._typing import Matrix, Vector
from kernelweave.kernels.fitted_scaling import (
    Centered,
    Chained,
    FittedScaling,
    Multiplied,
    Spherical,
    inverse_lengths,
)

# A variance below this share of the mean length is the rounding of a constant kernel, not a spread.
CONSTANT = 1e-12


class Scaling(Part, ABC):
    """A rule that brings kernels to one footing; it learns on the training Gram and applies to new rows."""

    @abstractmethod
    def fit(self, K: Matrix) -> FittedScaling:
        """Learn from the training Gram ``K`` and return what applies it."""

    def fit_diagonal(self, diagonal: Vector) -> FittedScaling | None:  # noqa: ARG002 - some need all of K
        """Learn from the diagonal of the training Gram alone; None where that is not enough."""
        return None


@dataclass
class UnitTrace(Scaling):
    r"""Divide by the trace of the training Gram: trace(K) = 1.

    Notes
    -----
    [Yan09], [Liu14]. A kernel of trace 0 is left as it is.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> UnitTrace().fit(np.diag([1.0, 3.0])).rows(np.array([[2.0, 4.0]]))
    array([[0.5, 1. ]])

    """

    def fit(self, K: Matrix) -> FittedScaling:
        return self.fit_diagonal(np.diagonal(K))

    def fit_diagonal(self, diagonal: Vector) -> FittedScaling:
        return Multiplied(inverse(diagonal.sum()))


@dataclass
class UnitMean(Scaling):
    r"""Divide by the mean of the training diagonal: trace(K) = n, so that C means the same for every n.

    Notes
    -----
    UnitTrace times n. A kernel of trace 0 is left as it is.
    Differs from the paper: [Rakotomamonjy08] uses unit trace, which ties C to the number of samples.

    Examples
    --------
    >>> import numpy as np
    >>> UnitMean().fit(np.diag([1.0, 3.0])).rows(np.array([[2.0, 4.0]]))
    array([[1., 2.]])

    """

    def fit(self, K: Matrix) -> FittedScaling:
        return self.fit_diagonal(np.diagonal(K))

    def fit_diagonal(self, diagonal: Vector) -> FittedScaling:
        return Multiplied(inverse(diagonal.mean()))


@dataclass
class UnitDiagonal(Scaling):
    r"""The spherical kernel k(x, z) / sqrt(k(x, x) k(z, z)): every sample has length 1.

    Notes
    -----
    Samples with k(x, x) = 0 stay at the origin: their rows are 0. New rows need their own k(x, x).
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> UnitDiagonal().fit(np.diag([1.0, 4.0])).rows(np.array([[0.0, 4.0]]), np.array([4.0]))
    array([[0., 1.]])

    """

    def fit(self, K: Matrix) -> FittedScaling:
        return self.fit_diagonal(np.diagonal(K))

    def fit_diagonal(self, diagonal: Vector) -> FittedScaling:
        return Spherical(inverse_lengths(diagonal))


@dataclass
class UnitVariance(Scaling):
    r"""Divide by the variance of the training samples in feature space: mean(diag K) - mean(K) = 1.

    Notes
    -----
    [Kloft11] calls it multiplicative normalisation. A constant kernel (no variance) is left as it is.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> UnitVariance().fit(np.array([[1.0, -1.0], [-1.0, 1.0]]) * 4.0).rows(np.array([[4.0, -4.0]]))
    array([[ 1., -1.]])

    """

    def fit(self, K: Matrix) -> FittedScaling:
        length = float(np.diagonal(K).mean())
        variance = length - float(K.mean())
        return Multiplied(inverse(variance) if variance > CONSTANT * length else 1.0)


@dataclass
class Centering(Scaling):
    r"""Move the mean of the training samples to the origin of the feature space: P K P, P = I - 11'/n.

    New rows are centred with the training means: k - rowmean(k) - colmean(K) + mean(K), the mean of a new row
    running over the training samples.

    Notes
    -----
    [Yan09, Sec. II]. A constant kernel becomes exactly 0.
    Symbols: K tilde -> the centred Gram, m -> n samples.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> Centering().fit(np.array([[0.0, 0.0], [0.0, 4.0]])).rows(np.array([[0.0, 8.0]]))
    array([[-3.,  3.]])

    """

    def fit(self, K: Matrix) -> FittedScaling:
        column_means = K.mean(axis=0)
        fitted = Centered(column_means, float(column_means.mean()))
        vanishes = not fitted.diagonal(np.diagonal(K), K).any()
        return Centered(fitted.column_means, fitted.mean, vanishes)


@dataclass
class Chain(Scaling):
    r"""Several scalings, each learnt on what the one before it made of the training Gram.

    Parameters
    ----------
    scalings : sequence of scalings in the order of use; empty changes nothing.

    Notes
    -----
    ``Chain((Centering(), UnitTrace()))`` is the preparation of [Yan09].
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> Chain((Centering(), UnitTrace())).fit(np.diag([2.0, 2.0])).train(np.diag([2.0, 2.0]))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])

    """

    scalings: Sequence[Scaling] = ()

    def fit(self, K: Matrix) -> FittedScaling:
        links = []
        for position, scaling in enumerate(self.scalings):
            links.append(scaling.fit(K))
            if position + 1 < len(self.scalings):  # nobody learns from the last one's result
                K = links[-1].train(K)
        return Chained(tuple(links))

    def fit_diagonal(self, diagonal: Vector) -> FittedScaling | None:
        links = []
        for scaling in self.scalings:
            link = scaling.fit_diagonal(diagonal)
            if link is None:
                return None
            links.append(link)
            diagonal = link.train_diagonal(diagonal)
        return Chained(tuple(links))


def as_scaling(scaling: Scaling | Sequence[Scaling] | None) -> Scaling | None:
    """Return a scaling for a scaling, a sequence of them, or None (which changes nothing)."""
    if scaling is None or isinstance(scaling, Scaling):
        return scaling
    links = tuple(scaling) if isinstance(scaling, list | tuple) else ()
    if links and all(isinstance(link, Scaling) for link in links):
        return Chain(links)
    raise TypeError(
        f"A scaling is UnitTrace(), UnitMean(), UnitDiagonal(), UnitVariance(), Centering(), a tuple of them "
        f"or None, received {scaling!r}."
    )


def inverse(size: float) -> float:
    """Return 1 / size, and 1 for a kernel of no size."""
    return 1.0 / float(size) if size > np.finfo(np.float64).tiny else 1.0
