"""Scalings of a Gram matrix: what they learn, on the training Gram only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kernelweave._part import Part
from kernelweave._typing import Matrix, Vector
from kernelweave.kernels.fitted_scaling import (
    Centered,
    Chained,
    FittedScaling,
    Multiplied,
    ScaledForm,
    Spherical,
    inverse_lengths,
)

# A variance below this share of the mean length is the rounding of a constant kernel, not a spread.
CONSTANT = 1e-12


@dataclass(frozen=True)
class TrainingGram:
    """A training Gram as scalings learn from it: its diagonal, and products with it; it need not exist.

    ``diagonal`` and ``product`` are of the kernel itself, ``form`` is what earlier scalings made of it.
    """

    diagonal: Vector
    product: Callable[[Matrix], Matrix]
    form: ScaledForm

    @classmethod
    def of(cls, K: Matrix) -> TrainingGram:
        """Return what a matrix in memory tells."""
        return cls(np.diagonal(K), lambda V: np.asarray(K @ V), ScaledForm.plain(len(K)))

    @property
    def scaled_diagonal(self) -> Vector:
        """The diagonal after the scalings so far."""
        return self.form.diagonal(self.diagonal)

    @cached_property
    def column_means(self) -> Vector:
        """The mean of every column after the scalings so far: one pass over all pairs."""
        n = self.diagonal.size
        return self.form.products(self.product, self.form, np.full((n, 1), 1.0 / n))[:, 0]

    def after(self, scaling: FittedScaling) -> TrainingGram:
        """Return the Gram after one more scaling."""
        return replace(self, form=scaling.on_training(self.form))


class Scaling(Part, ABC):
    """A rule that brings kernels to one footing; it learns on the training Gram and applies to new rows."""

    @abstractmethod
    def learn(self, gram: TrainingGram) -> FittedScaling:
        """Learn from the training Gram and return what applies it."""

    def fit(self, K: Matrix) -> FittedScaling:
        """Learn from the training Gram ``K`` as a matrix."""
        return self.learn(TrainingGram.of(K))


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

    def learn(self, gram: TrainingGram) -> FittedScaling:
        return Multiplied(inverse(gram.scaled_diagonal.sum()))


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

    def learn(self, gram: TrainingGram) -> FittedScaling:
        return Multiplied(inverse(gram.scaled_diagonal.mean()))


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

    def learn(self, gram: TrainingGram) -> FittedScaling:
        return Spherical(inverse_lengths(gram.scaled_diagonal))


@dataclass
class UnitVariance(Scaling):
    r"""Divide by the variance of the training samples in feature space: mean(diag K) - mean(K) = 1.

    Notes
    -----
    [Kloft11] calls it multiplicative normalisation. A constant kernel (no variance) is left as it is.
    UnitVariance of a kernel far from the origin loses digits: centre the columns first.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> UnitVariance().fit(np.array([[1.0, -1.0], [-1.0, 1.0]]) * 4.0).rows(np.array([[4.0, -4.0]]))
    array([[ 1., -1.]])

    """

    def learn(self, gram: TrainingGram) -> FittedScaling:
        length = float(gram.scaled_diagonal.mean())
        variance = length - float(gram.column_means.mean())
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

    def learn(self, gram: TrainingGram) -> FittedScaling:
        centred = Centered(gram.column_means, float(gram.column_means.mean()))
        return replace(centred, vanishes=not gram.after(centred).scaled_diagonal.any())


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

    def learn(self, gram: TrainingGram) -> FittedScaling:
        links: list[FittedScaling] = []
        for scaling in self.scalings:
            links.append(scaling.learn(gram))
            gram = gram.after(links[-1])
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
