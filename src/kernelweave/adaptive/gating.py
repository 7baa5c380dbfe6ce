"""Gatings: kernel weights that are functions of a few features of the sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from kernelweave._part import Part
from kernelweave._typing import Matrix


@dataclass
class Gating(Part, ABC):
    """Weights eta_m(x) of linear scores a_m(x) = u_m'x + u_m0.

    ``features`` are what x is: columns of a table, or names of views; None is all of them.
    """

    features: Any = None

    @abstractmethod
    def weights(self, scores: Matrix) -> Matrix:
        """Return the weights (n, M) of scores (n, M)."""

    @abstractmethod
    def pull(self, weights: Matrix, slopes: Matrix) -> Matrix:
        """Return the slopes in the scores, given those in the weights, at these weights."""


@dataclass
class Softmax(Gating):
    r"""Kernels compete: eta_m(x) = exp(a_m(x)) / Σ_k exp(a_k(x)).

    Parameters
    ----------
    features : columns of the table (names, positions, slice, mask, callable) or names of views, default=None
        What the gating looks at; None is all of them.

    Notes
    -----
    [Gonen08, Eq. (4)]. Differs from the paper: features are standardised.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.adaptive.gating import Softmax
    >>> Softmax().weights(np.zeros((1, 4)))
    array([[0.25, 0.25, 0.25, 0.25]])

    """

    def weights(self, scores: Matrix) -> Matrix:
        return np.asarray(softmax(scores, axis=1))

    def pull(self, weights: Matrix, slopes: Matrix) -> Matrix:
        return np.asarray(weights * (slopes - (weights * slopes).sum(axis=1)[:, None]))


@dataclass
class Sigmoid(Gating):
    r"""Kernels count independently: eta_m(x) = 1 / (1 + exp(-a_m(x))).

    Parameters
    ----------
    features : columns of the table (names, positions, slice, mask, callable) or names of views, default=None
        What the gating looks at; None is all of them.

    Notes
    -----
    The alternative gating of [Gonen13]. Differs from the paper: features are standardised.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.adaptive.gating import Sigmoid
    >>> Sigmoid().weights(np.zeros((1, 2)))
    array([[0.5, 0.5]])

    """

    def weights(self, scores: Matrix) -> Matrix:
        return np.asarray(expit(scores))

    def pull(self, weights: Matrix, slopes: Matrix) -> Matrix:
        return np.asarray(weights * (1.0 - weights) * slopes)
