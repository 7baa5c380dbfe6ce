"""The switches to start from, as a parameter: checked against the samples and kernels of a fit."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.adaptive.switches import Switches

SUPPORT = "support"


def flips(max_flips: Any, n_kernels: int) -> int:
    """Return how many switches of a sample may depart from the prior; None is a quarter of the kernels."""
    if max_flips is None:
        return n_kernels // 4
    whole = isinstance(max_flips, Integral) and not isinstance(max_flips, bool)
    if not whole or not 0 <= int(max_flips) <= n_kernels:
        raise ValueError(
            f"max_flips must be None or a whole number from 0 to the number of kernels, here {n_kernels}; "
            f"got {max_flips!r}."
        )
    return int(max_flips)


def check_prior(prior: Any) -> None:
    """Raise ValueError unless the prior may be one, whatever the data."""
    if isinstance(prior, str) and prior != SUPPORT:
        raise ValueError(
            f"prior must be None (all kernels on), 'support' or an array of 0 and 1; got {prior!r}."
        )


def as_switches(prior: Any, n_samples: int, n_kernels: int) -> Switches:
    """Return a prior as one row of switches per sample; None is all on."""
    if prior is None:
        return np.ones((n_samples, n_kernels), dtype=bool)
    values: AnyArray = np.asarray(prior)
    if values.shape not in ((n_kernels,), (n_samples, n_kernels)):
        raise ValueError(
            f"prior must have one switch per kernel, shape ({n_kernels},), or one row of them per sample, "
            f"shape ({n_samples}, {n_kernels}); got shape {values.shape}."
        )
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise ValueError("prior must hold switches, True and False or 1 and 0; got other values.")
    switches = np.broadcast_to(values.astype(bool), (n_samples, n_kernels)).copy()
    require_a_kernel(switches)
    return switches


def require_a_kernel(switches: Switches) -> None:
    """Raise ValueError unless a prior leaves every sample something to start from."""
    without = np.flatnonzero(~switches.any(axis=1))
    if without.size:
        raise ValueError(
            f"prior must leave every sample at least one kernel; sample {without[0]} has none on"
            f"{f' (and {without.size - 1} more)' if without.size > 1 else ''}."
        )
