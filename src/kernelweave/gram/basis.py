"""A few pivots that tell every kernel of a group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.knots import Knots
from kernelweave.gram.memory import SINGLE
from kernelweave.gram.source import Source

# What a sample may lack of its length, squared: with 1e-12 entries are right to about 1e-6.
TOLERANCE = 1e-12
# Samples among which pivots are looked for at first, and that may join in each later round; all of them where
# there are hardly more.
TRIED, ROUNDS, ALL = 400, 4, 800


@dataclass(frozen=True)
class Basis:
    r"""φ_m(x_i) ≈ Σ_p W_ip φ_m(x_p) for every kernel m of a group, over a few pivots p.

    ``cores`` holds K_m between the pivots. The weights W are those of the orthogonal projection for the sum
    of the kernels, each scaled to unit length, so what sample i lacks of its length in all of the kernels
    together is at most ``lacking[i]`` (squared, relative). ``knots``, where there are any, tell the kernels
    exactly.
    """

    kernels: tuple[int, ...]
    W: Matrix = field(repr=False)
    cores: AnyArray = field(repr=False)
    lacking: Vector = field(repr=False)
    sizes: Vector = field(repr=False)
    knots: Knots | None = field(default=None, repr=False)

    @property
    def rank(self) -> int:
        return int(self.W.shape[1])

    @property
    def n_bytes(self) -> int:
        """What its weights take, those of its knots, and in each pass the factor of a sum of its kernels."""
        own = int(self.W.nbytes + self.cores.nbytes) + 2 * SINGLE * int(self.W.size)
        return own + (0 if self.knots is None else self.knots.grid.n_bytes)

    @property
    def error(self) -> float:
        r"""The most that an entry of a kernel loses to the basis, as a share of the largest.

        With φ_i = φ̃_i + r_i and ‖r_i‖² at most e times the largest squared length, <φ_i, φ_j> differs from
        <φ̃_i, φ̃_j> by <r_i, φ_j> + <φ_i, r_j> - <r_i, r_j>.
        """
        e = len(self.kernels) * float(np.max(self.lacking, initial=0.0))
        return float(2.0 * np.sqrt(e) + e)


def among_knots(source: Source, knots: Knots, max_rank: int, tolerance: float = TOLERANCE) -> Basis | None:
    """Return a basis of at most ``max_rank`` of the knots that tell the kernels, None if too few."""
    gain = knots.grid.gain
    found = among_samples(knots.source, max_rank, tolerance / gain**2)
    if found is None:
        return None
    sizes = _largest(source)
    # A sample lacks what the weighted sum of its knots lacks, and what interpolation misses of it.
    missed = (1.0 + gain) * knots.grid.miss(float(knots.bends.max()))
    lacks = gain * np.sqrt(np.max(found.lacking, initial=0.0)) + np.sqrt(missed)
    lacking = np.full(source.n_samples, lacks**2)
    W = knots.grid.spread(found.W)
    return replace(found, kernels=source.kernels, W=W, lacking=lacking, sizes=sizes, knots=knots)


def among_samples(source: Source, max_rank: int, tolerance: float = TOLERANCE) -> Basis | None:
    """Return a basis of at most ``max_rank`` samples, None if that is not enough.

    Pivots are found by Cholesky with pivoting among some of the samples; those that are told worst by them
    join in until every sample is told well enough.
    """
    n = source.n_samples
    sizes = _largest(source)
    lengths = np.where(sizes > 0.0, sizes, 1.0)
    whole = sum(
        (diagonal / length for (_, diagonal), length in zip(source.diagonals(), lengths, strict=True)),
        start=np.zeros(n),
    )
    enough = tolerance * lengths.size
    every = np.arange(n)
    tried = every if n <= ALL else np.unique(np.linspace(0, n - 1, TRIED).astype(np.intp))
    for _ in range(ROUNDS):
        S = _sum(source, tried, tried, lengths)
        found = _pivots(S, 0.1 * enough)
        pivots = tried[found]
        if pivots.size > max_rank:
            return None
        rows = S[found] if tried.size == n else _sum(source, pivots, every, lengths)
        L = np.linalg.cholesky(rows[:, pivots] + np.finfo(float).eps * lengths.size * np.eye(pivots.size))
        projected = solve_triangular(L, rows, lower=True, check_finite=False)
        left = np.maximum(whole - np.einsum("kn,kn->n", projected, projected), 0.0)
        left[pivots] = 0.0
        if left.max(initial=0.0) <= enough:
            W = solve_triangular(L, projected, lower=True, trans="T", check_finite=False).T
            cores = np.array([C for _, C in source.block(pivots, pivots)])
            return Basis(source.kernels, W, cores, left / lengths.size, sizes)
        worst = np.flatnonzero(left > enough)
        tried = np.union1d(tried, worst[np.argsort(left[worst])[-TRIED:]])
    return None


def renumbered_bases(bases: Sequence[Basis]) -> list[Basis]:
    """Return the bases with their kernels counted from 0, in their order."""
    places = {m: place for place, m in enumerate(sorted(m for basis in bases for m in basis.kernels))}
    return [replace(basis, kernels=tuple(places[m] for m in basis.kernels)) for basis in bases]


def _largest(source: Source) -> Vector:
    return np.array([float(np.max(diagonal, initial=0.0)) for _, diagonal in source.diagonals()])


def _sum(source: Source, rows: Indices, columns: Indices, lengths: Vector) -> Matrix:
    """Return a block of the sum of the kernels, each scaled to unit length."""
    total = np.zeros((rows.size, columns.size))
    weights = np.zeros(max(source.kernels) + 1)
    weights[list(source.kernels)] = 1.0 / lengths
    source.add_sum(rows, columns, weights, total)
    return total


def _pivots(S: Matrix, enough: float) -> Indices:
    _, pivots, rank, _ = dpstrf(S, tol=enough, lower=1)
    return np.asarray(np.sort(pivots[:rank] - 1))
