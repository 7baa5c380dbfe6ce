"""What became of the kernels when they were stored, in words and as a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave.gram.joined import JoinedGrams
from kernelweave.gram.lazy import LazyGrams
from kernelweave.gram.low_rank import LowRankGrams
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.rounding import SINGLE


@dataclass(frozen=True)
class Storage:
    """How the kernels were held while the weights were learnt, and the most any of them lost by it.

    ``error`` is the most that an entry lost to a basis, as a share of the largest, or its rounding in
    float32, before they are added up. Certificates speak of the kernels that were given.
    """

    how: str
    error: float

    def __str__(self) -> str:
        return f"{self.how} (error at most {self.error:.0e})" if self.error else f"{self.how} (exact)"


def storage(stack: GramStack) -> Storage:
    """Describe how a stack holds its kernels."""
    if isinstance(stack, JoinedGrams):
        parts = [storage(part) for part in (stack.first, *stack.others)]
        return Storage("; ".join(part.how for part in parts), max(part.error for part in parts))
    count = f"{stack.n_kernels} kernel{'s' * (stack.n_kernels != 1)}"
    if isinstance(stack, LowRankGrams):
        ranks = ", ".join(str(basis.rank) for basis in stack.bases)
        return Storage(f"{count} in bases of rank {ranks}", max(basis.error for basis in stack.bases))
    if isinstance(stack, PackedGrams):
        single = stack.packed.dtype == np.float32
        return Storage(f"{count} packed in {stack.packed.dtype}", SINGLE if single else 0.0)
    if isinstance(stack, LazyGrams):
        return Storage(f"{count} read or made anew for every pass", SINGLE if stack.is_rounded else 0.0)
    return Storage(f"{count} in {type(stack).__name__}", 0.0)
