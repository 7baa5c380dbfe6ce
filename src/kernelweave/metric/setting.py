"""Priors and bounds of a metric, from what the user gave."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._typing import Matrix

SYMMETRIC = 1e-8  # relative asymmetry that is rounding


def as_prior(name: str, prior: Any, points: Matrix, dim: int) -> Matrix:
    """Return the positive definite matrix a word or an array stands for."""
    if isinstance(prior, str):
        if prior == "identity":
            return np.eye(dim)
        if prior == "covariance":
            return _inverse_covariance(name, points)
        raise ValueError(f"{name} must be 'identity', 'covariance' or a ({dim}, {dim}) array; got {prior!r}.")
    M: Matrix = np.array(prior, dtype=np.float64)
    if M.shape != (dim, dim):
        raise ValueError(
            f"{name} must be 'identity', 'covariance' or a ({dim}, {dim}) array; got shape {M.shape}."
        )
    if not np.isfinite(M).all() or np.abs(M - M.T).max() > SYMMETRIC * np.abs(M).max():
        raise ValueError(f"{name} must be a symmetric matrix of finite numbers.")
    return _definite(name, (M + M.T) / 2.0, "add a little to its diagonal")


def _inverse_covariance(name: str, points: Matrix) -> Matrix:
    covariance = np.atleast_2d(np.cov(np.unique(points, axis=0), rowvar=False))
    hint = "the features are collinear or too many for the points; reduce them first, or take the identity"
    inverse = np.linalg.inv(_definite(f"{name}='covariance': the covariance", covariance, hint))
    return np.asarray((inverse + inverse.T) / 2.0)


def _definite(name: str, M: Matrix, hint: str) -> Matrix:
    values = np.linalg.eigvalsh(M) if np.isfinite(M).all() else np.array([-np.inf, 1.0])
    if values[0] <= 1e-12 * values[-1]:
        raise ValueError(
            f"{name} must be positive definite, but its eigenvalues go from {values[0]:.3g} to "
            f"{values[-1]:.3g}: {hint}."
        )
    return M


def check_bounds(bounds: Any, learnt: bool = False) -> tuple[float, float]:
    """Return (u, l), two squared distances with 0 < u < l."""
    found = np.asarray(bounds, dtype=np.float64).ravel()
    if found.size != 2:
        raise ValueError(f"bounds must be two squared distances (u, l); got {bounds!r}.")
    u, l = found.tolist()  # noqa: E741
    if not 0.0 < u < l < np.inf:
        if learnt:
            raise ValueError(
                f"The 3rd and 97th percentile of the squared distances are {u:.3g} and {l:.3g}: they cannot "
                "serve as bounds; give bounds=(u, l) with 0 < u < l."
            )
        raise ValueError(
            f"bounds=(u, l) are squared distances with 0 < u < l: similar pairs should be nearer than u, "
            f"dissimilar ones farther than l; got u={u:g}, l={l:g}."
        )
    return u, l
