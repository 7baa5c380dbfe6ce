"""Kernels of what the user computed: a distance matrix, a kernel matrix, or any function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import Matrix, Vector
from kernelweave.kernels.base import DistanceKernel, Kernel, Reads, Rows, require_positive
from kernelweave.kernels.checks import check_minors, check_symmetric, symmetrised
from kernelweave.kernels.distances import check_block, is_sparse
from kernelweave.kernels.pairs import Pairs

# Functions of the user are asked for about this many values at a time.
ENTRIES = 1 << 20
# Functions of t = d / gamma, by name.
FORMS: dict[str, Callable[[Matrix], Matrix]] = {
    "exp": lambda t: np.exp(-t),
    "gaussian": lambda t: np.exp(-(t**2)),
    "inverse": lambda t: 1.0 / (1.0 + t),
    "inverse_square": lambda t: 1.0 / (1.0 + t**2),
}


@dataclass
class ExpDistance(DistanceKernel):
    r"""The kernel k = exp(-d / gamma) of a precomputed distance d, or another function of it.

    The input is a block (rows, training samples) of distances, square for the training samples themselves;
    a ``Z`` only says that the rows are new ones.

    Parameters
    ----------
    gamma : number > 0 or None; None learns the mean distance between training samples.
    form : "exp" for exp(-d / gamma), "gaussian" for exp(-(d / gamma)^2), "inverse" for 1 / (1 + d / gamma),
        "inverse_square" for 1 / (1 + (d / gamma)^2).

    Notes
    -----
    [Orabona10, Sec. 4.1]: exp(-d / gamma), gamma the mean of the pairwise distances.
    Differs from the paper: the mean runs over the pairs i != j (the paper does not say if zeros i = j count), and
    there are other forms. It is positive semidefinite only for some distances: the Euclidean and the root of the
    chi-squared one in every form, the city-block and chi-squared ones for "exp" and "inverse", for example.
    ``ExpDistance().repaired()`` makes it so for any.

    Examples
    --------
    >>> import numpy as np
    >>> D_train = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> ExpDistance().resolve(D_train)(np.array([[2.0, 4.0]]), D_train).round(4)
    array([[0.3679, 0.1353]])
    >>> ExpDistance(gamma=2.0, form="inverse")(D_train)
    array([[1. , 0.5],
           [0.5, 1. ]])

    """

    metric: ClassVar[str] = "given"
    pairwise: ClassVar[bool] = True

    gamma: float | None = None
    form: str = "exp"
    mean_: float | None = field(default=None, init=False, repr=False)

    @property
    def label(self) -> str:
        form = [] if self.form == "exp" else [f"form={self.form}"]
        parts = form if self.gamma is None else [*form, f"gamma={self.gamma:g}"]
        return f"exp_distance({', '.join(parts)})" if parts else "exp_distance"

    def check(self) -> None:
        require_positive(self, "gamma", self.gamma, optional=True)
        if self.form not in tuple(FORMS):
            raise ValueError(
                f"ExpDistance cannot use form={self.form!r}; it has to be one of {', '.join(FORMS)}."
            )

    def gamma_for(self, mean: float) -> float:
        return mean

    def from_distances(self, D: Matrix) -> Matrix:
        return np.asarray(FORMS[self.form](D / self.rate))


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

    label = "precomputed"

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
    function : callable of two sets of samples that returns (samples of X, samples of Z), positive semidefinite.
        Samples are rows of a float64 array (CSR where the table is sparse), or a 1-D array of objects such as
        strings or graphs where the column holds objects; a 2-D one for several columns of them.
    name : text for the label; None takes the function's own name.

    Notes
    -----
    The function is called with some rows of X at a time, so that its value for a pair may depend on this pair
    only; ``diagonal`` calls it on a few rows with themselves.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> FromFunction(lambda X, Z: X @ Z.T, name="mine")([[2.0]], [[3.0]])
    array([[6.]])
    >>> def same_length(X, Z):
    ...     return np.array([[float(len(x) == len(z)) for z in Z] for x in X])
    >>> FromFunction(same_length)(["ab", "cd", "e"])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])

    """

    needs_check: ClassVar[bool] = True
    accepts_sparse: ClassVar[bool] = True
    reads: ClassVar[Reads] = "either"

    function: Callable[[Any, Any], Any]
    name: str | None = None

    @property
    def label(self) -> str:
        return self.name or str(getattr(self.function, "__name__", type(self.function).__name__))

    def check(self) -> None:
        if not callable(self.function):
            raise TypeError(f"FromFunction needs a callable (X, Z) -> matrix, received {self.function!r}.")

    def matrix(self, pairs: Pairs) -> Matrix:
        Z = pairs.X if pairs.Z is None else pairs.Z
        n, width = int(pairs.X.shape[0]), int(Z.shape[0])
        K = np.empty((n, width))
        step = max(1, ENTRIES // max(width, 1))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            K[rows] = self._values(pairs.X[rows], Z)
        if pairs.Z is not None:
            return K
        check_symmetric(K, f"Kernel {self.label!r}")
        check_minors(K, f"Kernel {self.label!r}")
        return symmetrised(K)

    def _values(self, X: Rows, Z: Rows) -> Matrix:
        found = self.function(_as_given(X), _as_given(Z))
        K = np.asarray(found.toarray() if is_sparse(found) else found, dtype=np.float64)
        shape = (X.shape[0], Z.shape[0])
        if K.shape != shape:
            raise ValueError(
                f"The function of kernel {self.label!r} returned shape {K.shape}; it has to return {shape}, "
                "one row per row of X and one column per row of Z."
            )
        return K

    def diagonal_of(self, X: Rows) -> Vector:
        step = 32  # rows at a time: fewer calls, and little more than the diagonal is computed
        blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
        return np.concatenate([np.diagonal(self._values(rows, rows)) for rows in blocks])


def _as_given(X: Rows) -> Any:
    """Return one column of objects as a 1-D array, anything else as it is."""
    return X[:, 0] if X.dtype == object and X.shape[1] == 1 else X
