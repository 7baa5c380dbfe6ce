"""The hard form has no slack of its own: prove that no metrics exist, or find some well inside."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.errors import InfeasibleError
from kernelweave.metric.problem import MetricProblem, Multipliers
from kernelweave.metric.space import Space

# Shares of a privileged distance to stay away from it, tried in turn, each with the sweeps it may take.
MARGINS = {0.3: 30, 0.1: 60, 0.03: 120, 0.01: 240, 0.001: 480}
SPAN = 1e-10  # eigenvalues below this share of the largest do not count as a direction of the pairs
CLEARLY = 1e-9  # smallest eigenvalue, as a share of the largest, that counts as positive


@dataclass(frozen=True)
class FeasibilityTest:
    """Test multipliers a for being a proof that no metrics satisfy all constraints.

    For feasible M and P, sum a sign (v'Mv - w'Pw) <= 0. If both sum a sign vv' and -sum a sign ww' are
    positive definite on the span of their pairs, the left side is positive whatever M and P: there are none.
    """

    problem: MetricProblem
    basis: Matrix
    privileged_basis: Matrix

    @classmethod
    def of(cls, problem: MetricProblem) -> FeasibilityTest:
        told = problem.told.astype(np.float64)
        return cls(problem, _span(problem.space, told), _span(problem.privileged, told))

    def proves(self, a: Vector) -> bool:
        signed = np.where(self.problem.told, a * self.problem.sign, 0.0)
        if not signed.any():
            return False
        here = _clearly_positive(self.problem.space.scatter(signed), self.basis)
        if not here:
            return False
        there = self.problem.privileged.scatter(-signed * self.problem.reach**2)
        return _clearly_positive(there, self.privileged_basis)


def _span(space: Space, weight: Vector) -> Matrix:
    values, vectors = np.linalg.eigh(space.scatter(weight))
    return np.asarray(vectors[:, values > SPAN * values[-1]])


def _clearly_positive(A: Matrix, basis: Matrix) -> bool:
    values = np.linalg.eigvalsh(basis.T @ A @ basis)
    return bool(values[0] > CLEARLY * np.abs(values).max())


def infeasible(problem: MetricProblem, a: Vector) -> InfeasibleError:
    """Return the error that names the problem as infeasible and says what would work."""
    carrying = np.where(problem.told, a, 0.0)
    count = int((carrying > 1e-6 * carrying.max()).sum())
    return InfeasibleError(
        "The hard form of ITML+ (kappa=None) has no solution for these pairs: a nonnegative combination of "
        f"the constraints of {count} of {int(problem.told.sum())} pairs contradicts itself for every metric "
        "and every privileged metric; use the soft form, for example kappa=1, or fewer pairs."
    )


def strictly_feasible(problem: MetricProblem, rng: np.random.Generator) -> tuple[Matrix, Matrix] | None:
    """Return metrics that satisfy every constraint with room to spare, or None where none were found.

    They are those of the same problem with privileged distances of similar pairs shortened, of dissimilar
    ones lengthened by a margin. Raises InfeasibleError with a proof that there are none.
    """
    original = FeasibilityTest.of(problem)
    for margin, sweeps in MARGINS.items():
        factor = np.where(problem.told, 1.0 - margin * problem.sign, 1.0)
        tight = replace(
            problem,
            reach=problem.reach * np.sqrt(factor),
            goal=problem.goal * factor,
            cap=np.full(problem.n_pairs, np.inf),
        )
        test = FeasibilityTest.of(tight)
        state = tight.start()
        due, before = 1, np.zeros(problem.n_pairs)
        for sweep in range(1, sweeps + 1):
            broken = tight.sweep(state, rng.permutation(problem.n_pairs))
            if sweep < due and not broken:
                continue
            due = sweep + 1 + sweep // 4
            if _inside(problem, state):
                return state.M, state.P
            for ray in (state.a, np.maximum(state.a - before, 0.0)):
                if original.proves(ray):
                    raise infeasible(problem, ray)
            if broken or test.proves(state.a):
                break
            before = state.a.copy()
            _refresh(tight, state)
    return None


def _inside(problem: MetricProblem, state: Multipliers) -> bool:
    M, P = (np.tril(A) + np.tril(A, -1).T for A in (state.M, state.P))
    p, s = problem.lengths(M, P)
    room: AnyArray = (problem.sign * (s - p))[problem.told]
    inside = bool((room > 1e-6 * s[problem.told]).all())
    if inside:
        state.M, state.P = M, P
    return inside and all(np.linalg.eigvalsh(A)[0] > 0.0 for A in (M, P))


def _refresh(problem: MetricProblem, state: Multipliers) -> None:
    M, _, P, _ = problem.metrics(state)
    state.M, state.P = M.copy(), P.copy()
