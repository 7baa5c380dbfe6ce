"""Kernels of one variable by interpolation between a few knots, as exactly as arithmetic allows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import factorial
from typing import TYPE_CHECKING

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.gram.rounding import DOUBLE
from kernelweave.kernels.base import CRAMER

if TYPE_CHECKING:
    from kernelweave.gram.source import BlockSource

# Knots of a panel: with more of them panels may be longer, but each sample is told by more.
ORDER = 32
# Panels are so long, in units of 1 / bend, that interpolation at Chebyshev points misses half the last digit:
# 2 (length / 4)^ORDER CRAMER / sqrt(ORDER!) = 2^-53.
LENGTH = 4.0 * (DOUBLE * np.sqrt(float(factorial(ORDER))) / (2.0 * CRAMER)) ** (1.0 / ORDER)
# Weights of Chebyshev points add up to 3.2 in size; where rounding has moved knots that lie close, to more.
STEEP = 5.0
# Nearer to each other, by half a panel, than this, products of differences may leave the range of double.
NEAREST = 1e-200


@dataclass(frozen=True)
class Grid:
    r"""f(x_i) ≈ Σ_a P_ia f(t_a) for the n samples of one variable, over a few knots t.

    The range of the samples is cut into panels. In each that has more distinct values than `ORDER` the knots
    are Chebyshev points and the weights Lagrange's; in the others the values are knots themselves, so that
    there are never more knots than distinct values, however far apart some of them lie.
    """

    knots: Vector
    n_samples: int
    _panels: tuple[_Panel, ...] = field(repr=False)
    _alone: tuple[Indices, Indices] = field(repr=False)  # samples whose values are knots, and which

    @classmethod
    def over(cls, x: Vector, bend: float) -> Grid:
        """Return a grid for functions that bend as `Kernel.smoothness` says, at most."""
        values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
        order = np.argsort(inverse.ravel(), kind="stable")
        before = np.concatenate([[0], np.cumsum(counts)])
        panels, knots, alone = list[_Panel](), list[Vector](), list[Indices]()
        n_knots, owned = 0, list[Indices]()
        for start, stop in pairwise([*_starts(values, bend), values.size]):
            rows, some = order[before[start] : before[stop]], values[start:stop]
            panel = _Panel.over(some, n_knots) if some.size > ORDER else None
            if panel is not None and panel.gain <= STEEP:
                panels.append(panel.at(rows, counts[start:stop]))
                knots.append(panel.knots)
            else:
                knots.append(some)
                alone.append(rows)
                owned.append(np.repeat(np.arange(n_knots, n_knots + some.size), counts[start:stop]))
            n_knots += knots[-1].size
        none = np.empty(0, dtype=np.intp)
        places = np.concatenate([none, *alone]), np.concatenate([none, *owned])
        return cls(np.concatenate(knots), x.size, tuple(panels), places)

    @property
    def n_knots(self) -> int:
        return int(self.knots.size)

    @property
    def n_bytes(self) -> int:
        return sum(int(panel.weights.nbytes) for panel in self._panels)

    @cached_property
    def gain(self) -> float:
        """The largest Σ_a |P_ia|: how much larger than at the knots a function may seem."""
        return max([1.0, *(panel.gain for panel in self._panels)])

    def spread(self, at_knots: Matrix) -> Matrix:
        """Return P F: functions at the samples, from what they are at the knots."""
        out = np.empty((self.n_samples, at_knots.shape[1]))
        rows, own = self._alone
        out[rows] = at_knots[own]
        for panel in self._panels:
            out[panel.rows] = panel.weights @ at_knots[panel.mine]
        return out

    def gather(self, coef: Matrix) -> Matrix:
        """Return P'V: coefficients of the knots that stand for those of the samples."""
        rows, own = self._alone
        out = np.zeros((self.n_knots, coef.shape[1]))
        np.add.at(out, own, coef[rows])
        for panel in self._panels:
            out[panel.mine] = panel.weights.T @ coef[panel.rows]
        return out

    def miss(self, bend: float) -> float:
        r"""Bound |f(x_i) - Σ_a P_ia f(t_a)| for functions of this bend and of size 1, arithmetic aside.

        f(x) - p(x) = f^(r)(ξ) / r! Π_a (x - t_a) with r = `ORDER`, and the product is known at every sample.
        """
        with np.errstate(over="ignore"):
            products = [np.float64(bend * panel.half) ** ORDER * panel.nodal for panel in self._panels]
        return float(CRAMER / np.sqrt(float(factorial(ORDER))) * max(products, default=0.0))


@dataclass(frozen=True)
class _Panel:
    """Chebyshev points between the first and the last of some values, and weights that tell these."""

    knots: Vector
    weights: Matrix
    half: float
    nodal: float  # the largest |Π (x - t_a)| / half^ORDER
    mine: slice  # which of all knots
    rows: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))  # the samples it tells

    @classmethod
    def over(cls, values: Vector, first: int) -> _Panel:
        half = 0.5 * (values[-1] - values[0])
        points = -np.cos((2 * np.arange(ORDER) + 1) * np.pi / (2 * ORDER))
        knots = values[0] + half * (1.0 + points)
        # All differences are right to their last digit, and so are products of them, to a few: weights are
        # those of the knots as they are after rounding, wherever that has put them.
        between = (knots[:, None] - knots) / half
        np.fill_diagonal(between, 1.0)
        apart = (values[:, None] - knots) / half
        product = np.prod(apart, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = product[:, None] / (apart * np.prod(between, axis=1))
        hits, places = np.nonzero(apart == 0.0)
        weights[hits] = 0.0
        weights[hits, places] = 1.0
        if min(_least(apart), _least(between)) < NEAREST:
            weights[:] = np.inf  # as steep as can be
        mine = slice(first, first + ORDER)
        return cls(knots, weights, float(half), float(np.abs(product).max()), mine)

    def at(self, rows: Indices, counts: Indices) -> _Panel:
        """Return the panel with the weights of samples, each value being that of so many."""
        weights = self.weights if rows.size == counts.size else np.repeat(self.weights, counts, axis=0)
        return replace(self, weights=weights, rows=rows)

    @cached_property
    def gain(self) -> float:
        """How much larger than at the knots a function may seem; infinite where knots coincide."""
        gain = float(np.abs(self.weights).sum(axis=1).max())
        return gain if np.isfinite(gain) else np.inf


def _least(differences: Matrix) -> float:
    """Return the least size of those that are not zero."""
    return float(np.min(np.abs(differences), where=differences != 0.0, initial=np.inf))


def _starts(values: Vector, bend: float) -> Indices:
    """Return where panels of length `LENGTH` / bend start among ascending values."""
    with np.errstate(over="ignore", invalid="ignore"):
        place = np.floor((values - values[0]) * (bend / LENGTH))
    if not np.isfinite(place).all():  # so far apart that each is alone
        return np.arange(values.size)
    return np.asarray(np.flatnonzero(np.diff(place, prepend=-1.0)))


@dataclass(frozen=True)
class Knots:
    r"""K_m = P T_m P' up to rounding, with T_m the same kernel between the knots of a grid.

    A smooth kernel is interpolated in one of its arguments and then in the other, so products cost what the
    knots cost, whatever the number of samples. ``source`` makes T_m; its kernels are counted from 0.
    ``bends`` has one number per kernel, see `Kernel.smoothness`.
    """

    grid: Grid
    source: BlockSource = field(repr=False)
    bends: Vector = field(repr=False)

    def products(self, V: Matrix) -> AnyArray:
        """Return T_m P'V for every kernel, of shape (kernels, knots, columns of V): K_m V is P times that."""
        U = np.ascontiguousarray(self.grid.gather(V).T)
        out = np.zeros((len(self.source.kernels), *U.shape))
        for rows in self.source.row_blocks():
            self.source.add_matvecs(rows, U, out)
        return np.asarray(out.transpose(0, 2, 1))

    def energies(self, V: Matrix, products: AnyArray) -> Vector:
        """Return ½ tr(V'P T_m P'V) for every kernel, given what `products` returns for V."""
        return np.asarray(0.5 * np.einsum("ak,mak->m", self.grid.gather(V), products))

    def errors(self, sizes: Vector) -> Vector:
        r"""Bound |K_m - P T_m P'|_ij as products see it, for kernels of these sizes, worst case.

        Interpolating k(x, ·) misses at most e, and doing so in the other argument too (1 + gain) e. Then
        there is arithmetic: a weight is a quotient of products of `ORDER` differences, an entry of T_m right
        to some digits of its size, sums have as many terms as there are samples, knots and knots of a panel;
        all of it is seen through the weights twice. (P T_m P'v)_i is right to this times Σ|v_j|, and
        v'P T_m P'v to this times (Σ|v_j|)².
        """
        gain, n = self.grid.gain, self.grid.n_samples
        missed = np.array([self.grid.miss(bend) for bend in self.bends])
        rounded = DOUBLE * gain**2 * (2 * (n + self.grid.n_knots + len(self.bends)) + 16 * ORDER)
        return np.asarray(sizes * ((1.0 + gain) * missed + rounded))
