"""Explicit features that stand for kernels: random Fourier features and Nyström's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from kernelweave._part import Part
from kernelweave._typing import Indices, Matrix
from kernelweave.bank.fitted import FittedBank
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
    """Maps of all kernels of a bank; the features of kernel m are [offsets_m, offsets_m+1)."""

    offsets: Indices

    @abstractmethod
    def transform(self, X: Any) -> Matrix:
        """Return the features of every row, those of all kernels side by side."""


@dataclass
class RandomFourier(Features):
    r"""Random Fourier features of Gaussian kernels: (2/n)^½ [cos(Wx), sin(Wx)], rows of W from N(0, 2γI).

    Parameters
    ----------
    n_features : number of features per Gaussian kernel, rounded up to an even number. The error of a kernel
        value falls like n_features^(-1/2). Linear kernels are represented exactly, by the columns themselves.

    Notes
    -----
    [Rahimi07]; with sines and cosines in pairs k(x, x) = 1 exactly. Other kernels need ``Nystroem``.
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
        maps = []
        for m, name in enumerate(fitted.names):
            found = fitted.formula(m)
            even = found is not None and bool((found[2] == found[2][0]).all())
            if found is None or not even or not _is_known(found[1]) or is_sparse(fitted.training(found[0])):
                raise ValueError(
                    f"Kernel {name!r} has no random Fourier features, which are for Gaussian kernels (and "
                    "linear ones) of dense columns; use features=Nystroem()."
                )
            place, formula, factors = found
            width = fitted.training(place).shape[1]
            gaussian = formula.function == "exp"
            W = rng.normal(scale=np.sqrt(2.0 * formula.gamma), size=(width, pairs)) if gaussian else None
            maps.append(_Fourier(place, W, float(factors[0]), int(width)))
        return FourierFeatures(fitted, maps)


def _is_known(formula: Formula) -> bool:
    """Tell whether a kernel is Gaussian or linear."""
    return formula[:2] in (("sqeuclidean", "exp"), ("inner", "identity"))


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

    def write(self, rows: Matrix, out: Matrix) -> None:
        if self.W is None:
            np.multiply(rows, self.factor, out=out)
            return
        angles, n = rows @ self.W, self.W.shape[1]
        np.cos(angles, out=out[:, :n])
        np.sin(angles, out=out[:, n:])
        out *= self.factor / np.sqrt(n)


class FourierFeatures(FittedFeatures):
    """Random Fourier features of a bank; made by ``RandomFourier.fit``."""

    def __init__(self, fitted: FittedBank, maps: list[_Fourier]) -> None:
        self._fitted, self._maps = fitted, maps
        self.offsets = np.concatenate([[0], np.cumsum([one.size for one in maps])]).astype(np.intp)

    def transform(self, X: Any) -> Matrix:
        blocks = {place: self._fitted.rows(X, place) for place in {one.place for one in self._maps}}
        n = next(iter(blocks.values())).shape[0]
        Phi = np.empty((n, int(self.offsets[-1])))
        for one, start, stop in zip(self._maps, self.offsets[:-1], self.offsets[1:], strict=True):
            one.write(blocks[one.place], Phi[:, start:stop])
        return Phi


@dataclass
class Nystroem(Features):
    r"""Nyström features of any kernel: k(x, Z) K_ZZ^{-1/2} for a few landmarks Z among the training samples.

    Parameters
    ----------
    n_components : number of landmarks, the same samples for all kernels; as many as there are samples at
        most, where the features reproduce the training kernels.

    Notes
    -----
    [Williams01]. The features give k itself on the landmarks; scalings of the bank are kept.
    Differs from the paper: directions that are only rounding are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelBank, Nystroem
    >>> from kernelweave.kernels import Polynomial
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> fitted = KernelBank([Polynomial(degree=2)]).fit(X)
    >>> Phi = Nystroem(10).fit(fitted, X, np.random.default_rng(1)).transform(X)
    >>> bool(abs(Phi @ Phi.T - next(fitted.grams())).max() < 1e-6)
    True

    """

    n_components: int = 100

    def fit(self, fitted: FittedBank, X: Any, rng: np.random.Generator) -> FittedFeatures:
        count = min(self.count("n_components", self.n_components), fitted.n_samples)
        landmarks = np.sort(rng.choice(fitted.n_samples, count, replace=False))
        maps = []
        for _, K in fitted.cross(_safe_indexing(X, landmarks), columns=landmarks):
            values, vectors = np.linalg.eigh((K + K.T) / 2.0)
            kept = values > RANK * max(float(values[-1]), 0.0)
            maps.append(vectors[:, kept] / np.sqrt(values[kept]))
        return NystroemFeatures(fitted, landmarks, maps)


class NystroemFeatures(FittedFeatures):
    """Nyström features of a bank; made by ``Nystroem.fit``."""

    def __init__(self, fitted: FittedBank, landmarks: Indices, maps: list[Matrix]) -> None:
        self._fitted, self._landmarks, self._maps = fitted, landmarks, maps
        self.offsets = np.concatenate([[0], np.cumsum([one.shape[1] for one in maps])]).astype(np.intp)

    def transform(self, X: Any) -> Matrix:
        return np.hstack([K @ self._maps[m] for m, K in self._fitted.cross(X, columns=self._landmarks)])
