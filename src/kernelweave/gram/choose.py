"""The one place that decides how Gram matrices are held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kernelweave.gram.lazy import LazyGrams
from kernelweave.gram.memory import budget, dense_bytes, human, packed_bytes
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.source import Source

# Rounding to float32 costs up to about 1e-5 of the objective; below this tolerance float64 is needed.
FLOAT32_TOL = 1e-4
# Problems with fewer numbers than this fit in cache: float64 costs nothing there.
SMALL = 2_000_000
DTYPES = ("auto", "float32", "float64")


def wish(n_samples: int, n_kernels: int, tol: float, dtype: str) -> str:
    """Return the dtype that size and tolerance ask for, memory aside."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}; got {dtype!r}.")
    if dtype != "auto":
        return dtype
    return "float32" if tol >= FLOAT32_TOL and n_kernels * n_samples**2 > SMALL else "float64"


def precision(n_samples: int, n_kernels: int, tol: float, dtype: str, memory_limit: float | None) -> str:
    """Return the dtype to store in, or refuse with the numbers when nothing fits the memory limit."""
    wanted = wish(n_samples, n_kernels, tol, dtype)
    limit = budget(memory_limit)
    need = {name: packed_bytes(n_samples, n_kernels, np.dtype(name).itemsize) for name in DTYPES[1:]}
    if need[wanted] <= limit:
        return wanted
    if dtype == "auto" and tol >= FLOAT32_TOL and need["float32"] <= limit:
        return "float32"
    raise MemoryError(
        f"{n_kernels} kernels of {n_samples} samples need {human(need[wanted])} in {wanted} "
        f"({human(need['float32'])} in float32), but {human(limit)} may be used: raise memory_limit, use "
        "fewer kernels or samples, or dtype='float32' with tol >= 1e-4."
    )


def store(
    sources: Callable[[], Sequence[Source]],
    n_samples: int,
    n_kernels: int,
    *,
    in_memory: bool,
    centre: bool,
    tol: float,
    dtype: str = "auto",
    memory_limit: float | None = None,
    n_threads: int = 1,
) -> GramStack:
    """Hold the kernels the way their size, the tolerance and the memory limit ask for.

    ``in_memory`` says that the matrices exist already: then float64 keeps references and copies nothing.
    """
    by_reference = in_memory and wish(n_samples, n_kernels, tol, dtype) == "float64"
    if by_reference and dense_bytes(n_samples, n_kernels) <= budget(memory_limit):
        return LazyGrams(_settled(sources()), n_kernels, n_samples, centre=centre, n_threads=n_threads)
    chosen = precision(n_samples, n_kernels, tol, dtype, memory_limit)
    return PackedGrams.pack(sources(), n_kernels, n_samples, chosen, centre, n_threads)


def _settled(sources: Sequence[Source]) -> Sequence[Source]:
    for source in sources:
        source.check()
    return sources
