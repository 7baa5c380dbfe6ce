"""Weights that are given, not learnt: sets of one point, the average kernel among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.geometry.base import FEASIBILITY_SLACK, Geometry


class OnePoint(Geometry):
    """A geometry whose set is one point: subclasses define `contains` and `start`, the point itself."""

    def conjugate(self, h: Vector) -> float:
        return float(self.start(len(h)) @ h)

    def maximizer(self, h: Vector) -> Vector:
        return self.start(len(h))

    def project(self, z: Vector) -> Vector:
        return self.start(len(z))

    def reweight(self, norms: Vector) -> Vector:
        return self.start(len(norms))

    def model_step(self, eta: Vector, h: Vector, H: Matrix) -> Vector:  # noqa: ARG002 - one point
        return self.start(len(h))


@dataclass
class Point(OnePoint):
    r"""The one point eta = weights: the classifier is learnt, the kernel is not.

    {eta : eta_m = weights_m}

    Parameters
    ----------
    weights : sequence of M numbers, none negative, not all zero
        How much each kernel counts, in the order of the bank.

    Notes
    -----
    The support function is <weights, h>. The second step of every method that weighs the kernels first, such
    as alignment [Xu14, Eq. (2.21)]; `Uniform` is the point 1/M.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> Point([0.2, 0.8]).conjugate(np.array([1.0, 5.0]))
    4.2

    """

    weights: Sequence[float] = ()

    def contains(self, eta: Vector) -> bool:
        room = FEASIBILITY_SLACK * max(1.0, float(self._eta.max()))
        return bool(np.abs(eta - self._eta).max() <= room)

    def start(self, n_kernels: int) -> Vector:  # noqa: ARG002 - the length is that of the weights
        return self._eta.copy()

    def of_kernels(self, which: Indices) -> Point:
        kept = self._eta[which]
        total = float(kept.sum())
        return Point((kept * (self._eta.sum() / total) if total > 0.0 else np.ones(kept.size)).tolist())

    def check(self, n_kernels: int) -> None:
        super().check(n_kernels)
        eta = self._eta
        if eta.shape != (n_kernels,):
            raise ValueError(
                f"Point needs one weight for each of {n_kernels} kernels, got weights of shape {eta.shape}."
            )
        if not np.isfinite(eta).all() or eta.min() < 0.0 or eta.max() <= 0.0:
            raise ValueError(f"Point needs finite weights >= 0 that are not all 0, got {eta.tolist()}.")

    @property
    def _eta(self) -> Vector:
        return np.asarray(self.weights, dtype=np.float64)
