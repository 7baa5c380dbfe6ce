"""How far entries may be off: what a certificate has to allow for."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import Vector

# Half a unit in the last place, relative.
DOUBLE = 2.0**-53


def of_arithmetic(sizes: Vector, n_samples: int) -> Vector:
    """Return the entrywise error that sums of n products in double amount to, for entries of these sizes."""
    return np.asarray(DOUBLE * np.sqrt(n_samples) * sizes)
