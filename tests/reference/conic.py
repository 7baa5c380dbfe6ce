"""The multiple kernel learning optimum by conic programming, along two independent routes.

With v = alpha * y and h_m = v'K_m v / 2 the saddle point

    min over eta in the set   max over alpha in A     g(alpha) - sum_m eta_m h_m(alpha) + r(eta)

is solved as its dual, max g(alpha) - Omega*(h(alpha)), by `conic_optimum`, and as its primal,
min sum_m ||f_m||^2 / (2 eta_m) + loss(f + b) + r(eta), by `primal_optimum`.

Learners: ("hinge", C), ("nu", nu), ("squared", C), ("distribution", c); C, c are a number or one per sample.
Geometries: ("uniform",), ("point", weights), ("simplex",), ("box", theta), ("ridge", theta),
("power", theta, p), ("lp", p), ("elastic", v), ("group", groups, theta) with groups as lists of kernel
indices or one label per kernel.
"""

from typing import NamedTuple

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq

from .cones import GOOD_ENOUGH, REQUIRED, OracleError, attempts, factor, solve


class ConicSolution(NamedTuple):
    """The optimal value and the kernel weights that reach it."""

    value: float
    eta: np.ndarray


def conic_optimum(Ks, y, learner, geometry):
    """Return the optimum of one binary problem from max g(alpha) - Omega*(h(alpha))."""
    return conic_optimum_shared(Ks, np.asarray(y, float)[:, None], learner, geometry)


def assert_encloses(certificate, optimum, accuracy=1e-8):
    """Assert that the optimum lies between both bounds, up to the oracle's own accuracy."""
    slack = accuracy * abs(optimum)
    assert certificate.lower <= optimum + slack
    assert optimum <= certificate.upper + slack


def primal_optimum(Ks, y, learner, geometry):
    """Return the same optimum from min sum_m ||f_m||^2 / (2 eta_m) + loss + r(eta)."""
    return primal_optimum_shared(Ks, np.asarray(y, float)[:, None], learner, geometry)


def conic_optimum_shared(Ks, Y, learner, geometry):
    """Return the optimum when all columns of Y (n, classes) share one eta: sum_c g_c - Omega*(sum_c h_c).

    The value is the middle of a bracket that is checked on every call: a feasible alpha from below,
    Clarabel's dual objective from above.
    """
    name, C = _learner(learner, len(Y))
    used = C > 0  # a sample of weight zero has alpha = 0
    Y, C = np.asarray(Y, float)[used], C[used]
    Ls = [factor(np.asarray(K, float)[np.ix_(used, used)]) for K in Ks]
    s = _typical_size(Ls, Y, name, C)  # alpha = s a: the energies of a are about 1
    limit = C / s if name in ("hinge", "nu") else np.full_like(C, np.inf)
    total = {"nu": 1.0 / s, "distribution": 2.0 / s}.get(name)

    a = cp.Variable(Y.shape)
    lengths = cp.Variable(len(Ls))
    t = cp.Variable(len(Ls))
    energies_below_t = cp.square(lengths) / 2.0 <= t
    V = cp.multiply(Y, a)
    constraints = [energies_below_t, a >= 0, cp.sum(V, axis=0) == 0]
    constraints += [cp.SOC(lengths[m], cp.vec(L.T @ V, order="F")) for m, L in enumerate(Ls) if L.size]
    if name in ("hinge", "nu"):
        constraints.append(a <= limit[:, None])
    if total is not None:
        constraints.append(cp.sum(a, axis=0) == total)
    support, extra = _support(geometry, t, s**2)
    objective = _dual_gain(name, C, s, a) - support
    problem = cp.Problem(cp.Maximize(objective), constraints + extra)

    def feasible():
        a.value = _feasible(a.value, Y, limit, total)
        t.value = np.array([np.sum((L.T @ (Y * a.value)) ** 2) / 2.0 for L in Ls])

    return bracketed(problem, energies_below_t, feasible, s**2)


def bracketed(problem, energies_below_t, feasible, unit):
    """Return the middle of a dual bound and the objective at the point that ``feasible`` leaves."""
    best = (np.inf, None)
    for answer in attempts(problem):
        upper, eta = -answer.obj_val_dual, energies_below_t.dual_value
        feasible()
        lower = float(problem.objective.expr.value)
        middle = (lower + upper) / 2.0
        width = abs(upper - lower) / abs(middle)
        if width < best[0]:
            best = width, ConicSolution(float(unit * middle), np.maximum(eta, 0.0))
        if width <= GOOD_ENOUGH:
            break
    if best[0] > REQUIRED:
        raise OracleError(f"the optimum is only known to a relative {best[0]:.1e}, {REQUIRED} is needed.")
    return best[1]


def primal_optimum_shared(Ks, Y, learner, geometry):
    """Return the optimum with shared weights from the primal: f_m = L_m B_m, eta and a bias per column."""
    Y = np.asarray(Y, float)
    n, columns = Y.shape
    name, C = _learner(learner, n)
    Ls = [factor(np.asarray(K, float)) for K in Ks]
    s = _typical_size(Ls, Y, name, C)  # f = s f~, and the objective is divided by s^2

    eta = cp.Variable(len(Ls), nonneg=True)
    ratios = cp.Variable(len(Ls), nonneg=True)  # ||f_m||^2 / eta_m
    used = C > 0
    slacks = cp.Variable((int(used.sum()), columns), nonneg=True)
    bias = cp.Variable((1, columns))
    scores = np.ones((n, 1)) @ bias
    constraints = []
    for m, L in enumerate(Ls):
        if L.size:
            B = cp.Variable((L.shape[1], columns))
            scores = scores + L @ B
            constraints.append(cp.quad_over_lin(B, eta[m]) <= ratios[m])
    margins = cp.multiply(Y, scores)[used]
    C = C[used][:, None]
    if name == "nu":
        rho = cp.Variable((1, columns))
        constraints.append(slacks >= np.ones((n, 1)) @ rho - margins)
        loss = cp.sum(cp.multiply(C / s, slacks)) - cp.sum(rho) / s
    elif name == "hinge":
        constraints.append(slacks >= 1.0 / s - margins)
        loss = cp.sum(cp.multiply(C / s, slacks))
    elif name == "distribution":  # a margin rho - y b for each class, both of price one
        rho = cp.Variable((1, columns))
        constraints.append(cp.multiply(1.0 / np.sqrt(C), slacks) >= np.ones((len(C), 1)) @ rho - margins)
        loss = cp.sum_squares(slacks) / 2.0 - 2.0 * cp.sum(rho) / s
    else:  # the variable is sqrt(C) times the slack: of the same size for every C
        constraints.append(cp.multiply(1.0 / np.sqrt(C), slacks) >= 1.0 / s - margins)
        loss = cp.sum_squares(slacks) / 2.0
    penalty, extra = _weight_set(geometry, eta)
    objective = cp.sum(ratios) / 2.0 + loss + penalty / s**2
    value = solve(cp.Problem(cp.Minimize(objective), constraints + extra))
    return ConicSolution(float(s**2 * value), np.maximum(eta.value, 0.0))


def _learner(learner, n):
    """Return the learner's name and its C as one number per sample."""
    name, parameter = learner
    if name not in ("hinge", "nu", "squared", "distribution"):
        raise ValueError(f"unknown learner {name!r}")
    C = 1.0 / (parameter * n) if name == "nu" else parameter
    if name == "distribution":  # its loss is that of ("squared", 1/c)
        C = 1.0 / np.asarray(parameter, float)
    return name, np.broadcast_to(np.asarray(C, float), (n,)).copy()


def _dual_gain(name, C, s, a):
    """Return g(s a) / s^2."""
    if name == "nu":
        return 0.0
    gain = cp.sum(a) / s if name != "distribution" else 0.0
    if name in ("squared", "distribution"):
        gain = gain - cp.sum_squares(cp.multiply(np.sqrt(0.5 / C)[:, None], a))
    return gain


def _support(geometry, t, c):
    """Return Omega*(c t) / c as a convex expression that grows with t, and its constraints.

    Each is Lagrangian duality on max eta't - r(eta) over the set, tau the multiplier of its size constraint;
    any tau bounds Omega* from above. Sets without a penalty do not see c.
    """
    name, *parameters = geometry
    tau = cp.Variable()
    if name == "uniform":
        return cp.sum(t) / t.size, []
    if name == "point":
        return np.array(parameters[0]) @ t, []
    if name == "simplex" or (name, *parameters) in (("lp", 1), ("elastic", 1)):
        return cp.max(t), []
    if name == "box":  # eta_m <= theta adds theta max(0, t_m - tau)
        return tau + parameters[0] * cp.sum(cp.pos(t - tau)), []
    if name in ("ridge", "power"):  # the conjugate of r is (theta / 2) sum max(0, z)^q
        theta, p = parameters if name == "power" else (parameters[0], 2.0)
        q = p / (p - 1.0)
        scale = (theta / 2.0) ** (1.0 / q) * c ** ((q - 1.0) / q)
        return tau + cp.sum(_power(cp.pos(scale * (t - tau)), q)), []
    if name == "lp":
        p = parameters[0]
        return (cp.sum(t) if np.isinf(p) else cp.pnorm(t, p / (p - 1.0), approx=False)), []
    if name == "elastic":  # max over eta >= 0 of eta't - tau (v sum eta + (1 - v) ||eta||^2 - 1)
        v = parameters[0]
        return tau + cp.quad_over_lin(cp.pos(t - v * tau), tau) / (4.0 * (1.0 - v)), []
    if name == "group":  # the sum of the group norms may stay below 1: tau >= 0
        groups, theta = _groups(parameters[0], t.size), parameters[1]
        norms = cp.hstack([cp.norm(t[group]) for group in groups])
        return tau + theta * cp.sum(cp.pos(norms - tau)), [tau >= 0]
    raise ValueError(f"unknown geometry {name!r}")


def _weight_set(geometry, eta):
    """Return r(eta) and the constraints of the set, straight from their definitions (eta >= 0 is given)."""
    name, *parameters = geometry
    if name == "uniform":
        return 0.0, [eta == 1.0 / eta.size]
    if name == "point":
        return 0.0, [eta == np.array(parameters[0])]
    if name == "simplex":
        return 0.0, [cp.sum(eta) == 1]
    if name == "box":
        return 0.0, [cp.sum(eta) == 1, eta <= parameters[0]]
    if name == "ridge":
        return cp.sum_squares(eta) / (2.0 * parameters[0]), [cp.sum(eta) == 1]
    if name == "power":
        theta, p = parameters
        q = p / (p - 1.0)
        return (2.0 / (q * theta)) ** (p - 1.0) / p * cp.sum(_power(eta, p)), [cp.sum(eta) == 1]
    if name == "lp":
        p = parameters[0]
        return 0.0, [cp.pnorm(eta, p, approx=False) <= 1 if 1 < p < np.inf else cp.norm(eta, p) <= 1]
    if name == "elastic":
        v = parameters[0]
        return 0.0, [v * cp.sum(eta) + (1.0 - v) * cp.sum_squares(eta) <= 1]
    if name == "group":
        norms = cp.hstack([cp.norm(eta[group]) for group in _groups(parameters[0], eta.size)])
        return 0.0, [cp.sum(norms) <= 1, norms <= parameters[1]]
    raise ValueError(f"unknown geometry {name!r}")


def _power(x, p):
    """Return x^p by its own power cone: CVXPY's default replaces p by a fraction."""
    return cp.square(x) if p == 2 else cp.power(x, p, approx=False)


def _groups(groups, M):
    """Return lists of kernel indices from such lists or from one label per kernel."""
    groups = list(groups)
    if all(np.ndim(group) == 0 for group in groups):
        labels = np.asarray(groups)
        groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    groups = [[int(m) for m in group] for group in groups]
    if sorted(m for group in groups for m in group) != list(range(M)):
        raise ValueError(f"groups must hold every kernel from 0 to {M - 1} once, got {groups}")
    return groups


def _typical_size(Ls, Y, name, C):
    """Guess s with h(alpha / s) of order 1 at the optimum: the best multiple of a class-balanced alpha."""
    energy, bend, cap = 0.0, 0.0, np.inf
    for y in Y.T:
        sides = np.where(y > 0, C[y > 0].sum(), C[y < 0].sum())
        weight = C / (2.0 * sides)  # sums to 1, y'weight = 0
        energy += np.mean([np.sum((L.T @ (weight * y)) ** 2) / 2.0 for L in Ls])
        bend += np.sum(weight / (4.0 * sides))  # sum of weight^2 / (2 C)
        cap = min(cap, 2.0 * sides.min())
    if energy == 0.0:
        return 1.0
    multiple = {
        "nu": 1.0,
        "distribution": 2.0,
        "hinge": min(Y.shape[1] / (2.0 * energy), cap),
        "squared": Y.shape[1] / (2.0 * (energy + bend)),
    }[name]
    return multiple * np.sqrt(energy)


def _feasible(a, Y, limit, total):
    """Move a nearly feasible a to 0 <= a <= limit with equal class sums (total / 2 each when given)."""
    a = np.clip(a, 0.0, limit[:, None])
    for c in range(Y.shape[1]):
        sides = [np.flatnonzero(Y[:, c] > 0), np.flatnonzero(Y[:, c] < 0)]
        target = total / 2.0 if total else min(a[side, c].sum() for side in sides)
        for side in sides:
            a[side, c] = _with_sum(a[side, c], limit[side], target)
    return a


def _with_sum(a, limit, target):
    """Shift a by a constant, within 0 <= a <= limit, until it sums to target."""
    if target >= limit.sum():
        return limit

    def shifted(shift):
        return np.clip(a + shift, 0.0, limit)

    return shifted(
        brentq(lambda shift: shifted(shift).sum() - target, -a.max() - 1.0, target + 1.0, xtol=1e-16)
    )
