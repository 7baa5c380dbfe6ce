"""The restricted likelihood by its definition: contrasts orthogonal to the intercept, and a dense covariance.

Nothing here centres a kernel, profiles a determinant or takes a Cholesky factor.
"""

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.stats import multivariate_normal


def restricted_log_likelihood(Ks, y, variances, noise, weight=None):
    """log N(A'y | 0, A'(Σ variances_m K_m + noise diag(1/weight))A), A an orthonormal basis of what is orthogonal."""
    n = len(y)
    weight = np.ones(n) if weight is None else weight
    V = sum(a * K for a, K in zip(variances, Ks, strict=True)) + np.diag(noise / weight)
    A = null_space(np.ones((1, n)))
    V = A.T @ V @ A
    return float(multivariate_normal(np.zeros(n - 1), 0.5 * (V + V.T)).logpdf(A.T @ y))


def unit_sizes(Ks):
    """The factors that give every kernel a trace of n − 1 once its means are gone."""
    n = len(Ks[0])
    P = np.eye(n) - 1.0 / n
    return np.array([(n - 1) / np.trace(P @ K @ P) for K in Ks])


def best_variances(Ks, y, spread):
    """The best variances and noise, with a normal prior on the logarithms of ratios of weights, without derivatives."""
    sizes = unit_sizes(Ks)

    def loss(z):
        x = z[:-1] - z[:-1].mean()
        variances = np.exp(z[:-1]) * sizes
        return 0.5 * np.sum(x**2) / spread**2 - restricted_log_likelihood(Ks, y, variances, np.exp(z[-1]))

    start = np.log(np.full(len(Ks) + 1, np.var(y) / (len(Ks) + 1)))
    start = minimize(loss, start, method="BFGS").x  # differences for the gradient
    options = {"xatol": 1e-6, "fatol": 1e-9, "maxfev": 2000}
    start = minimize(loss, start, method="Nelder-Mead", options=options).x
    return np.exp(start[:-1]) * sizes, float(np.exp(start[-1])), -loss(start)


def conditional(Ks, rows, own, y, variances, noise, noise_new, weight=None):
    """Mean and variance of a new target given y, the intercept under a flat prior: by augmenting the covariance.

    ``rows`` (M, new, n) and ``own`` (M, new) are kernel values of new samples. The flat prior is a kernel of ones
    of a large variance.
    """
    n = len(y)
    weight = np.ones(n) if weight is None else weight
    flat = 1e7 * noise
    V = sum(a * K for a, K in zip(variances, Ks, strict=True)) + np.diag(noise / weight) + flat
    C = sum(a * K for a, K in zip(variances, rows, strict=True)) + flat
    k = sum(a * d for a, d in zip(variances, own, strict=True)) + flat
    mean = C @ np.linalg.solve(V, y)
    return mean, k + noise_new - np.einsum("rn,nr->r", C, np.linalg.solve(V, C.T))
