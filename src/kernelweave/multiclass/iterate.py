"""The iterate of the stochastic algorithms: one coefficient matrix for all kernels, norms by increments."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.multiclass.problem import PNormProblem, norm_and_slopes

# Below this the common factor is folded into the coefficients, long before it underflows.
FOLD = 1e-60


class Iterate:
    r"""θ^j = Σ_i B_i ⊗ φ^j(x_i) with B = factor · V, and s_j = ‖θ^j‖² kept by increments.

    Every update adds the same multiple of z̄ to all blocks, so one N × classes matrix serves all kernels;
    shrinking all of θ is one product, with the factor. Averages over many steps are kept the same way:
    Σ_t B_t = total · V − past.
    """

    def __init__(self, problem: PNormProblem) -> None:
        self.problem = problem
        self.V = np.zeros((problem.n_samples, problem.n_classes))
        self.factor = 1.0
        self.s = np.zeros(problem.rows.n_kernels)
        self.past: Matrix | None = None
        self.total, self.count = 0.0, 0
        self.diagonals = problem.rows.diagonals
        self._places = np.empty(0, dtype=np.intp)
        self._G: AnyArray = np.empty(0)
        self._K: AnyArray = np.empty(0)

    def meet(self, places: Indices) -> None:
        """Make the scores of a batch of samples, from the support so far and among themselves."""
        support = np.flatnonzero(self.V.any(axis=1))
        self._places = places
        self._G = self.problem.rows.products(places, support, self.V[support])
        self._K = self.problem.rows.block(places)

    def scores(self, k: int) -> tuple[Matrix, Vector]:
        """Return θ^j · φ^j(x, c) per kernel and class for the k-th sample met, and w̄ · φ̄(x, c) per class."""
        each = self.factor * self._G[:, k]
        _, slopes = norm_and_slopes(self.s, self.problem.q)
        return each, slopes @ each / self.problem.q

    def norm(self) -> float:
        """Return ‖θ̄‖_{2,q}."""
        return float(np.sqrt(norm_and_slopes(self.s, self.problem.q)[0]))

    def pair_norm(self, k: int) -> float:
        """Return ‖z̄‖_{2,q} of the k-th sample met: every block holds φ(x) twice."""
        diagonal = self.diagonals[:, self._places[k]]
        return float(np.sqrt(norm_and_slopes(2.0 * diagonal, self.problem.q)[0]))

    def weight(self, k: int) -> float:
        """Return the weight of the k-th sample met."""
        return float(self.problem.weight[self._places[k]])

    def grow(self, k: int, up: int, down: int, step: float, each: Matrix) -> None:
        """Add step · z̄ for the k-th sample met; ``each`` are its scores as θ stands now."""
        i = self._places[k]
        self.s += 2.0 * step * (each[:, up] - each[:, down]) + 2.0 * step * step * self.diagonals[:, i]
        np.maximum(self.s, 0.0, out=self.s)
        change = step / self.factor
        self.V[i, up] += change
        self.V[i, down] -= change
        row = change * self._K[:, k]
        self._G[:, :, up] += row
        self._G[:, :, down] -= row
        if self.past is not None:
            self.past[i, up] += change * self.total
            self.past[i, down] -= change * self.total

    def shrink(self, factor: float) -> None:
        """Multiply θ̄."""
        if factor == 1.0:
            return
        self.s *= factor * factor
        self.factor *= factor
        if abs(self.factor) < FOLD:
            self._fold()

    def average_from_here(self) -> None:
        """Start the mean over the iterates that follow."""
        self.past, self.total, self.count = np.zeros_like(self.V), 0.0, 0

    def count_step(self) -> None:
        """Let the iterate as it stands take part in the mean."""
        if self.past is not None:
            self.total += self.factor
            self.count += 1

    @property
    def coef(self) -> Matrix:
        """B of the last iterate."""
        return self.factor * self.V

    @property
    def mean(self) -> Matrix:
        """B of the mean, or of the last iterate where none was asked for."""
        if self.past is None or not self.count:
            return self.coef
        return (self.total * self.V - self.past) / self.count

    def answer(self, averaged: bool) -> Matrix:
        """Return B of the mean, or of the last iterate."""
        return self.mean if averaged else self.coef

    def state(self) -> dict[str, Any]:
        past = {} if self.past is None else {"past": self.past}
        return {
            "V": self.V,
            "factor": self.factor,
            "s": self.s,
            "total": self.total,
            "count": self.count,
        } | past

    def restore(self, state: dict[str, AnyArray]) -> None:
        self.V, self.s = state["V"], state["s"]
        self.factor, self.total, self.count = (
            float(state["factor"]),
            float(state["total"]),
            int(state["count"]),
        )
        self.past = state.get("past")

    def _fold(self) -> None:
        if self.past is not None:  # the sum so far is frozen: in units of the new V it could overflow
            self.past -= self.total * self.V
            self.total = 0.0
        self.V *= self.factor
        if self._G.size:
            self._G *= self.factor
        self.factor = 1.0
