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


def plain_loop(stack: np.ndarray, y: np.ndarray, C: float, p: float, tol: float, max_iter: int = 2000) -> int:
    """tensordot, SVC, closed-form update, until the relative duality gap is reached; returns the SVC count.

    ``stack`` is (M, n, n). p = 1 is the simplex, p = 2 the l2 ball.
    """
    M = stack.shape[0]
    eta = np.full(M, M ** (-1.0 / p))
    best_upper, best_lower = np.inf, -np.inf
    for count in range(1, max_iter + 1):
        K = np.tensordot(eta, stack, axes=1)
        svc = SVC(C=C, kernel="precomputed").fit(K, y)
        support, v = svc.support_, svc.dual_coef_[0]
        images = stack[:, :, support] @ v
        h = 0.5 * images[:, support] @ v
        f = eta @ images
        hinge = np.maximum(0.0, 1.0 - y * (f + svc.intercept_[0])).sum()
        conjugate = h.max() if p == 1 else np.linalg.norm(h, p / (p - 1.0))
        best_upper = min(best_upper, eta @ h + C * hinge)
        best_lower = max(best_lower, np.abs(v).sum() - conjugate)
        if best_upper - best_lower <= tol * abs(best_upper):
            return count
        norms = eta * np.sqrt(2.0 * h)
        eta = norms ** (2.0 / (p + 1.0))
        eta /= np.linalg.norm(eta, p)
    return max_iter
