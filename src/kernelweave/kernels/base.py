"""The two base classes of kernels: any kernel, and kernels that are functions of one distance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from kernelweave._part import Part
from kernelweave._typing import Matrix, Vector
from kernelweave.kernels.distances import is_sparse
from kernelweave.kernels.objects import as_cells, is_numeric
from kernelweave.kernels.pairs import Pairs

if TYPE_CHECKING:
    from kernelweave.kernels.groups import KernelGroup


class Formula(NamedTuple):
    """A kernel as the compiled loops compute it: a function of t, a squared distance or an inner product.

    ``argument`` is "sqeuclidean" or "inner"; ``function`` is "exp" for exp(-gamma t), "exp_root" for
    exp(-sqrt(gamma t)), "inverse" for 1 / (1 + gamma t), "inverse_root" for 1 / (1 + sqrt(gamma t)), or
    "power" for (gamma t + offset)^degree.
    """

    argument: str
    function: str
    gamma: float = 1.0
    offset: float = 0.0
    degree: int = 1


# A dense float64 matrix, a scipy sparse one where the kernel accepts it, or an object array (samples, columns).
Rows: TypeAlias = Any
# What a kernel reads: numbers, objects such as strings and sets, or either, whichever the training samples are.
Reads: TypeAlias = Literal["numbers", "objects", "either"]


class Kernel(Part, ABC):
    """A positive semidefinite function k(x, z) of two samples.

    A kernel is a value: ``resolve`` returns a new kernel with the numbers it learns from the training
    rows, calling it returns a matrix, and nothing changes it. Subclasses write ``label``, ``matrix`` and
    ``diagonal_of``; a kernel with an open number also writes ``resolve_from``.
    """

    # What its rows hold.
    reads: ClassVar[Reads] = "numbers"
    accepts_sparse: ClassVar[bool] = False
    # Whether it is the inner product of the rows.
    is_linear: ClassVar[bool] = False
    # The input of a pairwise kernel is a block (rows, training samples), not features of the rows.
    pairwise: ClassVar[bool] = False
    # True for functions of the user: that they are kernels is checked on some of the training samples.
    needs_check: ClassVar[bool] = False
    # False when k(x, x) of a new row cannot be known from that row.
    knows_diagonal: ClassVar[bool] = True
    # True when k(x, z) depends on all training samples, so that it is not known from some of them.
    of_training: ClassVar[bool] = False

    @property
    @abstractmethod
    def label(self) -> str:
        """Short readable text made of the parameters, the same whatever the data."""

    @abstractmethod
    def matrix(self, pairs: Pairs) -> Matrix:
        """Return k(X, Z) for pairs of checked rows; exactly symmetric when ``Z`` is None."""

    @abstractmethod
    def diagonal_of(self, X: Rows) -> Vector:
        """Return k(x, x) for checked rows."""

    def check(self) -> None:
        """Raise ValueError when a parameter is out of range."""

    def formula(self) -> Formula | None:
        """Return the kernel as the compiled loops compute it, None where they cannot."""
        return None

    def own_group(self, X: Rows) -> KernelGroup | None:  # noqa: ARG002 - most have none
        """Return what evaluates this kernel alone on pairs with training rows ``X``, None where it has none."""
        return None

    def for_columns(self, names: Sequence[str | int]) -> Self:  # noqa: ARG002 - most take all columns
        """Return this kernel for rows with these columns: names in it become positions."""
        return self

    def resolve(self, X: Rows) -> Self:
        """Return this kernel with every open number learnt from the training rows ``X``."""
        return self.resolve_from(Pairs(self.rows(X)))

    def resolve_from(self, pairs: Pairs) -> Self:  # noqa: ARG002 - most kernels have nothing open
        """Do what ``resolve`` does, from pairs of training rows that other kernels may share."""
        self.check()
        return self

    def __call__(self, X: Rows, Z: Rows | None = None) -> Matrix:
        """Return the matrix k(X, Z); ``Z=None`` is ``X`` itself."""
        self.check()
        return self.matrix(Pairs(self.rows(X), None if Z is None else self.rows(Z)))

    def diagonal(self, X: Rows) -> Vector:
        """Return k(x, x) for every row of ``X`` without forming the matrix."""
        self.check()
        return self.diagonal_of(self.rows(X))

    def rows(self, X: Rows) -> Rows:
        """Return ``X`` as the rows this kernel works on: float64, or an object array (samples, columns)."""
        if self.reads == "objects" or (self.reads == "either" and not is_numeric(X)):
            return as_cells(X, self.label)
        if is_sparse(X):
            if not self.accepts_sparse:
                raise TypeError(
                    f"{self.label} does not accept a sparse matrix of shape {X.shape}; "
                    "pass X.toarray(), or use Linear, Polynomial or Gaussian."
                )
            return X.tocsr().astype(np.float64, copy=False)
        X = self._as_floats(X)
        if X.ndim != 2:
            raise ValueError(
                f"{self.label} needs a 2-D array of rows, received {X.ndim} dimension(s) of shape {X.shape}; "
                "use X.reshape(-1, 1) for one column."
            )
        return X

    def _as_floats(self, X: Rows) -> Matrix:
        try:
            return np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{self.label} reads numbers ({error}); use Spectrum, Jaccard or another kernel of objects, or "
                "take the columns of numbers by kernel.on(columns)."
            ) from None

    # -- algebra

    def __add__(self, other: Any) -> Kernel:
        """Return k + other."""
        from kernelweave.kernels.algebra import Sum

        if isinstance(other, Kernel):
            return Sum(self, other)
        return NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        """Return the product with a kernel or with a number above 0."""
        from kernelweave.kernels.algebra import Multiple, Product

        if isinstance(other, Kernel):
            return Product(self, other)
        if isinstance(other, Real):
            return Multiple(self, float(other))
        return NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        """Return a number times the kernel."""
        return self.__mul__(other)

    def __pow__(self, degree: int) -> Kernel:
        """Return k^degree, entry by entry."""
        from kernelweave.kernels.algebra import Power

        return Power(self, degree)

    def normalized(self) -> Kernel:
        """Return k(x, z) / sqrt(k(x, x) k(z, z))."""
        from kernelweave.kernels.algebra import Normalized

        return Normalized(self)

    def on(self, columns: Any) -> Kernel:
        """Return this kernel of some columns: a name or position, a list of them, or a slice of positions."""
        from kernelweave.kernels.algebra import OnColumns

        return OnColumns(self, columns)

    def repaired(self, how: str = "clip") -> Kernel:
        """Return the kernel without negative eigenvalues on the training samples: "clip", "flip" or "shift"."""
        from kernelweave.kernels.repair import Repaired

        return Repaired(self, how)


class DistanceKernel(Kernel):
    """A kernel k = phi(d) of one distance d: kernels with the same ``metric`` share its matrix.

    Subclasses are dataclasses with a field ``gamma`` (None: learnt) and a field ``mean_`` for the one number
    they learn, the mean distance between training samples.
    """

    metric: ClassVar[str]
    gamma: float | None
    mean_: float | None

    @abstractmethod
    def from_distances(self, D: Matrix) -> Matrix:
        """Return the kernel matrix of a matrix of ``metric`` values, which is left as it is."""

    @abstractmethod
    def gamma_for(self, mean: float) -> float:
        """Return the gamma that the mean training distance suggests."""

    @property
    def is_open(self) -> bool:
        """True while a number has still to be learnt."""
        return self.gamma is None and self.mean_ is None

    @property
    def rate(self) -> float:
        """The gamma in use, given or learnt."""
        if self.gamma is not None:
            return float(self.gamma)
        if self.mean_ is None:
            raise ValueError(
                f"{self.label} has not learnt its gamma; call kernel.resolve(X_train) first, or give gamma."
            )
        return self.gamma_for(self.mean_)

    def resolve_from(self, pairs: Pairs) -> Self:
        self.check()
        if not self.is_open:
            return self
        mean = pairs.mean(self.metric)
        resolved = copy(self)
        # Where all samples coincide no scale is better than another: 1 divides safely.
        resolved.mean_ = mean if mean > np.finfo(np.float64).tiny else 1.0
        return resolved

    def matrix(self, pairs: Pairs) -> Matrix:
        return self.from_distances(pairs.matrix(self.metric))

    def diagonal_of(self, X: Rows) -> Vector:
        return np.ones(X.shape[0])


class ScaledKernel(DistanceKernel):
    """A distance kernel with gamma = scale / mean(d), the mean over the training pairs i != j."""

    stem: ClassVar[str]
    scale: float

    @property
    def label(self) -> str:
        return f"{self.stem}({self.spread})"

    @property
    def spread(self) -> str:
        """The parameter that decides the width, as text."""
        return f"scale={self.scale:g}" if self.gamma is None else f"gamma={self.gamma:g}"

    def check(self) -> None:
        require_positive(self, "gamma", self.gamma, optional=True)
        require_positive(self, "scale", self.scale)

    def gamma_for(self, mean: float) -> float:
        return self.scale / mean


def require_whole(kernel: Kernel, name: str, value: int) -> None:
    """Raise ValueError unless ``value`` is a whole number above zero."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(
            f"{type(kernel).__name__} cannot use {name}={value!r}; it has to be a whole number >= 1."
        )


def require_positive(kernel: Kernel, name: str, value: float | None, *, optional: bool = False) -> None:
    """Raise ValueError unless ``value`` is a finite number above zero (or None where that is allowed)."""
    if value is None and optional:
        return
    if not isinstance(value, Real) or not 0.0 < float(value) < np.inf:
        raise ValueError(
            f"{type(kernel).__name__} cannot use {name}={value!r}; {name} has to be a finite number above 0"
            f"{' or None' if optional else ''}."
        )
