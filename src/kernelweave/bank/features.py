"""Explicit features that stand for kernels: values at landmarks, or random Fourier features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave._part import Part
from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank.fitted import FittedBank
from kernelweave.bank.protocol import FittedKernels
from kernelweave.kernels.base import Formula
from kernelweave.views.tables import is_sparse

# Directions of the landmarks' kernel below this share of the largest are rounding.
RANK = 1e-10


class Features(Part, ABC):
    """A way to replace every kernel of a bank by explicit features with k(x, z) ≈ φ(x)'φ(z)."""

    @abstractmethod
    def fit(self, fitted: FittedBank, X: Any, rng: np.random.Generator) -> FittedFeatures:
        """Return the maps of all kernels, made for the training samples ``X`` of the bank."""

    def count(self, name: str, value: Any) -> int:
        """Return a number of features, checked."""
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(
                f"{type(self).__name__} needs {name} to be a whole number of at least 1; got {value!r}."
            )
        return int(value)


class FittedFeatures(ABC):
    """Maps of all kernels of a bank.

    The features of kernel m are φ_m(x) = T_m'ρ_m(x): ``raw`` returns the ρ_m of samples, which cost little, and
    ``transforms`` are the T_m, None for the identity. Side by side they are [offsets_m, offsets_m+1).
    """

    transforms: Sequence[Matrix | None]
    offsets: Indices
    _fitted: Any

    @property
    def kernels(self) -> Any:
        """The fitted bank whose features these are."""
        return self._fitted

    @property
    def sizes(self) -> list[int]:
        """How many features each kernel has."""
        return [int(size) for size in np.diff(self.offsets)]

    @abstractmethod
    def raw(self, X: Any, which: Sequence[int], dtype: str = "float64") -> list[AnyArray]:
        """Return ρ_m of every row for the kernels asked for."""

    def contributions(self, X: Any, coef: Sequence[Matrix | None], n_threads: int = 1) -> AnyArray:  # noqa: ARG002
        """Return ρ_m(x)'coef_m of every row, of shape (rows, columns of coef, M); zero where coef_m is None."""
        which = [m for m, one in enumerate(coef) if one is not None]
        found = [R @ coef[m] for m, R in zip(which, self.raw(X, which), strict=True)]
        return _side_by_side(found, which, len(coef))

    def diagonals(self, X: Any) -> Matrix:
        """Return k_m(x, x) of every row, of the kernels themselves where they know it, of shape (rows, M)."""
        squares = self.transform(X) ** 2
        return np.stack([squares[:, a:b].sum(axis=1) for a, b in pairwise(self.offsets)], axis=1)

    def transform(self, X: Any) -> Matrix:
        """Return the features of every row, those of all kernels side by side."""
        every = range(len(self.transforms))
        return np.hstack(
            [R if T is None else R @ T for R, T in zip(self.raw(X, every), self.transforms, strict=True)]
        )


@dataclass
class RandomFourier(Features):
    r"""Random Fourier features of Gaussian kernels: (2/n)^½ [cos(Wx), sin(Wx)], rows of W from N(0, 2γI).

    Parameters
    ----------
    n_features : number of features per Gaussian kernel, rounded up to an even number. The error of a kernel
        value falls like n_features^(-1/2). Linear kernels are represented exactly, by the columns themselves.

    Notes
    -----
    [Rahimi07]; with sines and cosines in pairs k(x, x) = 1 exactly. Other kernels need ``Landmarks``.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelBank, RandomFourier
    >>> from kernelweave.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> fitted = KernelBank([Gaussian()]).fit(X)
    >>> Phi = RandomFourier(2000).fit(fitted, X, np.random.default_rng(1)).transform(X)
    >>> bool(abs(Phi @ Phi.T - next(fitted.grams())).max() < 0.1)
    True

    """

    n_features: int = 100

    def fit(self, fitted: FittedBank, X: Any, rng: np.random.Generator) -> FittedFeatures:  # noqa: ARG002
        pairs = (self.count("n_features", self.n_features) + 1) // 2
        found = {int(m): (group, a) for group in fitted.groups() for a, m in enumerate(group.source.kernels)}
        maps = []
        for m, name in enumerate(fitted.names):
            group, a = found[m]
            X_train, form = fitted.training(group.block), group.source.forms[a]
            formula, factor = group.source.group.kernels[a].formula(), form.common_factor
            if (
                formula is None
                or factor is None
                or form.shifts
                or is_sparse(X_train)
                or not _is_known(formula)
            ):
                raise ValueError(
                    f"Kernel {name!r} has no random Fourier features, which are for Gaussian kernels (and "
                    "linear ones) of dense columns; use features=Landmarks()."
                )
            width, scale = int(X_train.shape[1]), np.sqrt(2.0 * formula.gamma)
            W = rng.normal(scale=scale, size=(width, pairs)) if formula.function == "exp" else None
            maps.append(_Fourier(group.block, W, float(np.sqrt(factor)), width))
        return FourierFeatures(fitted, maps)


def _is_known(formula: Formula) -> bool:
    """Tell whether a kernel is Gaussian or linear."""
    return formula[:2] == ("sqeuclidean", "exp") or formula == Formula("inner", "power")


@dataclass(frozen=True)
class _Fourier:
    """The map of one kernel: frequencies, or None for the columns themselves, times a factor."""

    place: int
    W: Matrix | None = field(repr=False)
    factor: float
    width: int

    @property
    def size(self) -> int:
        return self.width if self.W is None else 2 * int(self.W.shape[1])

    def of(self, rows: Matrix) -> Matrix:
        """Return the features of rows."""
        if self.W is None:
            return rows * self.factor
        angles, n = rows @ self.W, self.W.shape[1]
        return np.asarray(np.hstack([np.cos(angles), np.sin(angles)]) * (self.factor / np.sqrt(n)))


class FourierFeatures(FittedFeatures):
    """Random Fourier features of a bank; made by ``RandomFourier.fit``."""

    def __init__(self, fitted: FittedBank, maps: list[_Fourier]) -> None:
        self._fitted, self._maps = fitted, maps
        self.offsets = np.concatenate([[0], np.cumsum([one.size for one in maps])]).astype(np.intp)

    @property
    def transforms(self) -> list[Matrix | None]:  # type: ignore[override]
        return [None] * len(self._maps)

    def raw(self, X: Any, which: Sequence[int], dtype: str = "float64") -> list[AnyArray]:
        maps = [self._maps[m] for m in which]
        blocks = {place: self._fitted.rows(X, place) for place in {one.place for one in maps}}
        return [one.of(blocks[one.place]).astype(dtype, copy=False) for one in maps]


@dataclass
class Landmarks(Features):
    r"""Every kernel by its values at a few training samples: φ_m(x) = K_LL^{-1/2} k_m(L, x).

    Parameters
    ----------
    n_landmarks : number of landmarks, the same samples for all kernels; as many as there are samples at most,
        where the features reproduce the training kernels. What is learnt gets better with it, and a pass over
        the samples takes longer, between in proportion and by its square.

    Notes
    -----
    Nyström's approximation [Williams01]: φ(x)'φ(z) is k itself where x or z is a landmark. Scalings of the bank
    are kept, but for centring, which the intercept of a learner makes up for.
    Differs from the paper: directions that are only rounding are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelBank, Landmarks
    >>> from kernelweave.kernels import Polynomial
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> fitted = KernelBank([Polynomial(degree=2)]).fit(X)
    >>> Phi = Landmarks(10).fit(fitted, X, np.random.default_rng(1)).transform(X)
    >>> bool(abs(Phi @ Phi.T - next(fitted.grams())).max() < 1e-6)
    True

    """

    n_landmarks: int = 300

    def fit(self, fitted: FittedKernels, X: Any, rng: np.random.Generator) -> LandmarkFeatures:
        count = min(self.count("n_landmarks", self.n_landmarks), fitted.n_samples)
        landmarks = np.sort(rng.choice(fitted.n_samples, count, replace=False))
        rows = _safe_indexing(X, landmarks)
        if fitted.can_be_restricted:  # the others are not needed any more
            fitted, landmarks = fitted.restricted(landmarks), np.arange(count)
        found = dict(fitted.cross(rows, columns=landmarks))
        maps = []
        for m in range(len(fitted)):
            values, vectors = np.linalg.eigh((found[m] + found[m].T) / 2.0)
            kept = values > RANK * max(float(values[-1]), 0.0)
            maps.append(vectors[:, kept] / np.sqrt(values[kept]))
        return LandmarkFeatures(fitted, landmarks, maps)


class LandmarkFeatures(FittedFeatures):
    """Values of the kernels of a bank at landmarks; made by ``Landmarks.fit``."""

    def __init__(self, fitted: FittedKernels, landmarks: Indices, maps: list[Matrix]) -> None:
        self._fitted, self._landmarks, self._maps = fitted, landmarks, maps
        self.offsets = np.concatenate([[0], np.cumsum([one.shape[1] for one in maps])]).astype(np.intp)

    @property
    def transforms(self) -> list[Matrix]:  # type: ignore[override]
        return self._maps

    def raw(self, X: Any, which: Sequence[int], dtype: str = "float64") -> list[AnyArray]:
        kernels, precision = np.asarray(which, dtype=np.intp), {}
        if isinstance(self._fitted, FittedBank):
            precision = {"dtype": dtype}
        found = dict(self._fitted.cross(X, kernels, self._landmarks, **precision))
        return [found[int(m)].astype(dtype, copy=False) for m in which]

    def diagonals(self, X: Any) -> Matrix:
        return np.asarray(self._fitted.diagonals(X))

    def contributions(self, X: Any, coef: Sequence[Matrix | None], n_threads: int = 1) -> AnyArray:
        which = [m for m, one in enumerate(coef) if one is not None]
        V = np.array([coef[m] for m in which])
        found = self._fitted.products(X, self._landmarks, V, np.array(which), n_threads)
        return _side_by_side(found, which, len(coef))


def _side_by_side(found: Sequence[Matrix] | AnyArray, which: Sequence[int], n_kernels: int) -> AnyArray:
    """Return parts of some kernels in places of their own among all."""
    out = np.zeros((*found[0].shape, n_kernels))
    for part, m in zip(found, which, strict=True):
        out[:, :, m] = part
    return out


@dataclass
class Nystroem(Features):
    r"""Another name of ``Landmarks``, with the parameter of scikit-learn's ``Nystroem``.

    Parameters
    ----------
    n_components : number of landmarks.

    Notes
    -----
    Differs from the paper: see ``Landmarks``.

    Examples
    --------
    >>> from kernelweave import Nystroem
    >>> Nystroem(10)
    Nystroem(n_components=10)

    """

    n_components: int = 100

    def fit(self, fitted: FittedKernels, X: Any, rng: np.random.Generator) -> LandmarkFeatures:
        return Landmarks(self.count("n_components", self.n_components)).fit(fitted, X, rng)
