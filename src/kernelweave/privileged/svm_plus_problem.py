"""The mathematics of SVM+: its dual variables, and from any of them two bounds of the optimum."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.learners.bias import hinge_bias
from kernelweave.learners.solution import InnerSolution, reduced_hessian, rounding_of_product


@dataclass(frozen=True)
class SVMPlusTerms:
    """Per sample its label y, the price C of its slack, and whether privileged features explain the slack."""

    y: Vector
    C: Vector
    has_privileged: AnyArray

    @property
    def rows(self) -> Indices:
        """The samples with privileged features."""
        return np.flatnonzero(self.has_privileged)

    @property
    def budget(self) -> float:
        """The sum of the prices of samples with privileged features: what their alpha + beta add up to."""
        return float(self.C[self.has_privileged].sum())


@dataclass(frozen=True, kw_only=True)
class SVMPlusSolution(InnerSolution):
    """One solved SVM+: ``coef`` has the columns v = α∘y and e = α + β − C (0 without privileged features).

    ``xi`` are the slacks; ``free`` marks the α and the β strictly inside their bounds, by column. The first
    ``n_decision`` kernel weights are those of the decision space.
    """

    terms: SVMPlusTerms = field(repr=False)
    xi: Vector = field(repr=False)
    free: AnyArray = field(repr=False)
    n_decision: int = 1

    def rounding_allowance(self, eta: Vector, errors: Vector) -> float:
        return sum(
            rounding_of_product(float(eta[some] @ errors[some]), size) * (self.gradient_bound + 0.5 * size)
            for some, size in self._spaces()
        )

    def energy_allowance(self, errors: Vector) -> Vector:
        return np.concatenate(
            [0.5 * rounding_of_product(1.0, size) * size * errors[some] for some, size in self._spaces()]
        )

    def _spaces(self) -> list[tuple[slice, float]]:
        """Return for either space which weights are its own, and the norm of its coefficients."""
        v, e = np.linalg.norm(self.coef, axis=0)
        return [(slice(0, self.n_decision), float(v)), (slice(self.n_decision, None), float(e))]

    @property
    def needed_matvecs(self) -> AnyArray:
        return np.ones(self.coef.shape, dtype=bool)

    def curvature(self, K: AnyArray, matvecs: Matrix, n_threads: int = 1) -> Matrix:
        """Return the Hessian of the optimal value in the weights of both spaces, the free set held."""
        y, privileged = self.terms.y, self.terms.has_privileged
        a, b = np.flatnonzero(self.free[:, 0]), np.flatnonzero(self.free[:, 1])
        if a.size + b.size == 0:
            return np.zeros((matvecs.shape[0], matvecs.shape[0]))
        # In (alpha, beta) the slopes of the energies are (y K_m v + K*_k e, K*_k e).
        U = np.hstack([matvecs[:, a, 0] * y[a] + matvecs[:, a, 1] * privileged[a], matvecs[:, b, 1]]).T
        G = K[1]
        A = np.empty((a.size + b.size, a.size + b.size))
        A[: a.size, : a.size] = K[0][np.ix_(a, a)] * np.outer(y[a], y[a]) + G[np.ix_(a, a)]
        A[: a.size, a.size :] = G[np.ix_(a, b)]
        A[a.size :, : a.size] = A[: a.size, a.size :].T
        A[a.size :, a.size :] = G[np.ix_(b, b)]
        E = np.zeros((a.size + b.size, 2))
        E[: a.size, 0], E[: a.size, 1], E[a.size :, 1] = y[a], privileged[a], 1.0
        E = E[:, E.any(axis=0)]
        return reduced_hessian(A, U, E, n_threads)


def feasible_dual(terms: SVMPlusTerms, alpha: Vector, beta: Vector) -> tuple[Vector, Vector]:
    """Return a feasible point of the dual near (alpha, beta): the classes' sums equal, the budget spent."""
    alpha = np.maximum(alpha, 0.0)
    alpha = np.where(terms.has_privileged, alpha, np.minimum(alpha, terms.C))
    sums = np.array([alpha[terms.y > 0].sum(), alpha[terms.y < 0].sum()])
    target = float(sums.min())
    shrink = np.divide(target, sums, out=np.ones(2), where=sums > 0.0)
    alpha = alpha * np.where(terms.y > 0, shrink[0], shrink[1])
    spent, budget = float(alpha[terms.has_privileged].sum()), terms.budget
    if spent > budget:
        alpha *= budget / spent
        spent = budget
    beta = np.where(terms.has_privileged, np.maximum(beta, 0.0), 0.0)
    total, left = float(beta.sum()), max(budget - spent, 0.0)
    if total > 0.0:
        beta *= left / total
    else:
        beta = np.where(terms.has_privileged, left / max(int(terms.has_privileged.sum()), 1), 0.0)
    return alpha, beta


def coefficients(terms: SVMPlusTerms, alpha: Vector, beta: Vector) -> Matrix:
    """Return v = α∘y and e = α + β − C as columns."""
    e = np.where(terms.has_privileged, alpha + beta - terms.C, 0.0)
    return np.column_stack([alpha * terms.y, e])


def dual_variables(terms: SVMPlusTerms, coef: Matrix) -> tuple[Vector, Vector]:
    """Return (alpha, beta) of the columns v and e."""
    alpha = coef[:, 0] * terms.y
    return alpha, np.where(terms.has_privileged, coef[:, 1] + terms.C - alpha, 0.0)


def evaluate(terms: SVMPlusTerms, coef: Matrix, matvecs: Matrix) -> SVMPlusSolution:
    """Return the solution with feasible coefficients, given the columns f = K v and g = K* e / λ.

    Whatever the coefficients, w = Σ v_i φ(x_i), w* = Σ e_i φ*(z_i)/λ, the best intercept and the smallest
    feasible ρ make a primal point; together with the dual value it bounds the optimum from both sides.
    """
    y, C, privileged = terms.y, terms.C, terms.has_privileged
    f, g = matvecs[:, 0], matvecs[:, 1]
    b, rho = _offsets(terms, f, g)
    xi = np.where(privileged, g + rho, np.maximum(0.0, 1.0 - y * (f + b)))
    alpha, beta = dual_variables(terms, coef)
    free = np.column_stack([(alpha > 0.0) & (privileged | (alpha < C)), privileged & (beta > 0.0)])
    return SVMPlusSolution(
        coef=coef,
        intercept=np.asarray(b),
        margin=np.asarray(1.0),
        g=float(alpha.sum()),
        quadratic=float(np.vdot(coef, matvecs)),
        loss=float(C @ xi),
        # ρ moves with the largest change of f and g, every other slack with its own.
        gradient_bound=float(np.linalg.norm(C)) + 2.0 * terms.budget,
        curvature_bound=0.0,
        programs=(),
        terms=terms,
        xi=xi,
        free=free,
    )


def _offsets(terms: SVMPlusTerms, f: Vector, g: Vector) -> tuple[float, float]:
    """Return the intercept b and the offset ρ of the slacks that cost least at these f and g.

    ρ(b) = max(−min g, A − b, B + b) with A, B the largest shortfalls of either class: up to a
    constant the hinge losses of one positive and one negative sample, each at the price of the budget.
    """
    y, privileged = terms.y, terms.has_privileged
    loose = ~privileged
    if not privileged.any():
        return hinge_bias(f, y, terms.C), 0.0
    floor = -float(g[privileged].min())
    up, down = privileged & (y > 0), privileged & (y < 0)
    A = float(np.max(1.0 - f[up] - g[up], initial=-np.inf))
    B = float(np.max(1.0 + f[down] - g[down], initial=-np.inf))
    level = max(floor, 0.5 * (A + B))
    stand_ins, signs = np.array([1.0 - (A - level), -1.0 - (level - B)]), np.array([1.0, -1.0])
    there = np.isfinite(stand_ins)
    f_all = np.concatenate([f[loose], stand_ins[there]])
    y_all = np.concatenate([y[loose], signs[there]])
    C_all = np.concatenate([terms.C[loose], np.full(int(there.sum()), terms.budget)])
    b = hinge_bias(f_all, y_all, C_all)
    return b, max(floor, A - b, B + b)
