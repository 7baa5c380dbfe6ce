"""What a user would do without the library: the cheapest thing, and the straightforward loop."""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC


def average_and_svc(Ks: list[np.ndarray], y: np.ndarray, C: float) -> None:
    """The mean of the kernels and one SVC: nothing is learnt about the kernels."""
    K = Ks[0].copy()
    for other in Ks[1:]:
        K += other
    K /= len(Ks)
    SVC(C=C, kernel="precomputed").fit(K, y)


def plain_loop(
    Ks: list[np.ndarray], y: np.ndarray, C: float, p: float, tol: float, max_iter: int = 400
) -> int:
    """tensordot, SVC, closed-form update, until the relative duality gap is small; returns the SVC count.

    p = 1 is the simplex, p = 2 the l2 ball. It stops by the same rule as our fits: the gap between the best
    primal and the best dual value seen. -1 means that it did not get there.
    """
    stack = np.stack(Ks)
    M, n, _ = stack.shape
    eta = np.full(M, M ** (-1.0 / p))
    upper, lower = np.inf, -np.inf
    for count in range(1, max_iter + 1):
        K = np.tensordot(eta, stack, axes=1)
        svc = SVC(C=C, kernel="precomputed", tol=1e-5).fit(K, y)
        v = np.zeros(n)
        v[svc.support_] = svc.dual_coef_[0]
        images = stack @ v
        h = 0.5 * images @ v
        hinge = np.maximum(0.0, 1.0 - y * (eta @ images + svc.intercept_[0])).sum()
        conjugate = h.max() if p == 1 else np.linalg.norm(h, p / (p - 1.0))
        upper = min(upper, eta @ h + C * hinge)
        lower = max(lower, np.abs(v).sum() - conjugate)
        if upper - lower <= tol * abs(upper):
            return count
        norms = eta * np.sqrt(2.0 * h)
        eta = norms ** (2.0 / (p + 1.0))
        eta /= np.linalg.norm(eta, p)
    return -1
