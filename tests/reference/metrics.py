"""LogDet metric learning as conic programs. Imports nothing of ours."""

import cvxpy as cp
import numpy as np
from tests.reference.cones import solve


def divergence(M, prior):
    d = len(prior)
    return cp.trace(M @ np.linalg.inv(prior)) - cp.log_det(M) + np.linalg.slogdet(prior)[1] - d


def scalar_divergence(x, goal):
    return cp.sum(x / goal - cp.log(x) + np.log(goal) - 1.0)


def lengths(M, V):
    return cp.hstack([cp.sum(cp.multiply(M, np.outer(v, v))) for v in V])


def itml(V, y, gamma, u, l, prior=None):  # noqa: E741
    """Return the optimum and the metric of [Xu14, Eq. (5.2)], slacks and all."""
    return itml_plus(V, None, y, gamma, 1.0, None, u, l, prior=prior)[:2]


def itml_plus(V, W, y, gamma, lam, kappa, u, l, prior=None, privileged_prior=None):  # noqa: E741
    """Return the optimum, M and P of [Xu14, Eq. (5.5)]: rows of W that are NaN have a slack of their own.

    kappa is the price of a violated privileged constraint in units of its goal; None makes it hard.
    """
    goal = np.where(y > 0, u, l)
    d = V.shape[1]
    prior = np.eye(d) if prior is None else prior
    M = cp.Variable((d, d), PSD=True)
    p = lengths(M, V)
    told = np.zeros(len(y), bool) if W is None else ~np.isnan(W).any(axis=1)
    objective = divergence(M, prior)
    constraints, P = [], None
    if (~told).any():
        xi = cp.Variable(int((~told).sum()))
        objective += gamma * scalar_divergence(xi, goal[~told])
        constraints.append(cp.multiply(y[~told], p[~told] - xi) <= 0)
    if told.any():
        g = W.shape[1]
        privileged_prior = np.eye(g) if privileged_prior is None else privileged_prior
        P = cp.Variable((g, g), PSD=True)
        s = lengths(P, W[told])
        objective += lam * divergence(P, privileged_prior) + gamma * scalar_divergence(s, goal[told])
        excess = cp.multiply(y[told], p[told] - s)
        if kappa is None:
            constraints.append(excess <= 0)
        else:
            objective += kappa * cp.sum(cp.multiply(1.0 / goal[told], cp.pos(excess)))
    optimum = solve(cp.Problem(cp.Minimize(objective), constraints))
    return optimum, M.value, None if P is None else P.value
