"""Kernels of what the user computed: a distance matrix, a kernel matrix, or any function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.kernels.base import DistanceKernel, Kernel, Rows, require_positive
from kernelweave.kernels.checks import check_minors, check_symmetric, symmetrised
from kernelweave.kernels.distances import check_block
from kernelweave.kernels.pairs import Pairs


@dataclass
class ExpDistance(DistanceKernel):
    r"""The kernel k = exp(-d / gamma) of a precomputed distance d.

    The input is a block (rows, training samples) of distances, square for the training samples themselves;
    a ``Z`` only says that the rows are new ones.

    Parameters
    ----------
    gamma : number > 0 or None; None learns the mean distance between training samples.

    Notes
    -----
    [Orabona10, Sec. 4.1]: exp(-d / gamma), gamma the mean of the pairwise distances.
    Differs from the paper: the mean runs over the pairs i != j (the paper does not say if zeros i = j count).
    It is positive semidefinite only for some distances (Euclidean and chi-squared ones, for example).

    Examples
    --------
    >>> import numpy as np
    >>> D_train = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> ExpDistance().resolve(D_train)(np.array([[2.0, 4.0]]), D_train).round(4)
    array([[0.3679, 0.1353]])

    """

    metric: ClassVar[str] = "given"
    pairwise: ClassVar[bool] = True

    gamma: float | None = None
    mean_: float | None = field(default=None, init=False, repr=False)

    @property
    def label(self) -> str:
        return "exp_distance" if self.gamma is None else f"exp_distance(gamma={self.gamma:g})"

    def check(self) -> None:
        require_positive(self, "gamma", self.gamma, optional=True)

    def gamma_for(self, mean: float) -> float:
        return mean

    def from_distances(self, D: Matrix) -> Matrix:
        return np.exp(D / -self.rate)


@dataclass
class Precomputed(Kernel):
    r"""The kernel whose input already is the kernel: a block (rows, training samples), K[i, j] = k(x_i, z_j).

    The block of the training samples is square and symmetric; a ``Z`` only says that the rows are new ones.
    A new row does not show its k(x, x), so scalings that need it cannot be used.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> Precomputed()(np.array([[1.0, 0.5], [0.5, 1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])

    """

    pairwise: ClassVar[bool] = True
    knows_diagonal: ClassVar[bool] = False

    @property
    def label(self) -> str:
        return "precomputed"

    def matrix(self, pairs: Pairs) -> Matrix:
        if pairs.Z is not None:
            check_block(pairs.X, pairs.Z)
            return np.asarray(pairs.X)
        check_symmetric(pairs.X, "The precomputed kernel")
        check_minors(pairs.X, "The precomputed kernel")
        return symmetrised(pairs.X)

    def diagonal_of(self, X: Rows) -> Vector:
        if X.shape[0] != X.shape[1]:
            raise ValueError(
                f"A precomputed block of shape {X.shape} does not hold k(x, x) of its rows; "
                "only the square block of the training samples does."
            )
        return np.diagonal(X).copy()


@dataclass
class FromFunction(Kernel):
    r"""A kernel of the user's own: ``function(X, Z)`` returns the matrix k(X, Z).

    Parameters
    ----------
    function : callable of two 2-D float64 arrays that returns (rows of X, rows of Z), positive semidefinite.
    name : text for the label; None takes the function's own name.

    Notes
    -----
    Differs from the paper: nothing. ``diagonal`` calls the function on a few rows at a time.

    Examples
    --------
    >>> FromFunction(lambda X, Z: X @ Z.T, name="mine")([[2.0]], [[3.0]])
    array([[6.]])

    """

    needs_check: ClassVar[bool] = True

    function: Callable[[Any, Any], Any]
    name: str | None = None

    @property
    def label(self) -> str:
        return self.name or str(getattr(self.function, "__name__", type(self.function).__name__))

    def check(self) -> None:
        if not callable(self.function):
            raise TypeError(f"FromFunction needs a callable (X, Z) -> matrix, received {self.function!r}.")

    def matrix(self, pairs: Pairs) -> Matrix:
        X, Z = pairs.X, pairs.X if pairs.Z is None else pairs.Z
        K = np.asarray(self.function(X, Z), dtype=np.float64)
        shape = (X.shape[0], Z.shape[0])
        if K.shape != shape:
            raise ValueError(
                f"The function of kernel {self.label!r} returned shape {K.shape}; it has to return {shape}, "
                "one row per row of X and one column per row of Z."
            )
        if pairs.Z is not None:
            return K
        check_symmetric(K, f"Kernel {self.label!r}")
        check_minors(K, f"Kernel {self.label!r}")
        return symmetrised(K)

    def diagonal_of(self, X: Rows) -> Vector:
        step = 32  # rows at a time: fewer calls, and little more than the diagonal is computed
        blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
        return np.concatenate([np.diagonal(self.matrix(Pairs(rows, rows))) for rows in blocks])
