"""What a loader hands over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelweave._typing import AnyArray


@dataclass(frozen=True)
class Dataset:
    """Samples and labels under a name; ``extra`` has what else the file holds (bags, splits, test rows)."""

    name: str
    X: Any = field(repr=False)
    y: AnyArray = field(repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)
    notes: str = ""
