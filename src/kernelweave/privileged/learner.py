"""SVM+ for fixed kernels, as the solvers of multiple kernel learning ask for a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._part import Part
from kernelweave._threads import blas_threads
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.learners.base import positive
from kernelweave.learners.hinge import Hinge
from kernelweave.learners.machine import LARGE
from kernelweave.privileged.interior import solve_interior
from kernelweave.privileged.machine import PlusMachine, Terms, measure
from kernelweave.privileged.pairs import solve_pairs
from kernelweave.privileged.parallel_sum import low_rank_factor

METHODS = ("auto", "interior", "smo")
# A step of the interior point costs up to 3n³ operations and six matrices, or n³/3 and three of them where
# the privileged kernel has low rank: beyond this many samples, pairs have to do.
MOST_DENSE, MOST_LOW_RANK = 4_000, 8_000
# Where C K*/λ is below this, slacks are so dear that pairs get there first, unless the rank is low (measured
# from 300 to 1,000 samples); so few samples as the last number are no matter.
STIFF, FEW = 1.0, 200


@dataclass
class SVMPlus(Part):
    r"""The support vector machine whose slacks are a function of privileged features.

    .. math:: \min \tfrac12\|w\|^2 + \tfrac\lambda2\|w^*\|^2 + \sum_i C_i \xi_i, \quad
       y_i(\langle w, x_i\rangle + b) \ge 1 - \xi_i,\; \xi_i = \langle w^*, z_i\rangle + \rho \ge 0

    Samples outside ``corrected`` have no z: their slacks are their own, as in the C-SVC. ``solve`` takes
    K and K*/λ as one array (2, n, n).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.privileged import SVMPlus
    >>> kernels = np.array([np.eye(2), np.eye(2)])
    >>> SVMPlus(C=10.0).solve(kernels, np.array([1.0, -1.0])).coef.round(3)
    array([[ 1.,  0.],
           [-1.,  0.]])

    """

    C: float = 1.0
    corrected: AnyArray | None = None
    method: str = "auto"
    n_threads: int = 1
    split: int = 1

    has_bias = True

    def check(self, y: AnyArray, weight: Vector) -> None:  # noqa: ARG002 - any labels and weights are legal
        positive("C", self.C)

    def measure(self, f: AnyArray, coef: AnyArray, y: AnyArray, weight: Vector | None = None) -> PlusMachine:
        return replace(measure(self._terms(y, weight), coef, f), split=self.split)

    def solve(
        self,
        K: AnyArray,
        y: AnyArray,
        weight: Vector | None = None,
        warm: AnyArray | None = None,
        tol: float = 1e-3,
    ) -> PlusMachine:
        terms = self._terms(y, weight)
        used = terms.C > 0.0
        if used.all():
            return replace(self._solve(K[0], K[1], terms, warm, tol), split=self.split)
        # A sample of weight zero is as good as absent: neither its margin nor its slack is asked for.
        kept = np.flatnonzero(used)
        inside = np.ix_(kept, kept)
        part = Terms(terms.y[kept], terms.C[kept], terms.corrected[kept])
        machine = self._solve(K[0][inside], K[1][inside], part, None if warm is None else warm[kept], tol)
        return replace(_spread(machine, terms, kept), split=self.split)

    def _solve(self, K: Matrix, G: Matrix, terms: Terms, warm: AnyArray | None, tol: float) -> PlusMachine:
        if not terms.corrected.any():
            return _without_privileged(K, terms, warm, tol)
        places = terms.places
        F = low_rank_factor(G if places.size == G.shape[0] else G[np.ix_(places, places)])
        if self._by_pairs(G, F is not None, terms):
            return solve_pairs(K, G, terms, warm, tol)
        with blas_threads(self.n_threads if terms.y.size >= LARGE else 1):
            return solve_interior(K, G, F, terms, tol)

    def _by_pairs(self, G: Matrix, low_rank: bool, terms: Terms) -> bool:
        """Tell whether to go by pairs: asked to, too many samples to factor, or slacks too dear to move."""
        if not terms.corrected.all():  # pairs know no samples with slacks of their own
            return False
        if self.method != "auto":
            return self.method == "smo"
        if terms.y.size > (MOST_LOW_RANK if low_rank else MOST_DENSE):
            return True
        stiff = float(np.diagonal(G).mean() * terms.C.mean()) <= STIFF
        return stiff and not low_rank and terms.y.size >= FEW

    def _terms(self, y: AnyArray, weight: Vector | None) -> Terms:
        y = np.ascontiguousarray(y, dtype=np.float64)
        C = np.full(y.size, positive("C", self.C)) if weight is None else positive("C", self.C) * weight
        corrected = np.ones(y.size, dtype=bool) if self.corrected is None else self.corrected
        return Terms(y, C, corrected & (C > 0.0))


def _without_privileged(K: Matrix, terms: Terms, warm: AnyArray | None, tol: float) -> PlusMachine:
    """Return the C-SVC: every slack is a sample's own."""
    start = None if warm is None else warm[:, 0]
    machine = Hinge(C=1.0).solve(np.ascontiguousarray(K), terms.y, terms.C, start, tol)
    coef = np.column_stack([machine.coef, np.zeros(terms.y.size)])
    return measure(terms, coef, np.column_stack([K @ machine.coef, np.zeros(terms.y.size)]))


def _spread(machine: PlusMachine, terms: Terms, kept: AnyArray) -> PlusMachine:
    """Return the machine of some samples as one of all."""
    coef = np.zeros((terms.y.size, 2))
    free = np.zeros(coef.shape, dtype=bool)
    xi = np.zeros(terms.y.size)
    coef[kept], free[kept], xi[kept] = machine.coef, machine.free, machine.xi
    return replace(machine, coef=coef, free=free, xi=xi, terms=terms)
