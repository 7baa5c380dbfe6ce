"""Gram matrices that a few samples tell: every kernel of a group in one small shared basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.linalg.lapack import dpstrf

from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.adding import AddingGrams
from kernelweave.gram.basis import Basis
from kernelweave.gram.source import reference_samples

# Rows of the combined matrix that are made at a time: few enough for the threads to end together.
STEP = 128
# Directions of the combined kernel below this share of the strongest are left out.
NEGLIGIBLE = 1e-9

T = TypeVar("T")


class LowRankGrams(AddingGrams):
    """M kernels, each W C_m W' in the basis of its group; passes cost what the ranks cost.

    The bases are taken over, and centred in their place. Bounds drawn from these matrices speak of them, not
    of the originals. Where all bases have knots, the originals are known too: `image_within` and
    `energy_errors` are drawn from them.
    """

    def __init__(
        self,
        bases: Sequence[Basis],
        n_samples: int,
        *,
        centre: bool = False,
        dtype: str = "float32",
        n_threads: int = 1,
    ) -> None:
        self.n_samples = n_samples
        self.centred, self.dtype, self.n_threads = centre, np.dtype(dtype), n_threads
        chosen = reference_samples(n_samples)
        self._origins = [basis.W[chosen].mean(axis=0) if centre else np.zeros(basis.rank) for basis in bases]
        # The weights are as large as everything else here together: only the centred ones are kept.
        for basis, origin in zip(bases, self._origins, strict=True):
            basis.W[:] -= origin
        self.bases = tuple(bases)
        self._last: tuple[Matrix, list[AnyArray]] | None = None

    @property
    def n_kernels(self) -> int:
        return sum(len(basis.kernels) for basis in self.bases)

    @cached_property
    def sizes(self) -> Vector:
        sizes = np.empty(self.n_kernels)
        for basis in self.bases:
            sizes[list(basis.kernels)] = basis.sizes
        return sizes

    @cached_property
    def shifts(self) -> Matrix:
        shifts = np.zeros((self.n_kernels, self.n_samples))
        for basis, origin in zip(self.bases, self._origins, strict=True):
            inner = basis.cores @ origin
            shifts[list(basis.kernels)] = inner @ basis.W.T + 0.5 * (inner @ origin)[:, None]
        return shifts

    @property
    def is_rounded(self) -> bool:
        return True

    def add(self, eta: Vector, K: AnyArray) -> None:
        """Add Σ eta_m K_m to the lower triangle of K."""
        F = self.factor(eta)

        def fill(share: Sequence[int]) -> None:
            buffer = np.empty(STEP * self.n_samples, dtype=self.dtype)
            for start in share:
                stop = min(start + STEP, self.n_samples)
                part = buffer[: (stop - start) * stop].reshape(stop - start, stop)
                K[start:stop, :stop] += np.matmul(F[start:stop], F[:stop].T, out=part)

        shared_out(fill, range(0, self.n_samples, STEP), self.n_threads)

    def factor(self, eta: Vector) -> AnyArray:
        """Return F with K(eta) = F F', as narrow as the weights allow."""
        cores = [np.tensordot(eta[list(basis.kernels)], basis.cores, axes=1) for basis in self.bases]
        largest = sum(float(C.diagonal().max(initial=0.0)) for C in cores)
        roots = [_root(C, NEGLIGIBLE * largest) for C in cores]
        stops = np.cumsum([0, *(L.shape[1] for L in roots)])
        F = np.empty((self.n_samples, stops[-1]), dtype=self.dtype)

        def fill(place: int) -> None:
            W = self.bases[place].W.astype(self.dtype)
            F[:, stops[place] : stops[place + 1]] = W @ roots[place].astype(self.dtype)

        self._each(fill)
        return F

    def sample(self, rows: Indices) -> LowRankGrams:
        """Return the kernels of these samples alone; rows ascend."""
        part = copy(self)
        vars(part).pop("shifts", None)
        part.n_samples, part._last = int(rows.size), None
        part.bases = tuple(
            replace(basis, W=basis.W[rows], lacking=basis.lacking[rows], knots=None) for basis in self.bases
        )
        return part

    def images(self, coef: AnyArray) -> AnyArray:
        V = coef.reshape(self.n_samples, -1)
        out = np.empty((self.n_kernels, *V.shape))

        def fill(place: int) -> None:
            basis = self.bases[place]
            inner = (basis.cores @ (basis.W.T @ V)).transpose(0, 2, 1)
            n_kernels, n_columns, rank = inner.shape
            rows = inner.reshape(n_kernels * n_columns, rank) @ basis.W.T  # all kernels in one go
            out[list(basis.kernels)] = rows.reshape(n_kernels, n_columns, -1).transpose(0, 2, 1)

        self._each(fill)
        return out.reshape(self.n_kernels, *coef.shape)

    def energies(self, coef: AnyArray) -> Vector:
        V = coef.reshape(self.n_samples, -1)
        out = np.empty(self.n_kernels)

        def fill(place: int) -> None:
            basis = self.bases[place]
            P = basis.W.T @ V
            out[list(basis.kernels)] = 0.5 * np.einsum("rk,mrk->m", P, basis.cores @ P)

        self._each(fill)
        return out

    def image_within(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        if any(basis.knots is None for basis in self.bases):
            return np.full(coef.shape, np.nan), np.full(coef.shape, np.inf)
        V = coef.reshape(self.n_samples, -1)
        image, reach = np.zeros(V.shape), 0.0
        for basis, images in zip(self.bases, self._exact(V), strict=True):
            assert basis.knots is not None
            weights = eta[list(basis.kernels)]
            image += basis.knots.grid.spread(np.tensordot(weights, images, axes=1))
            reach += float(weights @ basis.knots.errors(basis.sizes))
        image = image.reshape(coef.shape) - self.offset(eta, coef)
        return image, np.broadcast_to(reach * np.abs(coef).sum(axis=0), coef.shape)

    def energy_errors(self, coef: AnyArray) -> Vector:
        if any(basis.knots is None for basis in self.bases):
            return np.full(self.n_kernels, np.inf)
        V = coef.reshape(self.n_samples, -1)
        most = np.empty(self.n_kernels)
        # What is unsure of the original energy, and as much again for the rounding of the stored one.
        size = float(np.square(np.abs(V).sum(axis=0)).sum())
        for basis, images in zip(self.bases, self._exact(V), strict=True):
            assert basis.knots is not None
            unsure = size * basis.knots.errors(basis.sizes)
            most[list(basis.kernels)] = basis.knots.energies(V, images) + unsure
        return np.maximum(most - self.energies(coef), 0.0)

    def _exact(self, V: Matrix) -> list[AnyArray]:
        """Return what the knots of each basis say of V; kept, for both questions are asked in turn."""
        last = self._last
        if last is None or not np.array_equal(last[0], V):
            knots = [basis.knots for basis in self.bases if basis.knots is not None]
            last = self._last = (V.copy(), self._each(lambda place: knots[place].images(V)))
        return last[1]

    def _each(self, work: Callable[[int], T]) -> list[T]:
        """Return what ``work`` says of each basis, in their order; they are shared out over the threads."""
        found: dict[int, T] = {}

        def some(share: Sequence[int]) -> None:
            for place in share:
                found[place] = work(place)

        shared_out(some, range(len(self.bases)), self.n_threads)
        return [found[place] for place in range(len(self.bases))]


def _root(C: Matrix, enough: float) -> Matrix:
    """Return L with C ≈ L L', entries right to ``enough``, by Cholesky with pivoting."""
    if not C.size or not C.diagonal().max() > enough:
        return np.zeros((C.shape[0], 0))
    lower, order, rank, _ = dpstrf(C, tol=enough, lower=1)
    L = np.empty((C.shape[0], rank))
    L[order - 1] = np.tril(lower)[:, :rank]
    return L
