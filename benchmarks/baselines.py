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
    """tensordot, SVC, closed-form update, until the gap of the weights is small; returns the SVC count.

    p = 1 is the simplex, p = 2 the l2 ball. The SVC is taken as exact: only the gap
    that the weights leave open counts, which stops the loop earlier than a full certificate would.
    """
    stack = np.stack(Ks)
    M = stack.shape[0]
    eta = np.full(M, M ** (-1.0 / p))
    for count in range(1, max_iter + 1):
        K = np.tensordot(eta, stack, axes=1)
        svc = SVC(C=C, kernel="precomputed").fit(K, y)
        v = np.zeros(stack.shape[1])
        v[svc.support_] = svc.dual_coef_[0]
        h = 0.5 * (stack @ v) @ v
        conjugate = h.max() if p == 1 else np.linalg.norm(h, p / (p - 1.0))
        if conjugate - eta @ h <= tol * (np.abs(v).sum() - eta @ h):
            return count
        norms = eta * np.sqrt(2.0 * h)
        eta = norms ** (2.0 / (p + 1.0))
        eta /= np.linalg.norm(eta, p)
    return max_iter
