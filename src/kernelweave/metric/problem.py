"""LogDet metric learning from pairs, with slacks that may be distances in a privileged space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.metric.space import Space, invert
from kernelweave.solvers.certificate import Certificate

ROUNDING = 1e-13  # of the sum of all terms of a bound: what its double arithmetic may lose
VISITS = 65536  # pairs per call of the core, so that Ctrl-C is heard


@dataclass
class Multipliers:
    """State of the projections: a of the distances, b of the privileged ones, the metrics they make."""

    a: Vector
    b: Vector
    M: Matrix
    P: Matrix


@dataclass(frozen=True)
class Solution:
    """Two metrics, the objective they have, and the dual value of the multipliers they come from."""

    M: Matrix
    P: Matrix
    upper: float
    lower: float

    @property
    def certificate(self) -> Certificate:
        return Certificate(self.upper, self.lower)


@dataclass(frozen=True)
class MetricProblem:
    r"""Metrics M, and P on privileged features, that bring pairs to their goals.

    minimise  D(M, M0) + lam D(P, P0) + sum_told [ gamma l(s, goal) + cap max(0, sign (p - s)) ]
                                      + sum_others gamma l(p, goal) where sign (p - goal) > 0

    with p = v'Mv, s = w'Pw, l(x, y) = x/y - log(x/y) - 1 and D the LogDet divergence. The cap is infinite in
    the hard form. ``told`` marks pairs with privileged features.

    Notes
    -----
    [Xu14, Eq. (5.2), (5.4), (5.5)]. The dual, with 0 <= a <= cap, b = 0 on pairs without privileged features:

        logdet(I + sum a sign vv') + lam logdet(I - sum b ww' / lam)
        + sum gamma log(1 + (b - sign a) goal / gamma)

    Differs from the paper: the cap, which makes the problem feasible; weights of pairs in gamma and cap.
    """

    space: Space
    privileged: Space
    sign: Vector
    goal: Vector
    gamma: Vector
    cap: Vector
    told: AnyArray
    reach: Vector
    lam: float

    @property
    def n_pairs(self) -> int:
        return len(self.sign)

    def start(self) -> Multipliers:
        """Return the multipliers zero, where both metrics are their priors."""
        zeros = np.zeros(self.n_pairs)
        return Multipliers(zeros, zeros.copy(), self.space.prior.copy(), self.privileged.prior.copy())

    def sweep(self, state: Multipliers, order: AnyArray, corrected: bool = True) -> int:
        """Visit every pair once; return how many had a distance too small or large for a number."""
        broken = 0
        for start in range(0, len(order), VISITS):
            visits = order[start : start + VISITS]
            broken += _core.project_pairs(
                self.space.points,
                state.M,
                self.privileged.points,
                state.P,
                self.space.ends,
                self.privileged.ends,
                self.sign,
                self.goal,
                self.gamma,
                self.cap,
                self.told.view(np.uint8),
                self.reach,
                visits,
                self.lam,
                corrected,
                state.a,
                state.b,
            )
        return broken

    def metrics(self, state: Multipliers) -> tuple[Matrix, float, Matrix, float]:
        """Return M and P of the multipliers, made afresh, each with the logarithm of its determinant."""
        M, logdet_M = self.space.prior, self.space.prior_logdet
        P, logdet_P = self.privileged.prior, self.privileged.prior_logdet
        if state.a.any():
            M, logdet_M = invert(self.space.prior_inverse + self.space.scatter(state.a * self.sign))
        if state.b.any():
            pull = self.privileged.scatter(state.b * self.reach**2) / self.lam
            P, logdet_P = invert(self.privileged.prior_inverse - pull)
        return M, logdet_M, P, logdet_P

    def certify(self, state: Multipliers, inner: tuple[Matrix, Matrix] | None = None) -> Solution:
        """Return the metrics of the multipliers with both bounds of the optimum, and refresh the state's own.

        ``inner`` is a strictly feasible pair of metrics: the hard form needs one for its upper bound.
        """
        M, logdet_M, P, logdet_P = self.metrics(state)
        state.M, state.P = M.copy(), P.copy()
        lower = self.dual(state, logdet_M, logdet_P)
        p, s = self.lengths(M, P)
        excess = np.where(self.told, self.sign * (p - s), 0.0)
        if np.isinf(self.cap).any() and (excess > 0.0).any() and inner is not None:
            # The constraints form a cone: enough of a strictly feasible point mends every violation.
            p_inner, s_inner = self.lengths(*inner)
            room = np.where(self.told, self.sign * (s_inner - p_inner), 1.0)
            share = max(0.0, float((excess / room).max())) * (1.0 + 1e-9)
            M, P = M + share * inner[0], P + share * inner[1]
            p, s = p + share * p_inner, s + share * s_inner
            excess = np.minimum(excess - share * room, 0.0)
            logdet_M, logdet_P = (-invert(metric)[1] for metric in (M, P))
        return Solution(M, P, self.primal(M, logdet_M, P, logdet_P, p, s, excess), lower)

    def lengths(self, M: Matrix, P: Matrix) -> tuple[Vector, Vector]:
        """Return all pairs' distances in both spaces; the goal stands in for unknown privileged ones."""
        p, s = self.space.squared_lengths(M), self.goal.copy()
        if self.told.any():
            s = np.where(self.told, self.reach**2 * self.privileged.squared_lengths(P), s)
        return p, s

    def dual(self, state: Multipliers, logdet_M: float, logdet_P: float) -> float:
        """Return a lower bound of the optimum: the dual value, less what its arithmetic may lose."""
        terms = [self.space.prior_logdet - logdet_M, self.lam * (self.privileged.prior_logdet - logdet_P)]
        slack = 1.0 + (state.b - self.sign * state.a) * self.goal / self.gamma
        if slack.min() <= 0.0:
            return -np.inf
        losses = self.gamma * np.log(slack)
        size = sum(map(abs, terms)) + float(np.abs(losses).sum())
        return sum(terms) + float(losses.sum()) - ROUNDING * size

    def primal(
        self, M: Matrix, logdet_M: float, P: Matrix, logdet_P: float, p: Vector, s: Vector, excess: Vector
    ) -> float:
        """Return an upper bound of the optimum: the objective, plus what its arithmetic may lose."""
        terms, size = [], 0.0
        for space, metric, logdet, factor in (
            (self.space, M, logdet_M, 1.0),
            (self.privileged, P, logdet_P, self.lam),
        ):
            if metric is not space.prior:  # the divergence of the prior from itself is exactly zero
                terms.append(factor * space.divergence(metric, logdet))
                size += abs(terms[-1]) + 2.0 * factor * space.dim
        if np.isinf(self.cap[excess > 0.0]).any():
            return np.inf
        reached = np.where(self.told, s, np.where(self.sign * (p - self.goal) > 0.0, p, self.goal))
        ratio = reached / self.goal
        losses = self.gamma * (ratio - np.log(ratio) - 1.0)
        hinges = np.where(excess > 0.0, self.cap, 0.0) * np.maximum(excess, 0.0)
        total = sum(terms) + float(losses.sum()) + float(hinges.sum())
        return total + ROUNDING * (size + float(np.abs(losses).sum()) + float(hinges.sum()))
