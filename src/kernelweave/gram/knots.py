"""Kernels of one variable by what they are between a few knots, as exactly as arithmetic allows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.gram.grid import ORDER, Grid
from kernelweave.gram.rounding import DOUBLE

if TYPE_CHECKING:
    from kernelweave.gram.source import Source


@dataclass(frozen=True)
class Knots:
    r"""K_m = P T_m P' up to rounding, with T_m the same kernel between the knots of a grid.

    A smooth kernel is interpolated in one of its arguments and then in the other, so products cost what the
    knots cost, whatever the number of samples. ``source`` makes T_m; its kernels are counted from 0.
    ``bends`` has one number per kernel, see `Kernel.bend`.
    """

    grid: Grid
    source: Source = field(repr=False)
    bends: Vector = field(repr=False)

    def images(self, V: Matrix) -> AnyArray:
        """Return T_m P'V for every kernel, of shape (kernels, knots, columns of V): K_m V is P times that."""
        U = np.ascontiguousarray(self.grid.gather(V).T)
        out = np.zeros((len(self.source.kernels), *U.shape))
        for rows in self.source.blocks():
            self.source.add_images(rows, U, out)
        return np.asarray(out.transpose(0, 2, 1))

    def energies(self, V: Matrix, images: AnyArray) -> Vector:
        """Return ½ tr(V'P T_m P'V) for every kernel, given what `images` says of V."""
        return np.asarray(0.5 * np.einsum("ak,mak->m", self.grid.gather(V), images))

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
