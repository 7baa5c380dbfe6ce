"""Every geometry's set and penalty, written from the definitions alone: samplers, membership, cones.

Nothing here calls the package but to build the geometries under test.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np

from kernelweave.geometry import (
    BoxSimplex,
    ElasticNetBall,
    Geometry,
    GroupBox,
    LpBall,
    Point,
    PowerSimplex,
    RidgeSimplex,
    Simplex,
    Uniform,
)

M = 7  # kernels in every table-driven test
GROUPS = ["a", "b", "a", "c", "c", "b", "c"]
SLACK = 1e-9


@dataclass(frozen=True)
class Case:
    """One geometry beside what its definition says."""

    geometry: Geometry
    sample: Callable  # rng -> a point of the set
    contains: Callable  # eta -> bool
    constraints: Callable  # cvxpy variable -> cvxpy constraints
    penalty: Callable = lambda _eta: 0.0
    conic_penalty: Callable = lambda _x: 0.0

    def permuted(self, order):
        """The same set with the kernels in another order."""
        if isinstance(self.geometry, GroupBox) and self.geometry.groups is not None:
            return replace(self.geometry, groups=[self.geometry.groups[i] for i in order])
        if isinstance(self.geometry, Point):
            return replace(self.geometry, weights=[self.geometry.weights[i] for i in order])
        return self.geometry


def on_simplex(rng):
    eta = rng.exponential(size=M) * (rng.random(M) < 0.7)
    return eta / eta.sum() if eta.any() else np.eye(M)[0]


def simplex_contains(eta):
    return bool(np.all(eta >= -SLACK)) and abs(sum(eta) - 1.0) <= SLACK


def uniform():
    return Case(
        Uniform(),
        lambda _rng: np.full(M, 1.0 / M),
        lambda eta: bool(np.all(np.abs(eta - 1.0 / M) <= SLACK)),
        lambda x: [x == 1.0 / M],
    )


def point(weights):
    return Case(
        Point(weights),
        lambda _rng: np.array(weights),
        lambda eta: all(abs(e - w) <= SLACK for e, w in zip(eta, weights, strict=True)),
        lambda x: [x == np.array(weights)],
    )


def simplex():
    return Case(Simplex(), on_simplex, simplex_contains, lambda x: [x >= 0, cp.sum(x) == 1])


def box(geometry, theta):
    def sample(rng):
        eta = np.zeros(M)
        left = 1.0
        for m in rng.permutation(M):  # as much as the others can leave over, at most theta
            rest = theta * (np.count_nonzero(eta == 0.0) - 1)
            eta[m] = rng.uniform(max(0.0, left - rest), min(theta, left)) if rest > 0 else left
            left -= eta[m]
        return eta

    return Case(
        geometry,
        sample,
        lambda eta: simplex_contains(eta) and max(eta) <= theta + SLACK,
        lambda x: [x >= 0, x <= theta, cp.sum(x) == 1],
    )


def ridge(theta):
    return Case(
        RidgeSimplex(theta),
        on_simplex,
        simplex_contains,
        lambda x: [x >= 0, cp.sum(x) == 1],
        lambda eta: sum(e * e for e in eta) / (2.0 * theta),
        lambda x: cp.sum_squares(x) / (2.0 * theta),
    )


def power(theta, p):
    """The conjugate of the loss theta/2 zeta^q, maximised over the slack numerically."""
    q = p / (p - 1.0)

    def penalty(eta):
        total = 0.0
        for e in eta:
            slack = (2.0 * e / (q * theta)) ** (1.0 / (q - 1.0)) if e > 0.0 else 0.0
            total += e * slack - 0.5 * theta * slack**q
        return total

    one = penalty([1.0])  # the penalty is homogeneous of degree p
    return Case(
        PowerSimplex(theta, p),
        on_simplex,
        simplex_contains,
        lambda x: [x >= 0, cp.sum(x) == 1],
        penalty,
        lambda x: one * cp.sum(cp.power(x, p)),
    )


def ball(geometry, level, constraints):
    """A set {eta >= 0, level(eta) <= 1}, star-shaped around 0: sample a direction, then a radius."""

    def sample(rng):
        direction = rng.exponential(size=M) * (rng.random(M) < 0.7) + 1e-12
        near, far = 0.0, 1.0
        while level(far * direction) < 1.0:
            far *= 2.0
        for _ in range(60):
            middle = 0.5 * (near + far)
            near, far = (middle, far) if level(middle * direction) <= 1.0 else (near, middle)
        return rng.choice([1.0, rng.random()]) * near * direction

    return Case(
        geometry,
        sample,
        lambda eta: bool(np.all(eta >= -SLACK)) and level(np.maximum(eta, 0.0)) <= 1.0 + 1e-8,
        lambda x: [x >= 0, *constraints(x)],
    )


def lp(p):
    def level(eta):
        return max(eta) if p == np.inf else sum(e**p for e in eta) ** (1.0 / p)

    return ball(LpBall(p), level, lambda x: [x <= 1] if p == np.inf else [cp.norm(x, p) <= 1])


def elastic(v):
    return ball(
        ElasticNetBall(v),
        lambda eta: v * sum(eta) + (1.0 - v) * sum(e * e for e in eta),
        lambda x: [v * cp.sum(x) + (1.0 - v) * cp.sum_squares(x) <= 1],
    )


def group(groups, theta):
    labels = list(range(M)) if groups is None else groups
    members = [[m for m in range(M) if labels[m] == label] for label in dict.fromkeys(labels)]

    def level(eta):
        lengths = [float(np.sqrt(sum(eta[m] ** 2 for m in t))) for t in members]
        return max(sum(lengths), max(lengths) / theta)

    def constraints(x):
        lengths = [cp.norm(x[t], 2) for t in members]
        return [sum(lengths) <= 1, *(length <= theta for length in lengths)]

    return ball(GroupBox(groups, theta), level, constraints)


CASES = [
    uniform(),
    point([0.1, 0.2, 0.9, 0.4, 0.3, 0.05, 0.6]),
    simplex(),
    box(BoxSimplex(theta=0.3), 0.3),
    box(BoxSimplex(theta=0.25), 0.25),
    box(BoxSimplex(nu=0.4), 1.0 / (0.4 * M)),
    box(BoxSimplex(), 2.0 / M),
    box(BoxSimplex(theta=1.5), 1.0),
    ridge(1.0),
    ridge(0.05),
    ridge(30.0),
    power(1.0, 1.5),
    power(0.3, 3.0),
    power(2.0, 1.1),
    lp(1.0),
    lp(1.2),
    lp(2.0),
    lp(3.5),
    lp(np.inf),
    elastic(0.0),
    elastic(0.3),
    elastic(0.9),
    elastic(1.0),
    group(None, 0.4),
    group(GROUPS, 1.0),
    group(GROUPS, 0.45),
    group(GROUPS, 0.2),
]
IDS = [str(case.geometry).replace(f"groups={GROUPS}", "grouped").replace("=", "") for case in CASES]
