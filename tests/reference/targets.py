"""The optimum of regression, Fisher discriminant and one-class problems by conic programming.

With coefficients v, gain g and energies h_m = tr V'K_mV / 2 the saddle point

    min over eta in the set   max over V     g(V) - sum_m eta_m h_m(V) + r(eta)

is solved as max g(V) - Omega*(h(V)).

Learners: ("square", C), ("no bias", C), ("epsilon", C, epsilon), ("fisher", reg) with labels in {-1, +1},
("discriminant", reg) with class numbers, ("one class", nu). C is a number or one per sample.
"""

import cvxpy as cp
import numpy as np

from .cones import factor
from .conic import _support, _with_sum, bracketed


def target_optimum(Ks, y, learner, geometry):
    """Return the optimum and the weights that reach it, checked by a bracket on every call."""
    T, d, limit, kink, total = _problem(np.asarray(y), learner)
    Ls = [factor(np.asarray(K, float)) for K in Ks]
    s = _size(Ls, T, d, limit, total)  # V = s A: energies of A are about 1
    A, lengths, t = cp.Variable(T.shape), cp.Variable(len(Ls)), cp.Variable(len(Ls))
    energies_below_t = cp.square(lengths) / 2.0 <= t
    constraints = [energies_below_t]
    constraints += [cp.SOC(lengths[m], cp.vec(L.T @ A, order="F")) for m, L in enumerate(Ls) if L.size]
    if total is not None:
        constraints.append(cp.sum(A, axis=0) == total / s)
    if limit is not None:
        low, high = (side[:, None] / s for side in limit)
        constraints += [low <= A, high >= A]
    gain = cp.sum(cp.multiply(T / s, A))
    if d is not None:
        gain = gain - cp.sum_squares(cp.multiply(np.sqrt(0.5 * d)[:, None], A))
    if kink:
        gain = gain - kink / s * cp.sum(cp.abs(A))
    support, extra = _support(geometry, t, s**2)
    objective = gain - support
    problem = cp.Problem(cp.Maximize(objective), constraints + extra)

    def feasible():
        A.value = _feasible(A.value, limit, total, s)
        t.value = np.array([np.sum((L.T @ A.value) ** 2) / 2.0 for L in Ls])

    return bracketed(problem, energies_below_t, feasible, s**2)


def fisher_value(Ks, eta, y, reg):
    """Return J_2 = a'(I + K/reg)^-1 a at given weights, with K centred by hand: no optimisation in it."""
    n = len(y)
    P = np.eye(n) - 1.0 / n
    a = np.where(y > 0, 1.0 / np.sum(y > 0), -1.0 / np.sum(y < 0))
    K = P @ sum(w * K for w, K in zip(eta, Ks, strict=True)) @ P
    return float(a @ np.linalg.solve(np.eye(n) + K / reg, a))


def _problem(y, learner):
    """Return targets, ridge, box, kink and the sum of the coefficients."""
    name, parameter, *rest = learner
    n = len(y)
    if name in ("square", "no bias"):
        C = np.broadcast_to(np.asarray(parameter, float), (n,))
        return y.reshape(n, -1), 1.0 / C, None, 0.0, 0.0 if name == "square" else None
    if name == "epsilon":
        C = np.broadcast_to(np.asarray(parameter, float), (n,))
        return y.reshape(n, -1), None, (-C, C), rest[0], 0.0
    if name == "fisher":
        a = np.where(y > 0, 1.0 / np.sum(y > 0), -1.0 / np.sum(y < 0))
        return np.sqrt(2.0 * parameter) * a[:, None], np.full(n, parameter), None, 0.0, 0.0
    if name == "discriminant":
        classes, counts = np.unique(y, return_counts=True)
        H = (y[:, None] == classes) * np.sqrt(n / counts) - np.sqrt(counts / n)
        return np.sqrt(2.0 * parameter) * H, np.full(n, parameter), None, 0.0, 0.0
    if name == "one class":
        return np.zeros((n, 1)), None, (np.zeros(n), np.full(n, 1.0 / (parameter * n))), 0.0, 1.0
    raise ValueError(f"unknown learner {name!r}")


def _size(Ls, T, d, limit, total):
    """Guess the size of the coefficients at the optimum: those of a ridge on the average kernel."""
    n = len(T)
    K = sum(L @ L.T for L in Ls) / len(Ls)
    ridge = d if d is not None else np.full(n, 1.0 / max(limit[1].max(), 1e-12))
    V = np.full((n, 1), 1.0 / n) if total else np.linalg.solve(K + np.diag(ridge), T - T.mean(axis=0))
    energy = float(np.mean([np.sum((L.T @ V) ** 2) / 2.0 for L in Ls]))
    return np.sqrt(energy) or 1.0


def _feasible(A, limit, total, s):
    """Move a nearly feasible point into the set, so that its value is a lower bound."""
    if limit is None:
        return A if total is None else A - A.mean(axis=0)
    if total:
        a = np.clip(A[:, 0], limit[0] / s, limit[1] / s)
        return _with_sum(a, limit[1] / s, total / s)[:, None]
    A = A - A.mean(axis=0)
    return A / max(1.0, float((np.abs(A) / (limit[1][:, None] / s)).max()))
