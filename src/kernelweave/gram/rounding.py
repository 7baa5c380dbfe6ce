"""How far entries may be off: what a certificate has to allow for."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector

# Half a unit in the last place: the share of an entry that rounding may change.
DOUBLE, SINGLE = 2.0**-53, 2.0**-24
# What an entry too small for float32 may lose.
SMALLEST = 2.0**-150


def arithmetic_errors(sizes: Vector, n_samples: int) -> Vector:
    """Return the entrywise error that sums of n products in double amount to, for entries of these sizes."""
    return np.asarray(DOUBLE * np.sqrt(n_samples) * sizes)


def float32_matvec_error(abs_product: AnyArray, eta: Vector, coef: AnyArray) -> AnyArray:
    r"""Bound what rounding entries to float32 changes in K(eta) V, given Σ eta_m |K_m| |V| as stored.

    Entry (i, j) moves by at most u |K_ij| before rounding, which is u / (1 - u) |K_ij| after it.
    """
    return np.asarray(SINGLE / (1.0 - SINGLE) * abs_product + SMALLEST * eta.sum() * np.abs(coef).sum(axis=0))


def float32_energy_error(roots: Matrix, coef: AnyArray) -> Vector:
    r"""Bound what rounding entries to float32 changes in the energies ½ tr(V'KV), kernel by kernel.

    Entry (i, j) moves by at most u |K_ij| ≤ u d_i d_j, with d² the diagonal of K and u half a unit in the
    last place, so ½ v'Kv moves by at most ½ u (Σ d_i |v_i|)²: nothing is assumed of how roundings fall.
    """
    size = np.abs(coef.reshape(coef.shape[0], -1))
    moved = SINGLE * (roots @ size) ** 2 + SMALLEST * size.sum(axis=0) ** 2
    return np.asarray(0.5 * moved.sum(axis=1))
