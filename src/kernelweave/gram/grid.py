"""A smooth function at many points, told by its values at few: interpolation, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import factorial

import numpy as np

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.gram.rounding import DOUBLE
from kernelweave.kernels.base import CRAMER

# Knots of a panel: with more of them panels may be longer, but each sample is told by more.
ORDER = 32
# Panels are so long, in units of 1 / bend, that interpolation at Chebyshev points misses half the last digit:
# 2 (length / 4)^ORDER CRAMER / sqrt(ORDER!) = 2^-53.
LENGTH = 4.0 * (DOUBLE * np.sqrt(float(factorial(ORDER))) / (2.0 * CRAMER)) ** (1.0 / ORDER)
# Weights of Chebyshev points add up to 3.2 in size; where rounding has moved knots that lie close, to more.
STEEP = 5.0


@dataclass(frozen=True)
class Grid:
    r"""f(x_i) ≈ Σ_a P_ia f(t_a) for the n samples of one variable, over a few knots t.

    The range of the samples is cut into panels. In each that has more distinct values than `ORDER` the knots
    are Chebyshev points and the weights Lagrange's; in the others the values are knots themselves, so that
    there are never more knots than distinct values, however far apart some of them lie.
    """

    knots: Vector
    _panels: tuple[_Panel, ...] = field(repr=False)
    _alone: tuple[Indices, Indices] = field(repr=False)  # values that are knots, and which
    _inverse: Indices = field(repr=False)  # of each sample, which of the distinct values it has

    @classmethod
    def over(cls, x: Vector, bend: float) -> Grid:
        """Return a grid for functions that bend as `Kernel.bend` says, at most."""
        values, inverse = np.unique(x, return_inverse=True)
        panels, knots = list[_Panel](), list[Vector]()
        alone = [(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp))]
        first = 0
        for start, stop in pairwise([*_starts(values, bend), values.size]):
            panel = _Panel.over(values[start:stop], start, first) if stop - start > ORDER else None
            if panel is not None and panel.gain <= STEEP:
                panels.append(panel)
                knots.append(panel.knots)
            else:
                knots.append(values[start:stop])
                alone.append((np.arange(start, stop), np.arange(first, first + stop - start)))
            first += knots[-1].size
        at, which = (np.concatenate(places) for places in zip(*alone, strict=True))
        return cls(np.concatenate(knots), tuple(panels), (at, which), inverse.ravel())

    @property
    def n_samples(self) -> int:
        return int(self._inverse.size)

    @property
    def n_knots(self) -> int:
        return int(self.knots.size)

    @cached_property
    def gain(self) -> float:
        """The largest Σ_a |P_ia|: how much larger than at the knots a function may seem."""
        return max([1.0, *(panel.gain for panel in self._panels)])

    def spread(self, at_knots: Matrix) -> Matrix:
        """Return P F: functions at the samples, from what they are at the knots."""
        table = np.empty((self._n_values, at_knots.shape[1]))
        values, knots = self._alone
        table[values] = at_knots[knots]
        for panel in self._panels:
            np.matmul(panel.weights, at_knots[panel.mine], out=table[panel.told])
        return table[self._inverse]

    def gather(self, coef: Matrix) -> Matrix:
        """Return P'V: coefficients of the knots that stand for those of the samples."""
        table = np.stack([np.bincount(self._inverse, v, self._n_values) for v in coef.T], axis=1)
        out = np.empty((self.n_knots, coef.shape[1]))
        values, knots = self._alone
        out[knots] = table[values]
        for panel in self._panels:
            np.matmul(panel.weights.T, table[panel.told], out=out[panel.mine])
        return out

    def miss(self, bend: float) -> float:
        r"""Bound |f(x_i) - Σ_a P_ia f(t_a)| for functions of this bend and of size 1, arithmetic aside.

        f(x) - p(x) = f^(r)(ξ) / r! Π_a (x - t_a) with r = `ORDER`, and the product is known at every sample.
        """
        with np.errstate(over="ignore"):
            products = [np.float64(bend * panel.half) ** ORDER * panel.nodal for panel in self._panels]
        return float(CRAMER / np.sqrt(float(factorial(ORDER))) * max(products, default=0.0))

    @property
    def _n_values(self) -> int:
        return self._alone[0].size + sum(panel.weights.shape[0] for panel in self._panels)


@dataclass(frozen=True)
class _Panel:
    """Chebyshev points between the first and the last of some values, and the weights that tell the values."""

    knots: Vector
    weights: Matrix
    half: float
    nodal: float  # the largest |Π (x - t_a)| / half^ORDER
    told: slice  # which of all values
    mine: slice  # which of all knots

    @classmethod
    def over(cls, values: Vector, start: int, first: int) -> _Panel:
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
        told, mine = slice(start, start + values.size), slice(first, first + ORDER)
        return cls(knots, weights, float(half), float(np.abs(product).max()), told, mine)

    @cached_property
    def gain(self) -> float:
        """How much larger than its values at the knots a function may seem; not finite where knots coincide."""
        gain = float(np.abs(self.weights).sum(axis=1).max())
        return gain if np.isfinite(gain) else np.inf


def _starts(values: Vector, bend: float) -> Indices:
    """Return where panels of length `LENGTH` / bend start among ascending values."""
    with np.errstate(over="ignore", invalid="ignore"):
        place = np.floor((values - values[0]) * (bend / LENGTH))
    if not np.isfinite(place).all():  # so far apart that each is alone
        return np.arange(values.size)
    return np.asarray(np.flatnonzero(np.diff(place, prepend=-1.0)))
