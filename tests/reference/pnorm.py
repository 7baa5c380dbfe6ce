"""The multiclass p-norm problem [Orabona10, Eq. (9)] by conic programming, and its algorithms word for word.

Here w and theta are explicit vectors, one block per kernel, in coordinates with K_j = L_j L_j': nothing is
kept incrementally and no coefficient stands for all kernels at once.
"""

import cvxpy as cp
import numpy as np
from scipy.optimize import minimize_scalar

from .cones import factor


def pnorm_problem(seed, n=50, n_kernels=4, n_classes=3):
    """Return Gaussian kernels of as many views, two of them informative, and classes from 0 on."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    Ks = []
    for j in range(n_kernels):
        X = rng.normal(size=(n, 3))
        X[:, 0] += y * (1.0 if j < 2 else 0.2)
        D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        Ks.append(np.exp(-D / D.mean()))
    return np.array(Ks), y


def pnorm_optimum(Ks, y, C, p, weight=None):
    """Return the optimum of (lambda/2) ||w||_{2,p}^2 + mean(weight * loss), lambda = 1/(CN)."""
    N, n_classes = len(y), int(np.max(y)) + 1
    weight = np.ones(N) if weight is None else np.asarray(weight, float)
    Ls = [factor(np.asarray(K, float)) for K in Ks]
    W = [cp.Variable((L.shape[1], n_classes)) for L in Ls]
    f = sum(L @ w for L, w in zip(Ls, W, strict=True))
    xi, t = cp.Variable(N, nonneg=True), cp.Variable(len(Ls), nonneg=True)
    own = cp.sum(cp.multiply(f, np.eye(n_classes)[y]), axis=1)
    constraints = [cp.norm(w, "fro") <= t[j] for j, w in enumerate(W)]
    for c in range(n_classes):
        others = np.flatnonzero(y != c)
        constraints.append(own[others] - f[others, c] >= 1 - xi[others])
    # Scaled by CN, where the numbers are of ordinary size.
    objective = 0.5 * cp.square(cp.pnorm(t, p, approx=False)) + C * cp.sum(cp.multiply(weight, xi))
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == "optimal"
    return problem.value / (C * N)


def objective(Ks, y, coef, eta, C, p):
    """Return P at f_c = sum_j eta_j K_j coef_c, from its definition."""
    N, index = len(y), np.arange(len(y))
    norms = [e * np.sqrt(np.sum(coef * (K @ coef))) for e, K in zip(eta, Ks, strict=True)]
    f = sum(e * K @ coef for e, K in zip(eta, Ks, strict=True))
    margins = 1.0 - f[index, y][:, None] + f
    margins[index, y] = 0.0
    return 0.5 / (C * N) * np.linalg.norm(norms, p) ** 2 + margins.max(axis=1).mean()


class Vectors:
    """theta and w of every kernel, as the paper writes them."""

    def __init__(self, Ks, y, p, n_classes=None):
        self.Ls = [factor(np.asarray(K, float)) for K in Ks]
        self.y, self.q, self.p = y, p / (p - 1.0), p
        self.n_classes = int(np.max(y)) + 1 if n_classes is None else n_classes
        self.theta = [np.zeros((L.shape[1], self.n_classes)) for L in self.Ls]

    def norms(self, blocks=None):
        return np.array([np.linalg.norm(b) for b in (self.theta if blocks is None else blocks)])

    def w(self):
        norms = self.norms()
        whole = np.linalg.norm(norms, self.q)
        if whole == 0.0:
            return [0.0 * t for t in self.theta]
        return [(n / whole) ** (self.q - 2.0) / self.q * t for n, t in zip(norms, self.theta, strict=True)]

    def scores(self, i):
        return sum(L[i] @ w for L, w in zip(self.Ls, self.w(), strict=True))

    def z(self, i):
        """Return (loss, z): the hinge loss of sample i and phi(x, y) - phi(x, y hat)."""
        s, label = self.scores(i), self.y[i]
        others = np.where(np.arange(self.n_classes) == label, -np.inf, s)
        rival = int(np.argmax(others))
        direction = np.zeros(self.n_classes)
        direction[label], direction[rival] = 1.0, -1.0
        return max(0.0, 1.0 - s[label] + s[rival]), [np.outer(L[i], direction) for L in self.Ls]

    def online(self, i, eta):
        """Algorithm 1, lines 5-9."""
        loss, z = self.z(i)
        if loss > 0.0:
            self.theta = [t + eta * b for t, b in zip(self.theta, z, strict=True)]

    def radius(self, lam):
        """Algorithm 1, line 12, and never more than at w = 0."""
        total = np.linalg.norm([np.linalg.norm(w) for w in self.w()], self.p) ** 2
        losses = np.mean([self.z(i)[0] for i in range(len(self.y))])
        return np.sqrt(min(total + 2.0 / lam * losses, 2.0 / lam))

    def batch(self, i, t, S, R, lam):
        """Algorithm 2, lines 5-13; returns s_t."""
        loss, z = self.z(i)
        if loss <= 0.0:
            z = [0.0 * b for b in z]
        whole = np.linalg.norm(self.norms(), self.q)
        length = np.linalg.norm(self.norms(z), self.q)
        d = lam * t + S
        S += 0.5 * (np.sqrt(d**2 + self.q * (lam / self.q * whole + length) ** 2 / R**2) - d)
        eta = self.q / (lam * t + S)
        self.theta = [(1 - lam * eta / self.q) * a + eta * b for a, b in zip(self.theta, z, strict=True)]
        self.clip(self.q * R)
        return S

    def pegasos(self, i, t, lam):
        loss, z = self.z(i)
        step = self.q / (lam * t) if loss > 0.0 else 0.0
        self.theta = [(1 - 1 / t) * a + step * b for a, b in zip(self.theta, z, strict=True)]
        self.clip(self.q / np.sqrt(lam))

    def clip(self, most):
        whole = np.linalg.norm(self.norms(), self.q)
        if whole > most:
            self.theta = [t * (most / whole) for t in self.theta]

    def decision(self):
        return sum(L @ w for L, w in zip(self.Ls, self.w(), strict=True))


def dual_value(Ks, A, y, scale, q):
    """Return N times the dual at A."""
    s = np.array([np.sum(A * (K @ A)) for K in Ks])
    return A[np.arange(len(y)), y].sum() - np.linalg.norm(np.sqrt(np.maximum(s, 0)), q) ** 2 / (2 * scale)


def ascend(Ks, A, y, weight, scale, q, order):
    """Visit samples one by one as METHODS describes, everything recomputed, the line search by scipy."""
    A = A.copy()
    for i in order:
        s = np.array([np.sum(A * (K @ A)) for K in Ks])
        diagonal = np.array([K[i, i] for K in Ks])
        u = np.linalg.norm(np.sqrt(s), q) ** 2
        alone = np.linalg.norm(np.sqrt(diagonal), q) ** 2
        sigma = (np.sqrt(s) / np.sqrt(u)) ** (q - 2.0) if u > 0 else np.zeros(len(Ks))
        kappa = max(sigma @ diagonal, 1e-3 * alone) / scale if u > 0 else alone / scale
        f = sum(a * (K[i] @ A) for a, K in zip(sigma, Ks, strict=True)) / scale
        cap = np.where(np.arange(A.shape[1]) == y[i], weight[i], 0.0)

        def row(beta, f=f, i=i, kappa=kappa, cap=cap):  # the maximiser for a multiplier of sum = 0
            return np.minimum(cap, A[i] + ((np.arange(A.shape[1]) == y[i]) - f + beta) / kappa)

        low, high = -1e6, 1e6
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if row(middle).sum() < 0.0 else (low, middle)
        step = row(high) - A[i]

        def value(t, i=i, step=step):
            moved = A.copy()
            moved[i] += t * step
            return -dual_value(Ks, moved, y, scale, q)

        best = minimize_scalar(value, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10}).x
        A[i] += (best if value(best) < value(1.0) else 1.0) * step
    return A
