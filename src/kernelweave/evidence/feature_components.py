"""The components of kernels by explicit features: one pass over the samples, and matrices of their features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.evidence.components import CONSTANT, Components
from kernelweave.solvers.feature_problem import SampleBlock

# What is left of a feature below this share of the largest, once others are taken out, is rounding.
RANK = 1e-10


class Features(Protocol):
    """Explicit features of all kernels, side by side: those of kernel m are columns [offsets_m, offsets_m+1)."""

    offsets: Indices

    def transform(self, X: Any) -> Matrix: ...


@dataclass
class FeatureSums:
    """Weighted sums over samples: of the weights, features φ, targets y, and their products."""

    weight: float
    features: Vector
    products: Matrix  # φφ'
    targets: Vector
    with_targets: Matrix  # φy'
    squares: Vector  # y²

    def __add__(self, other: FeatureSums) -> FeatureSums:
        return FeatureSums(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))


def sums_over_block(block: SampleBlock, features: Features, shift: Vector) -> FeatureSums:
    """Return the sums over one block, features taken from ``shift``, where cancellation does little."""
    Phi = features.transform(block.X) - shift
    weighted = Phi * block.weight[:, None]
    return FeatureSums(
        float(block.weight.sum()),
        weighted.sum(axis=0),
        Phi.T @ weighted,
        block.weight @ block.Y,
        weighted.T @ block.Y,
        block.weight @ block.Y**2,
    )


@dataclass(frozen=True)
class CentredFeatures:
    """How features were brought to the coordinates of `Components`: an orthonormal basis of what they span.

    Parameters
    ----------
    offsets : where the features of each kernel begin.
    means : weighted means of the features.
    factors : what each kernel was multiplied with, 0 for one that is constant.
    axes : array of shape (d, features): coordinates of a kernel's row are ``axes`` times its centred features.
    """

    offsets: Indices = field(repr=False)
    means: Vector = field(repr=False)
    factors: Vector
    axes: Matrix = field(repr=False)

    def kernels(self) -> AnyArray:
        """Return the kernels between the coordinates, (M, d, d), each with a trace of the degrees of freedom."""
        d = len(self.axes)
        K = np.zeros((len(self.factors), d, d))
        for m, own in enumerate(self._slices()):
            if self.factors[m]:
                np.matmul(self.axes[:, own], self.axes[:, own].T / self.factors[m], out=K[m])
        return K

    def rows(self, Phi: Matrix) -> AnyArray:
        """Return new samples in the coordinates, (M, rows, d), given their features."""
        centred = Phi - self.means
        return np.stack([centred[:, own] @ self.axes[:, own].T for own in self._slices()])

    def diagonals(self, Phi: Matrix, diagonals: Matrix) -> Matrix:
        """Return k_m(x, x) of new samples in the coordinates, (M, rows), given (rows, M) before.

        What a kernel has beyond its features keeps the variance of samples far from the landmarks.
        """
        found = np.empty(diagonals.T.shape)
        for m, own in enumerate(self._slices()):
            centred = np.sum((Phi[:, own] - self.means[own]) ** 2, axis=1)
            beyond = diagonals[:, m] - np.sum(Phi[:, own] ** 2, axis=1)
            found[m] = (centred + np.maximum(beyond, 0.0)) * self.factors[m]
        return found

    def coefficients(self, B: AnyArray) -> tuple[list[Matrix], Vector]:
        """Return coefficients of the features of every kernel, (features of m, T), and what to add to each target."""
        coef = [self.axes[:, own].T @ one for own, one in zip(self._slices(), B, strict=True)]
        means = [self.means[own] @ one for own, one in zip(self._slices(), coef, strict=True)]
        return coef, -np.sum(means, axis=0)

    def _slices(self) -> list[slice]:
        return [slice(a, b) for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


def feature_components(
    sums: FeatureSums, shift: Vector, offsets: Indices, dof: int, most: int
) -> tuple[Components, CentredFeatures]:
    """Return the components of kernels by their features, in at most so many coordinates."""
    means, target_means = sums.features / sums.weight, sums.targets / sums.weight
    S = sums.products - np.outer(sums.features, means)
    with_targets = sums.with_targets - np.outer(sums.features, target_means)
    squares = np.maximum(sums.squares - sums.targets * target_means, 0.0)
    traces = np.add.reduceat(np.diagonal(S), offsets[:-1])
    sizes = np.add.reduceat(np.diagonal(sums.products), offsets[:-1])
    varies = traces > CONSTANT * sizes
    factors = np.divide(dof, traces, out=np.zeros(traces.size), where=varies)
    roots = np.repeat(np.sqrt(factors), np.diff(offsets))
    upper, order = pivoted_cholesky(roots[:, None] * S * roots, most)
    with_targets = (roots[:, None] * with_targets)[order[: len(upper)]]
    Y = solve_triangular(upper[:, : len(upper)], with_targets, trans="T", check_finite=False)
    rest = np.maximum(squares - np.einsum("dt,dt->t", Y, Y), 0.0)
    axes = np.empty_like(upper)
    axes[:, order] = upper
    axes *= roots
    coordinates = CentredFeatures(offsets, shift + means, factors, axes)
    return Components(coordinates.kernels(), Y, rest, dof), coordinates


def pivoted_cholesky(S: Matrix, most: int) -> tuple[Matrix, Indices]:
    """Return R with R'R = S[order][:, order], in at most so many rows, and the order.

    The largest remainder comes first, so that what a bound on the rows leaves out is small.
    """
    pstrf: Any = get_lapack_funcs("pstrf", (S,))
    largest = float(np.diagonal(S).max(initial=0.0))
    upper, order, rank, _ = pstrf(S, tol=RANK * largest, lower=0)
    rank = min(int(rank), most) if largest > 0.0 else 0
    return np.triu(upper[:rank]), np.asarray(order, dtype=np.intp) - 1
