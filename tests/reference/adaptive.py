"""The problem of given switches and margins, straight from its definition, by conic programming.

    min over f, b, xi, eta in the set    sum_m ||f_m||^2 / (2 eta_m) + sum_i C_i xi_i^degree / degree
    subject to                           y_i (sum_m h_im f_m(x_i) + b) / tau_i >= 1 - xi_i,  xi >= 0

It imports nothing of ours.
"""

import cvxpy as cp
import numpy as np

from .cones import factor, solve
from .conic import _weight_set


def adaptive_optimum(Ks, y, C, geometry, switches, margins=None, degree=1):
    """Return the optimal value for kernels Ks, switches (n, M) and margins tau (None: all 1)."""
    n = len(y)
    margins = np.ones(n) if margins is None else margins
    eta, ratios = cp.Variable(len(Ks), nonneg=True), cp.Variable(len(Ks), nonneg=True)
    slacks, bias = cp.Variable(n, nonneg=True), cp.Variable()
    scores, constraints = bias * np.ones(n), []
    for m, K in enumerate(Ks):
        L = factor(K)
        B = cp.Variable(L.shape[1])
        scores = scores + cp.multiply(switches[:, m].astype(float), L @ B)
        constraints.append(cp.quad_over_lin(B, eta[m]) <= ratios[m])
    constraints.append(cp.multiply(y / margins, scores) >= 1 - slacks)
    penalty, extra = _weight_set(geometry, eta)
    C = np.broadcast_to(np.asarray(C, float), (n,))
    loss = C @ slacks if degree == 1 else cp.sum_squares(cp.multiply(np.sqrt(C), slacks)) / 2.0
    return solve(cp.Problem(cp.Minimize(cp.sum(ratios) / 2.0 + loss + penalty), constraints + extra))
