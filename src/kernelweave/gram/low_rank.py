"""Gram matrices that a few samples tell: every kernel of a group in one small shared basis."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.linalg.lapack import dpstrf

from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.adding import AddingGrams
from kernelweave.gram.source import Source, reference_samples

# What a sample may lack of its length, squared: with 1e-12 entries are right to about 1e-6.
TOLERANCE = 1e-12
# Samples among which pivots are looked for at first, and that may join in each later round.
TRIED, ROUNDS = 400, 4
# Rows of the combined matrix that are made at a time.
STEP = 256
# Directions of the combined kernel below this share of the strongest are left out.
NEGLIGIBLE = 1e-10


@dataclass(frozen=True)
class Basis:
    r"""φ_m(x_i) ≈ Σ_p W_ip φ_m(x_p) for every kernel m of a group, over a few pivot samples p.

    ``cores`` holds K_m between the pivots. The weights W are those of the orthogonal projection for the sum
    of the kernels, each scaled to unit length, so what sample i lacks of its length in all of the kernels
    together is ``lacking[i]`` (squared, relative). ``error`` is the largest share of its trace that a kernel
    of the group loses.
    """

    kernels: tuple[int, ...]
    W: Matrix = field(repr=False)
    cores: AnyArray = field(repr=False)
    lacking: Vector = field(repr=False)
    sizes: Vector = field(repr=False)
    error: float

    @property
    def rank(self) -> int:
        return int(self.W.shape[1])


def find_basis(source: Source, max_rank: int, tolerance: float = TOLERANCE) -> Basis | None:
    """Return a basis of at most ``max_rank`` pivots, None if that is not enough.

    Pivots are found by Cholesky with pivoting among some of the samples; those that are told worst by them
    join in until every sample is told well enough.
    """
    n = source.n_samples
    lengths = {m: float(np.max(diagonal)) or 1.0 for m, diagonal in source.diagonals()}
    whole = sum((diagonal / lengths[m] for m, diagonal in source.diagonals()), start=np.zeros(n))
    enough = tolerance * len(lengths)
    tried = np.unique(np.linspace(0, n - 1, min(n, TRIED)).astype(np.intp))
    for _ in range(ROUNDS):
        pivots = tried[_pivots(_sum(source, tried, tried, lengths), 0.1 * enough)]
        if pivots.size > max_rank:
            return None
        rows = _sum(source, pivots, np.arange(n), lengths)
        L = np.linalg.cholesky(rows[:, pivots] + np.finfo(float).eps * len(lengths) * np.eye(pivots.size))
        projected = solve_triangular(L, rows, lower=True, check_finite=False)
        left = np.maximum(whole - np.einsum("kn,kn->n", projected, projected), 0.0)
        left[pivots] = 0.0
        if left.max() <= enough:
            W = solve_triangular(L, projected, lower=True, trans="T", check_finite=False).T
            cores = dict(source.block(pivots, pivots))
            return Basis(
                source.kernels,
                W,
                np.array([cores[m] for m in source.kernels]),
                left / len(lengths),
                np.array([lengths[m] for m in source.kernels]),
                max(_lost(diagonal, W, cores[m]) for m, diagonal in source.diagonals()),
            )
        worst = np.flatnonzero(left > enough)
        tried = np.union1d(tried, worst[np.argsort(left[worst])[-TRIED:]])
    return None


def _lost(diagonal: Vector, W: Matrix, core: Matrix) -> float:
    """Return the share of the trace that W C W' differs by, sample by sample."""
    kept = np.einsum("ir,ir->i", W @ core, W)
    return float(np.abs(diagonal - kept).sum() / max(diagonal.sum(), np.finfo(float).tiny))


def _sum(source: Source, rows: Indices, columns: Indices, lengths: dict[int, float]) -> Matrix:
    """Return a block of the sum of the kernels, each scaled to unit length."""
    total = np.zeros((rows.size, columns.size))
    for m, K in source.block(rows, columns):
        total += K / lengths[m]
    return total


def _pivots(S: Matrix, enough: float) -> Indices:
    _, pivots, rank, _ = dpstrf(S, tol=enough, lower=1)
    return np.asarray(np.sort(pivots[:rank] - 1))


def renumbered_bases(bases: Sequence[Basis]) -> list[Basis]:
    """Return the bases with their kernels counted from 0, in their order."""
    places = {m: place for place, m in enumerate(sorted(m for basis in bases for m in basis.kernels))}
    return [replace(basis, kernels=tuple(places[m] for m in basis.kernels)) for basis in bases]


class LowRankGrams(AddingGrams):
    """M kernels, each W C_m W' in the basis of its group; passes cost what the ranks cost.

    Bounds drawn from these matrices speak of them, not of the originals.
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
        # Only the centred weights are kept: they are as large as everything else here together.
        self.bases = tuple(
            replace(basis, W=basis.W - origin) for basis, origin in zip(bases, self._origins, strict=True)
        )

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
            for m, C in zip(basis.kernels, basis.cores, strict=True):
                shifts[m] = basis.W @ (C @ origin) + 0.5 * origin @ C @ origin
        return shifts

    @property
    def is_rounded(self) -> bool:
        return True

    def add(self, eta: Vector, K: AnyArray) -> None:
        """Add Σ eta_m K_m to the lower triangle of K."""
        F = self.factor(eta).astype(self.dtype)

        def fill(share: Sequence[int]) -> None:
            for start in share:
                stop = min(start + STEP, self.n_samples)
                K[start:stop, :stop] += F[start:stop] @ F[:stop].T

        shared_out(fill, range(0, self.n_samples, STEP), self.n_threads)

    def factor(self, eta: Vector) -> Matrix:
        """Return F with K(eta) = F F', as narrow as the weights allow."""
        parts = [np.zeros((self.n_samples, 0))]
        for basis in self.bases:
            weights = eta[list(basis.kernels)]
            if basis.rank and weights.any():
                values, vectors = eigh(np.tensordot(weights, basis.cores, axes=1))
                keep = values > NEGLIGIBLE * values[-1]
                parts.append(basis.W @ (vectors[:, keep] * np.sqrt(values[keep])))
        return np.hstack(parts)

    def sample(self, rows: Indices) -> LowRankGrams:
        """Return the kernels of these samples alone; rows ascend."""
        part = copy(self)
        vars(part).pop("shifts", None)
        part.n_samples = int(rows.size)
        part.bases = tuple(
            replace(basis, W=basis.W[rows], lacking=basis.lacking[rows]) for basis in self.bases
        )
        return part

    def images(self, coef: AnyArray) -> AnyArray:
        V = coef.reshape(self.n_samples, -1)
        out = np.empty((self.n_kernels, *V.shape))
        for basis in self.bases:
            inner = basis.cores @ (basis.W.T @ V)
            for m, one in zip(basis.kernels, inner, strict=True):
                out[m] = basis.W @ one
        return out.reshape(self.n_kernels, *coef.shape)

    def energies(self, coef: AnyArray) -> Vector:
        V = coef.reshape(self.n_samples, -1)
        out = np.empty(self.n_kernels)
        for basis in self.bases:
            P = basis.W.T @ V
            out[list(basis.kernels)] = 0.5 * np.einsum("rk,mrs,sk->m", P, basis.cores, P, optimize=True)
        return out
