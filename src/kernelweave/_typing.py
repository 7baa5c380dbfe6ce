"""Array types used throughout the package."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
AnyArray: TypeAlias = NDArray[Any]
# Some samples: a range of them, or their places.
Span: TypeAlias = slice | Indices
