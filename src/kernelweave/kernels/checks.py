"""Checks of matrices that come from outside: symmetric, and not visibly indefinite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from kernelweave import _core
from kernelweave._typing import Matrix

# Relative to the largest entry: far above the rounding of a float64 product, far below any real asymmetry.
TOLERANCE = 1e-8
# The same for matrices that were computed in float32.
TOLERANCE_SINGLE = 1e-5
BLOCK = 256


def tolerance_of(dtype: np.dtype[np.generic]) -> float:
    """Return the rounding a matrix of this type may carry."""
    return TOLERANCE_SINGLE if dtype in (np.float16, np.float32) else TOLERANCE


def plainly_grams(matrices: Sequence[Matrix], tolerances: Sequence[float], n_threads: int = 1) -> list[bool]:
    """Tell which square matrices one fast pass finds finite, symmetric and without negative minors.

    What it accepts needs no other check; what it does not accept, the checks below examine and explain.
    Symmetry is tested with two random vectors: s'Kr = r'Ks up to rounding for a symmetric K only.
    """
    n = matrices[0].shape[0]
    if n == 0:
        return [False] * len(matrices)
    diagonals, tolerance = np.empty((len(matrices), n)), np.asarray(tolerances)
    contiguous = [np.ascontiguousarray(K) for K in matrices]
    _core.diagonals(contiguous, diagonals, n_threads)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite does not pass
        roots = diagonals + (tolerance * np.abs(diagonals).mean(axis=1))[:, None]
        sound = (roots.min(axis=1) >= 0.0) & (roots.max(axis=1) < np.inf)
        roots[~sound] = 0.0
        roots = np.sqrt(roots) * (1.0 + tolerance[:, None])
        # Sums of n^2 entries carry this much rounding even when the matrix is exactly symmetric.
        rounding = 8.0 * n**1.5 * np.finfo(np.float64).eps * diagonals.max(axis=1)
    probes = np.random.default_rng(n).normal(size=(2, n))
    reports = _core.check_matrices(contiguous, roots, probes, n_threads)
    return [
        bool(fine and minors and abs(asymmetry) <= allowed)
        for fine, (minors, asymmetry), allowed in zip(sound, reports, rounding, strict=True)
    ]


def check_finite(K: Matrix, what: str) -> None:
    """Raise ValueError when ``K`` holds NaN or infinity, saying where."""
    for start, stop in _blocks(len(K)):
        finite = np.isfinite(K[start:stop])
        if not finite.all():
            i, j = np.argwhere(~finite)[0]
            raise ValueError(
                f"{what} contains {K[start + i, j]} at [{start + i}, {j}]; all entries have to be finite."
            )


def check_square(K: Matrix, what: str) -> None:
    """Raise ValueError unless ``K`` has as many columns as rows."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"{what} has to be square for the training samples, received shape {K.shape}; "
            "pass one row and one column per training sample."
        )


def check_symmetric(K: Matrix, what: str, tolerance: float = TOLERANCE) -> None:
    """Raise ValueError unless ``K`` is square, finite and symmetric up to rounding."""
    check_square(K, what)
    check_finite(K, what)
    worst, largest, where = 0.0, 0.0, (0, 0)
    for start, stop in _blocks(len(K)):
        rows = K[start:stop]
        largest = max(largest, float(np.abs(rows).max()))
        difference = np.abs(rows - K[:, start:stop].T)
        if difference.max() > worst:
            row, column = np.unravel_index(difference.argmax(), difference.shape)
            worst, where = float(difference.max()), (start + int(row), int(column))
    if worst > tolerance * largest:
        i, j = where
        raise ValueError(
            f"{what} is not symmetric: entry [{i}, {j}] is {K[i, j]:g} and [{j}, {i}] is {K[j, i]:g}; "
            "pass a symmetric matrix, for example (K + K.T) / 2."
        )


def check_minors(K: Matrix, what: str, tolerance: float = TOLERANCE) -> None:
    """Raise ValueError when a diagonal entry or a 2 x 2 minor shows that ``K`` is indefinite."""
    shift = _shift(K, tolerance)
    diagonal = np.diagonal(K) + shift
    if diagonal.min(initial=0.0) < 0.0:
        i = int(diagonal.argmin())
        raise ValueError(f"{what} is indefinite: entry [{i}, {i}] is {K[i, i]:g} < 0; {REMEDY}")
    roots = np.sqrt(diagonal) * (1.0 + tolerance)
    for start, stop in _blocks(len(K)):
        excess = np.abs(K[start:stop]) - roots[start:stop, None] * roots
        if excess.max() > 0.0:
            row, j = np.unravel_index(excess.argmax(), excess.shape)
            i = int(row) + start
            raise ValueError(
                f"{what} is indefinite: |K[{i}, {j}]| = {abs(K[i, j]):g} is larger than "
                f"sqrt(K[{i}, {i}] K[{j}, {j}]) = {np.sqrt(max(K[i, i] * K[j, j], 0.0)):g}; {REMEDY}"
            )


def check_definite(K: Matrix, what: str, tolerance: float = TOLERANCE) -> None:
    """Raise ValueError when a Cholesky factorisation shows that ``K`` is indefinite; costs n^3 / 3."""
    shifted = np.array(K)
    np.fill_diagonal(shifted, np.diagonal(K) + _shift(K, tolerance))
    if not shifted.any():
        return
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        lowest = np.linalg.eigvalsh(K)[0]
        if lowest < -_shift(K, tolerance):
            raise ValueError(f"{what} is indefinite: its lowest eigenvalue is {lowest:g}; {REMEDY}") from None


def symmetrised(K: Matrix) -> Matrix:
    """Return ``K`` itself when exactly symmetric, else (K + K') / 2."""
    if all(np.array_equal(K[start:stop], K[:, start:stop].T) for start, stop in _blocks(len(K))):
        return K
    return (K + K.T) / 2.0


REMEDY = (
    "a kernel has no negative eigenvalues: PrecomputedBank(repair='clip') or kernel.repaired('clip') sets them to 0, "
    "'flip' takes their size, 'shift' adds to the diagonal."
)


def _shift(K: Matrix, tolerance: float) -> float:
    return tolerance * float(np.abs(np.diagonal(K)).mean()) if len(K) else 0.0


def _blocks(n: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n, BLOCK):
        yield start, min(start + BLOCK, n)
