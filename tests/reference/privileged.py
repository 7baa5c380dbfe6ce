"""SVM+ and SVM-2K by conic programming, from their primal problems as printed."""

import cvxpy as cp
import numpy as np

from .cones import factor, solve
from .conic import _weight_set


def svm_plus_optimum(Ks, stars, y, C, lam, decision=("uniform",), privileged=("uniform",), corrected=None):
    """Return the optimum of SVM+ with weighted kernels in both spaces.

    min sum_m ||w_m||^2 / (2 eta_m) + lam sum_k ||w*_k||^2 / (2 nu_k) + sum_i C_i xi_i + r(eta) + r*(nu)
    with y_i (f_i + b) >= 1 - xi_i, xi_i >= 0 and, for i in ``corrected`` (a mask; None is all), the slack
    xi_i = g(z_i) + rho. ``stars`` are given for all samples; rows outside ``corrected`` are not used.
    """
    y = np.asarray(y, float)
    n = y.size
    C = np.broadcast_to(np.asarray(C, float), (n,))
    seen = np.flatnonzero(np.ones(n, bool) if corrected is None else corrected)
    f, first, constraints = _space(Ks, decision)
    g, second, more = _space([K[np.ix_(seen, seen)] / lam for K in stars], privileged)
    b, rho, xi = cp.Variable(), cp.Variable(), cp.Variable(n)
    constraints += [*more, xi >= 0, cp.multiply(y, f + b) >= 1 - xi]
    if seen.size:
        constraints.append(xi[seen] == g + rho)
    return solve(cp.Problem(cp.Minimize(first + second + C @ xi), constraints))


def svm_2k_optimum(K_a, K_b, y, C_a, C_b, D, epsilon):
    """Return the optimum of the two-view SVM, with the disagreements' slacks at least zero."""
    y = np.asarray(y, float)
    f_a, first, _ = _space([K_a], ("uniform",))
    f_b, second, _ = _space([K_b], ("uniform",))
    b_a, b_b = cp.Variable(), cp.Variable()
    apart = cp.abs(f_a + b_a - f_b - b_b)
    loss = cp.sum(cp.multiply(C_a, cp.pos(1 - cp.multiply(y, f_a + b_a))))
    loss += cp.sum(cp.multiply(C_b, cp.pos(1 - cp.multiply(y, f_b + b_b))))
    loss += cp.sum(cp.multiply(D, cp.pos(apart - epsilon)))
    return solve(cp.Problem(cp.Minimize(first + second + loss)))


def _space(Ks, geometry):
    """Return the function's values at the samples, its price with the weights' penalty, and constraints.

    With w = sqrt(lam) w* the privileged space is an ordinary one with the kernels K* / lam.
    """
    if geometry == ("uniform",):
        L = factor(sum(Ks) / len(Ks)) if Ks and len(Ks[0]) else np.zeros((0, 0))
        if L.shape[1] == 0:
            return np.zeros(L.shape[0]), 0.0, []
        w = cp.Variable(L.shape[1])
        return L @ w, cp.sum_squares(w) / 2.0, []
    eta = cp.Variable(len(Ks), nonneg=True)
    ratios = cp.Variable(len(Ks), nonneg=True)
    penalty, constraints = _weight_set(geometry, eta)
    values = 0.0
    for m, L in enumerate(map(factor, Ks)):
        w = cp.Variable(L.shape[1])
        values = values + L @ w
        constraints.append(cp.quad_over_lin(w, eta[m]) <= ratios[m])
    return values, cp.sum(ratios) / 2.0 + penalty, constraints
