"""Gram matrices that a few samples determine: every kernel of a group in one small shared basis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from kernelweave._threads import shared_out
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.blockwise import AddingGrams
from kernelweave.gram.lowrank.grid import Knots
from kernelweave.gram.memory import FLOAT32_BYTES
from kernelweave.gram.source import BlockSource, reference_samples
from kernelweave.gram.storage import Storage, counted

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
        own = int(self.W.nbytes + self.cores.nbytes) + 2 * FLOAT32_BYTES * int(self.W.size)
        return own + (0 if self.knots is None else self.knots.grid.n_bytes)

    @property
    def error(self) -> float:
        r"""The most that an entry of a kernel loses to the basis, as a share of the largest.

        With φ_i = φ̃_i + r_i and ‖r_i‖² at most e times the largest squared length, <φ_i, φ_j> differs from
        <φ̃_i, φ̃_j> by <r_i, φ_j> + <φ_i, r_j> - <r_i, r_j>.
        """
        e = len(self.kernels) * float(np.max(self.lacking, initial=0.0))
        return float(2.0 * np.sqrt(e) + e)


def among_knots(
    source: BlockSource, knots: Knots, max_rank: int, tolerance: float = TOLERANCE
) -> Basis | None:
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


def among_samples(source: BlockSource, max_rank: int, tolerance: float = TOLERANCE) -> Basis | None:
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


def _largest(source: BlockSource) -> Vector:
    return np.array([float(np.max(diagonal, initial=0.0)) for _, diagonal in source.diagonals()])


def _sum(source: BlockSource, rows: Indices, columns: Indices, lengths: Vector) -> Matrix:
    """Return a block of the sum of the kernels, each scaled to unit length."""
    total = np.zeros((rows.size, columns.size))
    weights = np.zeros(max(source.kernels) + 1)
    weights[list(source.kernels)] = 1.0 / lengths
    source.add_weighted_sum(rows, columns, weights, total)
    return total


def _pivots(S: Matrix, enough: float) -> Indices:
    _, pivots, rank, _ = dpstrf(S, tol=enough, lower=1)
    return np.asarray(np.sort(pivots[:rank] - 1))


# Rows of the combined matrix that are made at a time: few enough for the threads to end together.
STEP = 128
# Directions of the combined kernel below this share of the strongest are left out.
NEGLIGIBLE = 1e-9

T = TypeVar("T")


class LowRankGrams(AddingGrams):
    """M kernels, each W C_m W' in the basis of its group; passes cost what the ranks cost.

    The bases are taken over, and centred in their place. Bounds drawn from these matrices speak of them, not
    of the originals. Where all bases have knots, the originals are known too: `matvec_with_error` and
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
        self.centre, self.dtype, self.n_threads = centre, np.dtype(dtype), n_threads
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
    def sizes(self) -> Vector:  # type: ignore[override]
        sizes = np.empty(self.n_kernels)
        for basis in self.bases:
            sizes[list(basis.kernels)] = basis.sizes
        return sizes

    @cached_property
    def shifts(self) -> Matrix:  # type: ignore[override]
        shifts = np.zeros((self.n_kernels, self.n_samples))
        for basis, origin in zip(self.bases, self._origins, strict=True):
            inner = basis.cores @ origin
            shifts[list(basis.kernels)] = inner @ basis.W.T + 0.5 * (inner @ origin)[:, None]
        return shifts

    @property
    def is_rounded(self) -> bool:
        return True

    @property
    def storage(self) -> Storage:
        ranks = ", ".join(str(basis.rank) for basis in self.bases)
        error = max(basis.error for basis in self.bases)
        return Storage(f"{counted(self.n_kernels)} in bases of rank {ranks}", error)

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

    def subset(self, which: Indices) -> LowRankGrams:
        """Return these kernels alone, in this order; without knots, for these hold all kernels of a basis."""
        places = {int(m): place for place, m in enumerate(which)}
        part, kept = copy(self), list[tuple[Basis, Vector]]()
        for basis, origin in zip(self.bases, self._origins, strict=True):
            own = [k for k, m in enumerate(basis.kernels) if m in places]
            if own:
                kernels = tuple(places[basis.kernels[k]] for k in own)
                some = replace(
                    basis, kernels=kernels, cores=basis.cores[own], sizes=basis.sizes[own], knots=None
                )
                kept.append((some, origin))
        for name in ("shifts", "sizes"):
            vars(part).pop(name, None)
        part.bases, part._origins, part._last = tuple(b for b, _ in kept), [o for _, o in kept], None
        return part

    def matvecs(self, coef: AnyArray, needed: AnyArray | None = None) -> AnyArray:  # noqa: ARG002
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

    def matvec_with_error(self, eta: Vector, coef: AnyArray) -> tuple[AnyArray, AnyArray]:
        if any(basis.knots is None for basis in self.bases):
            return np.full(coef.shape, np.nan), np.full(coef.shape, np.inf)
        V = coef.reshape(self.n_samples, -1)
        out, error = np.zeros(V.shape), 0.0
        for basis, products in zip(self.bases, self._exact(V), strict=True):
            assert basis.knots is not None
            weights = eta[list(basis.kernels)]
            out += basis.knots.grid.spread(np.tensordot(weights, products, axes=1))
            error += float(weights @ basis.knots.errors(basis.sizes))
        out = out.reshape(coef.shape) - self.offset(eta, coef)
        return out, np.broadcast_to(error * np.abs(coef).sum(axis=0), coef.shape)

    def energy_errors(self, coef: AnyArray) -> Vector:
        if any(basis.knots is None for basis in self.bases):
            return np.full(self.n_kernels, np.inf)
        V = coef.reshape(self.n_samples, -1)
        most = np.empty(self.n_kernels)
        # What is unsure of the original energy, and as much again for the rounding of the stored one.
        size = float(np.square(np.abs(V).sum(axis=0)).sum())
        for basis, products in zip(self.bases, self._exact(V), strict=True):
            assert basis.knots is not None
            unsure = size * basis.knots.errors(basis.sizes)
            most[list(basis.kernels)] = basis.knots.energies(V, products) + unsure
        return np.maximum(most - self.energies(coef), 0.0)

    def _exact(self, V: Matrix) -> list[AnyArray]:
        """Return what the knots of each basis say of V; kept, for both questions are asked in turn."""
        last = self._last
        if last is None or not np.array_equal(last[0], V):
            knots = [basis.knots for basis in self.bases if basis.knots is not None]
            last = self._last = (V.copy(), self._each(lambda place: knots[place].products(V)))
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
