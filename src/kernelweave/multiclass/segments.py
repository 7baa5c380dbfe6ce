"""Features of several kernels side by side."""

from __future__ import annotations

import numpy as np

from kernelweave._typing import AnyArray, Indices


def segment_sums(values: AnyArray, offsets: Indices, axis: int = 0) -> AnyArray:
    """Return per kernel m the sum over [offsets_m, offsets_m+1); 0 for a kernel without features.

    Examples
    --------
    >>> import numpy as np
    >>> segment_sums(np.array([1.0, 2.0, 3.0]), np.array([0, 2, 2, 3, 3]))
    array([3., 0., 3., 0.])

    """
    filled = np.flatnonzero(np.diff(offsets))
    shape = list(values.shape)
    shape[axis] = len(offsets) - 1
    out = np.zeros(shape)
    if filled.size:
        # reduceat gives an entry, not 0, for a segment of no width: those are left out of its starts.
        np.moveaxis(out, axis, 0)[filled] = np.moveaxis(
            np.add.reduceat(values, offsets[:-1][filled], axis=axis), axis, 0
        )
    return out
