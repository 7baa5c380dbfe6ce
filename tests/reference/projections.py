"""Cyclic Bregman projections as a naive loop: every update is written with inverses, as it is defined."""

import numpy as np


def project_pairs(V, W, y, goal, gamma, cap, has_privileged, lam, order, a, b, M, P, corrected=True):
    """Visit the pairs with differences V and W one after the other; return new multipliers and metrics."""
    M, P, a, b = M.copy(), P.copy(), a.copy(), b.copy()
    for c in order:
        p, xi = V[c] @ M @ V[c], 1.0 / (1.0 / goal[c] + (b[c] - y[c] * a[c]) / gamma[c])
        if has_privileged[c]:
            s = W[c] @ P @ W[c]
            t = (gamma[c] / xi + lam / s - (lam + gamma[c]) / p) / (y[c] * (lam + gamma[c] + 1.0))
            t = np.clip(t, -a[c] if corrected else 0.0, cap[c] - a[c])
            beta = lam / (lam + gamma[c]) * (gamma[c] / s - gamma[c] / xi + y[c] * t)
            P = np.linalg.inv(np.linalg.inv(P) - beta / lam * np.outer(W[c], W[c]))
            b[c] += beta
        else:
            t = -min(a[c], y[c] * gamma[c] / (gamma[c] + 1.0) * (1.0 / p - 1.0 / xi))
        M = np.linalg.inv(np.linalg.inv(M) + y[c] * t * np.outer(V[c], V[c]))
        a[c] += t
    return a, b, M, P
