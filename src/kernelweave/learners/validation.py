"""Checks of learner parameters."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any


def positive(name: str, value: Any) -> float:
    """Return the value, or say that it must be a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")
    return float(value)
