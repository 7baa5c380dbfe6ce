"""The LogDet problem of ITML and ITML+: its pairs, its primal and dual, and the certificate the two make.

From top to bottom: `PointPairs` (pairs of points by index), `PairSpace` (pairs with a prior metric and the
LogDet divergence from it), `LogDetProblem` (what is minimised, its dual, one sweep of projections, and the
bounds of the optimum). `projections.py` repeats the sweeps until the bounds meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist

from kernelweave import _core
from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.solvers.certificate import Certificate

# What double arithmetic may lose in a bound, relative to the sum of the sizes of all its terms.
ROUNDING = 1e-13


@dataclass(frozen=True)
class PointPairs:
    """Points as rows and, per pair, the indices of its two points.

    The differences v = x_i - x_j exist for a few thousand pairs at a time only.
    """

    points: Matrix
    ends: AnyArray

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    def subset(self, mask: AnyArray) -> Self:
        """Return the pairs of a mask; the table of points is shared, not copied."""
        return replace(self, ends=self.ends[mask])

    def used_points(self) -> Matrix:
        """Return the points that belong to a pair, each once."""
        return np.asarray(self.points[np.unique(self.ends)])

    def differences(self) -> Iterator[Matrix]:
        """Yield the differences of the pairs, in their order, one chunk of pairs after the other."""
        chunk = 4096  # with 150 features 5 MB
        for start in range(0, len(self), chunk):
            first, second = self.ends[start : start + chunk].T
            yield self.points[first] - self.points[second]

    def have_distinct_points(self) -> AnyArray:
        """Return, per pair, whether its two points differ."""
        return np.concatenate([V.any(axis=1) for V in self.differences()])

    def squared_lengths(self, metric: Matrix) -> Vector:
        """Return v'Mv per pair [Xu14, Eq. (5.1)]."""
        return np.concatenate([np.einsum("ij,ij->i", V @ metric, V) for V in self.differences()])

    def lengths(self, components: Matrix) -> Vector:
        """Return ‖Lv‖ per pair: with M = L'L the root of v'Mv, and exact for nearly equal points as well."""
        return np.concatenate([np.linalg.norm(V @ components.T, axis=1) for V in self.differences()])

    def scatter(self, weight: Vector) -> Matrix:
        """Return the sum of weight vv' over the pairs."""
        total = np.zeros((self.dim, self.dim))
        used = weight != 0.0  # most multipliers are zero at the optimum
        weight, start = weight[used], 0
        for V in self.subset(used).differences():
            total += (V * weight[start : start + len(V), None]).T @ V
            start += len(V)
        return (total + total.T) / 2.0


@dataclass(frozen=True)
class PairSpace(PointPairs):
    """Pairs of points and the prior metric that a learnt one stays close to."""

    prior: Matrix

    @classmethod
    def without_features(cls, n_pairs: int) -> Self:
        """Return the privileged space of pairs that have no privileged features: every point is zero."""
        return cls(np.zeros((1, 1)), np.zeros((n_pairs, 2), dtype=np.int64), np.eye(1))

    @cached_property
    def prior_inverse(self) -> Matrix:
        return invert(self.prior)

    @cached_property
    def prior_logdet(self) -> float:
        return logdet(self.prior)

    def logdet_ratio(self, metric: Matrix) -> float:
        """Return logdet(M0 / M)."""
        return self.prior_logdet - logdet(metric)

    def divergence(self, metric: Matrix) -> float:
        """Return the LogDet divergence D(M, M0) = tr(M / M0) - logdet(M / M0) - dim [Xu14, Eq. (5.3)]."""
        if metric is self.prior:
            return 0.0  # exactly: a prior that satisfies every pair has a gap of zero
        trace = float(np.einsum("ij,ij->", metric, self.prior_inverse))
        return trace + self.logdet_ratio(metric) - self.dim


def invert(A: Matrix) -> Matrix:
    """Return the inverse of a positive definite matrix; numpy's LinAlgError where it is none."""
    inverse = cho_solve(cho_factor(A, lower=True), np.eye(len(A)))
    return np.asarray(inverse + inverse.T) / 2.0


def logdet(A: Matrix) -> float:
    """Return the logarithm of the determinant of a positive definite matrix."""
    return 2.0 * float(np.log(np.diagonal(np.linalg.cholesky(A))).sum())


@dataclass
class ProjectionState:
    """Multipliers a (of the distances) and b (of the privileged distances), with the metrics they make.

    A sweep updates the metrics by rank one, in their lower triangles only, and rounding errors add up there;
    `LogDetProblem.certify` computes both afresh from the multipliers.
    """

    a: Vector
    b: Vector
    M: Matrix
    P: Matrix


@dataclass(frozen=True)
class PrimalPoint:
    """Metrics M and P, and the squared distances p = v'Mv and s = w'Pw of the pairs under them.

    ``excess`` is sign (p - s), positive where a pair with privileged features has the two in the wrong order,
    and 0 for the other pairs.
    """

    M: Matrix
    P: Matrix
    p: Vector
    s: Vector
    excess: Vector


@dataclass(frozen=True)
class LogDetProblem:
    r"""Metrics M, and P on privileged features, close to their priors, that bring pairs to their goals.

    minimise  D(M, M0) + lam D(P, P0) + Σ_privileged [ gamma l(s, goal) + cap max(0, sign (p - s)) ]
                                      + Σ_others gamma l(p, goal) where sign (p - goal) > 0

    with p = v'Mv, s = w'Pw, l(x, y) = x/y - log(x/y) - 1 and D the LogDet divergence. Build it with `itml`,
    and `itml_plus` of that where pairs have privileged features.

    Parameters
    ----------
    space : PairSpace
        The pairs' points, differences v, and M0.
    privileged : PairSpace
        The same pairs in the privileged space, differences w, and P0.
    sign : array of shape (n_pairs,)
        +1 similar: p should be small. -1 dissimilar: p should be large.
    goal : array of shape (n_pairs,)
        Squared distance asked for: u on similar, l on dissimilar pairs.
    gamma : array of shape (n_pairs,)
        Price of missing the goal, the pair's weight included.
    cap : array of shape (n_pairs,)
        Price of p and s in the wrong order, which caps the multiplier a; infinite in the hard form.
    has_privileged : bool array of shape (n_pairs,)
        Pairs whose slack is their privileged distance s. The slack of the others is a variable of their own,
        here minimised out.
    lam : float
        Price of leaving P0.

    Notes
    -----
    [Xu14, Eq. (5.2), (5.4), (5.5)]. The dual, for 0 <= a <= cap, and b = 0 without privileged features:

        logdet(I + M0 Σ a sign vv') + lam logdet(I - P0 Σ b ww' / lam)
        + Σ gamma log(1 + (b - sign a) goal / gamma)

    Its multipliers make the metrics and slacks

        inv(M) = inv(M0) + Σ a sign vv', inv(P) = inv(P0) - Σ b ww' / lam, 1/ξ = 1/goal + (b - sign a)/gamma.

    Differs from the paper: the cap, which makes the problem feasible; weights of pairs in gamma and cap.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.metric import LogDetProblem, PairSpace
    >>> space = PairSpace(np.array([[0.0], [1.0], [4.0]]), np.array([[0, 1], [0, 2]]), prior=np.eye(1))
    >>> problem = LogDetProblem.itml(space, np.array([1.0, -1.0]), (0.5, 9.0), gamma=np.ones(2))
    >>> state = problem.initial_state()
    >>> problem.sweep(state, order=np.array([0, 1]))  # visits that failed
    0
    >>> _, certificate = problem.certify(state)
    >>> certificate.lower <= certificate.upper
    True

    """

    space: PairSpace
    privileged: PairSpace
    sign: Vector
    goal: Vector
    gamma: Vector
    cap: Vector
    has_privileged: AnyArray
    lam: float

    @classmethod
    def itml(cls, space: PairSpace, sign: Vector, bounds: tuple[float, float], gamma: Vector) -> Self:
        """Return the problem of [Xu14, Eq. (5.2)], in which every pair has a slack of its own."""
        n_pairs = len(space)
        return cls(
            space,
            PairSpace.without_features(n_pairs),
            sign,
            goal=np.where(sign > 0.0, *bounds),
            gamma=gamma,
            cap=np.full(n_pairs, np.inf),
            has_privileged=np.zeros(n_pairs, dtype=bool),
            lam=1.0,
        )

    def itml_plus(self, privileged: PairSpace, has_privileged: AnyArray, lam: float, kappa: Vector) -> Self:
        """Return the problem of [Xu14, Eq. (5.5)]: privileged distances are the slacks of some pairs.

        ``kappa`` is the price of p and s in the wrong order in units of the goal, per pair; infinity is the
        paper's hard constraint.
        """
        cap = np.where(has_privileged, kappa / self.goal, np.inf)
        return replace(self, privileged=privileged, cap=cap, has_privileged=has_privileged, lam=lam)

    @property
    def n_pairs(self) -> int:
        return len(self.sign)

    @property
    def is_hard(self) -> bool:
        """Whether some constraint has no slack, so that the problem may be infeasible."""
        return bool(np.isinf(self.cap[self.has_privileged]).any())

    def initial_state(self) -> ProjectionState:
        """Return multipliers of zero, where both metrics are their priors."""
        zeros = np.zeros(self.n_pairs)
        return ProjectionState(zeros, zeros.copy(), self.space.prior.copy(), self.privileged.prior.copy())

    def sweep(self, state: ProjectionState, order: AnyArray, corrected: bool = True) -> int:
        """Project on the pairs named by ``order``, one after the other; return how many visits failed.

        A visit fails where a distance has left the range of positive numbers. The steps are those of
        [Xu14, Eq. (5.11)-(5.13), (5.23), (5.24)]; ``corrected`` gives multipliers back where a constraint has
        become slack.
        """
        return _core.project_pairs(
            X=self.space.points,
            M=state.M,
            Z=self.privileged.points,
            P=state.P,
            ends=self.space.ends,
            privileged_ends=self.privileged.ends,
            sign=self.sign,
            goal=self.goal,
            gamma=self.gamma,
            cap=self.cap,
            has_privileged=self.has_privileged.view(np.uint8),
            reach=np.ones(self.n_pairs),  # privileged differences as they are
            order=order,
            lam=self.lam,
            corrected=corrected,
            a=state.a,
            b=state.b,
        )

    def certify(
        self, state: ProjectionState, interior: PrimalPoint | None = None
    ) -> tuple[PrimalPoint, Certificate]:
        """Return a primal point of the multipliers with bounds of the optimum; compute the metrics afresh.

        ``interior`` is a strictly feasible point: the hard form needs one for its upper bound.
        """
        point = self.primal_point(*self.metrics(state))
        state.M, state.P = point.M.copy(), point.P.copy()
        lower = self.dual_bound(state, point)
        if interior is not None:
            point = self.make_feasible(point, interior)
        return point, Certificate(self.primal_bound(point), lower)

    def metrics(self, state: ProjectionState) -> tuple[Matrix, Matrix]:
        """Return the metrics M and P that the multipliers make."""
        M, P = self.space.prior, self.privileged.prior
        if state.a.any():
            M = invert(self.space.prior_inverse + self.space.scatter(state.a * self.sign))
        if state.b.any():
            P = invert(self.privileged.prior_inverse - self.privileged.scatter(state.b) / self.lam)
        return M, P

    def primal_point(self, M: Matrix, P: Matrix) -> PrimalPoint:
        """Return two metrics with the distances of all pairs under them."""
        p, s = self.space.squared_lengths(M), self.privileged.squared_lengths(P)
        return PrimalPoint(M, P, p, s, excess=np.where(self.has_privileged, self.sign * (p - s), 0.0))

    def make_feasible(self, point: PrimalPoint, interior: PrimalPoint) -> PrimalPoint:
        """Return the point plus as much of a strictly feasible one as satisfies every constraint.

        The constraints sign (v'Mv - w'Pw) <= 0 are linear in (M, P) and have no constant: they form a cone,
        in which any multiple of the interior point lies.
        """
        if point.excess.max() <= 0.0:
            return point
        room = np.where(self.has_privileged, -interior.excess, 1.0)
        share = float((point.excess / room).max()) * (1.0 + 1e-9)  # beyond rounding of the quotient
        return PrimalPoint(
            M=point.M + share * interior.M,
            P=point.P + share * interior.P,
            p=point.p + share * interior.p,
            s=point.s + share * interior.s,
            excess=np.minimum(point.excess - share * room, 0.0),
        )

    def dual_bound(self, state: ProjectionState, point: PrimalPoint) -> float:
        """Return a lower bound of the optimum: the dual value, less what its arithmetic may lose.

        ``point`` has the metrics of the same multipliers, so logdet(I + M0 Σ a sign vv') = logdet(M0 / M).
        """
        slack_ratio = 1.0 + (state.b - self.sign * state.a) * self.goal / self.gamma  # goal / ξ
        if slack_ratio.min() <= 0.0:
            return -np.inf
        logdets = [self.space.logdet_ratio(point.M), self.lam * self.privileged.logdet_ratio(point.P)]
        terms = np.append(self.gamma * np.log(slack_ratio), logdets)
        return float(terms.sum() - ROUNDING * np.abs(terms).sum())

    def primal_bound(self, point: PrimalPoint) -> float:
        """Return an upper bound of the optimum: the objective, plus what its arithmetic may lose."""
        violated = point.excess > 0.0
        if np.isinf(self.cap[violated]).any():
            return np.inf
        missed = self.sign * (point.p - self.goal) > 0.0
        slack = np.where(self.has_privileged, point.s, np.where(missed, point.p, self.goal))
        ratio = slack / self.goal
        losses = self.gamma * (ratio - np.log(ratio) - 1.0)
        penalties = self.cap[violated] * point.excess[violated]
        factors = np.array([1.0, self.lam])
        divergences = factors * [self.space.divergence(point.M), self.privileged.divergence(point.P)]
        dims = factors * [self.space.dim, self.privileged.dim]
        terms = np.concatenate([divergences, losses, penalties])
        # In a divergence that is not exactly zero, a trace of about dim was cancelled.
        size = np.abs(terms).sum() + 2.0 * dims[divergences != 0.0].sum()
        return float(terms.sum() + ROUNDING * size)


def distance_percentiles(
    points: Matrix, metric: Matrix, percentiles: tuple[float, float]
) -> tuple[float, float]:
    """Return percentiles of the squared distances between different points.

    Beyond 4000 points evenly spaced ones of their sorted list are taken, so that the result depends on the
    set of points and not on their order.
    """
    most_points = 4000  # all distances between them take 64 MB
    points = np.unique(points, axis=0)
    if len(points) > most_points:
        points = points[np.linspace(0, len(points) - 1, most_points).round().astype(np.intp)]
    if len(points) < 2:
        return 0.0, 0.0
    distances = pdist(points @ np.linalg.cholesky(metric), "sqeuclidean")
    low, high = np.percentile(distances, percentiles)
    return float(low), float(high)
