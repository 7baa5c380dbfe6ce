"""Checks of learner parameters."""

from __future__ import annotations

import math
from typing import Any


def positive(name: str, value: Any) -> float:
    """Return the value, or say that it must be a finite number above zero."""
    if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}.")
    return float(value)
