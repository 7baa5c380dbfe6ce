"""The one place that decides how Gram matrices are held: as matrices, packed, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from kernelweave._typing import Matrix
from kernelweave.gram.dense import DenseGrams
from kernelweave.gram.memory import (
    FLOAT64_BYTES,
    ONE,
    SolverSize,
    budget,
    human,
    packed_bytes,
    streamed_bytes,
    triangle_bytes,
    unpacked_bytes,
)
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.source import KernelSource
from kernelweave.gram.streamed import StreamedGrams

DTYPES = ("auto", "float32", "float64")


class TrainingKernels(Protocol):
    """The kernels of the training samples: matrices of the user, or sources that compute them."""

    @property
    def n_samples(self) -> int: ...

    @property
    def holds_matrices(self) -> bool:
        """Whether they are matrices of the user, which can be read where they are."""

    def __len__(self) -> int: ...

    def given_matrices(self, n_threads: int = 1) -> list[Matrix]:
        """Return the user's own matrices after checking them."""

    def sources(self) -> list[KernelSource]:
        """Return where the values of the kernels come from."""


@dataclass(frozen=True)
class StoragePolicy:
    """What decides how kernels are held.

    Parameters
    ----------
    centre : whether the learner has a bias, so that centring the kernels changes nothing.
    tol : the relative gap asked for; below 1e-4 values are kept in float64, below 1e-5 they are computed so.
    dtype : "auto", or the type to hold them in.
    memory_limit : most bytes for the kernels; None is a share of what is free.
    n_threads : threads of their passes.
    several_problems : whether several problems will be solved on the same kernels, so that packing pays.
    working_set : whether a few kernels at a time will be held by the solver, and the others only read.
    streams_from : number of samples from which a solver without any matrix of all samples is faster; None where
        there is no such solver for the problem.
    offers_features : whether the model can learn on explicit features instead.
    solver : what the solver holds beside the kernels.
    stored_up_to : up to this many samples all kernels of a table are stored, and up to twice as many for several
        problems; beyond it only those that take longer to compute than to read. Measured on 20 columns.
    """

    centre: bool
    tol: float
    dtype: str = "auto"
    memory_limit: float | None = None
    n_threads: int = 1
    several_problems: bool = False
    working_set: bool = False
    streams_from: int | None = None
    offers_features: bool = False
    solver: SolverSize = ONE
    stored_up_to: int = 2_000

    def stored_dtype(self, n_samples: int, n_kernels: int) -> str:
        """Return the type that size and tolerance ask for, memory aside.

        Rounding to float32 costs up to about 1e-5 of the objective; problems with less than two million
        entries fit in cache, where float64 costs nothing.
        """
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}; got {self.dtype!r}.")
        if self.dtype != "auto":
            return self.dtype
        return "float32" if self.tol >= 1e-4 and n_kernels * n_samples**2 > 2_000_000 else "float64"

    @property
    def streamed_dtype(self) -> str:
        """The type to compute values in when nothing is stored."""
        return self.dtype if self.dtype != "auto" else "float32" if self.tol >= 1e-5 else "float64"


def build_gram_stack(kernels: TrainingKernels, policy: StoragePolicy) -> GramStack:
    """Hold the kernels the way their size, the tolerance and the memory limit ask for.

    The user's own matrices stay where they are, or are packed. Kernels of a small table are packed, those of a
    larger one are computed again in every pass. Where there is a solver that does without the combined matrix,
    it has to if there are many samples, or if that matrix does not fit; and where there is none and it does not
    fit, nothing is taken.
    """
    n, M, limit = kernels.n_samples, len(kernels), budget(policy.memory_limit)
    if kernels.holds_matrices:
        return _hold_given(kernels, policy, limit)
    sources = kernels.sources()
    stored, streamed = policy.stored_dtype(n, M), policy.streamed_dtype
    if policy.dtype == "auto" and not all(source.fits_float32() for source in sources):
        stored = streamed = "float64"
    itemsize, n_threads = np.dtype(stored).itemsize, policy.n_threads
    n_columns = sum(source.n_columns for source in sources)
    policy = replace(policy, solver=replace(policy.solver, sample_bytes=n * n_columns * FLOAT64_BYTES))
    few = n <= policy.stored_up_to * (2 if policy.several_problems else 1)
    storing_pays = few or not all(source.group.is_cheap for source in sources)
    if storing_pays and not policy.working_set and packed_bytes(n, M, itemsize, policy.solver) <= limit:
        how: dict[str, Any] = {"centre": policy.centre, "n_threads": n_threads}
        return PackedGrams.from_sources(sources, M, n, dtype=stored, **how)
    combining_fits = unpacked_bytes(n, M, itemsize, policy.solver) <= limit
    if policy.streams_from is not None and (n >= policy.streams_from or not combining_fits):
        needed = streamed_bytes(n, M, n_columns, np.dtype(streamed).itemsize, policy.solver)
        if needed > limit:
            raise MemoryError(
                f"{M} kernels of {n} samples need {human(needed)} even when none is stored, but {human(limit)} "
                f"may be used: {_what_would_work(n, needed, policy.offers_features)}."
            )
        return StreamedGrams(sources, M, n, dtype=streamed, n_threads=n_threads, may_combine=False)
    if policy.working_set:
        stored = _working_dtype(n, M, stored, limit, policy.solver)
    _require_combined(n, M, stored, limit, policy.solver)
    return StreamedGrams(sources, M, n, dtype=stored, n_threads=n_threads)


def _what_would_work(n_samples: int, needed: int, offers_features: bool) -> str:
    """Return what to do where a fit does not fit into memory, and how long the exact one would take.

    Time grows with the square of n: 20 kernels of 20 columns took 33 to 70 s at 100,000 samples on one thread.
    """
    minutes = 1.0 * (n_samples / 1e5) ** 2
    time = "less than a minute" if minutes < 1.0 else f"about {minutes:.0f} minutes"
    time = time if minutes < 90.0 else f"about {minutes / 60.0:.0f} hours"
    exact = (
        f"raise memory_limit to {human(int(1.01 * needed))} (an exact fit of so many samples takes {time})"
    )
    return f"{exact}, or use features=Landmarks(300)" if offers_features else f"{exact}, or use fewer samples"


def exact_gram_stack(kernels: TrainingKernels, like: GramStack) -> GramStack:
    """Return the kernels as they were given, without rounding, centred as another stack of them is."""
    how: dict[str, Any] = {"n_threads": like.n_threads, "shifts": like.shifts}
    if kernels.holds_matrices:
        # Shifts of zero centre nothing, so this serves stacks that are not centred too.
        return DenseGrams(kernels.given_matrices(), centre=True, **how)
    return StreamedGrams(kernels.sources(), len(kernels), kernels.n_samples, **how)


def _hold_given(kernels: TrainingKernels, policy: StoragePolicy, limit: int) -> GramStack:
    """Hold matrices of the user: by reference, or packed where a pass over less memory pays for it.

    It does not for a single problem of many samples, which makes fewer passes than packing takes.
    """
    n, M = kernels.n_samples, len(kernels)
    dtype = policy.stored_dtype(n, M)
    _require_combined(n, M, dtype, limit, policy.solver)  # before anything is read
    given = kernels.given_matrices(policy.n_threads)
    if policy.dtype == "auto" and dtype == "float32":
        sizes = np.array([np.abs(np.diagonal(K)).max(initial=0.0) for K in given])
        if not ((sizes == 0.0) | ((sizes > 1e-25) & (sizes < 1e25))).all():  # float32 cannot hold them
            dtype = "float64"
            _require_combined(n, M, dtype, limit, policy.solver)
    stack = DenseGrams(given, dtype=dtype, centre=policy.centre, n_threads=policy.n_threads)
    packing_pays = dtype == "float32" and (n < 1000 or policy.several_problems) and not policy.working_set
    packing_fits = packed_bytes(n, M, np.dtype(dtype).itemsize, policy.solver) <= limit
    return stack.packed(dtype) if packing_pays and packing_fits else stack


def _working_dtype(n_samples: int, n_kernels: int, dtype: str, limit: int, solver: SolverSize) -> str:
    """Return the type in which a working set of 256 kernels fits beside the rest, float64 if possible."""
    for name in ("float64", dtype):
        size = np.dtype(name).itemsize
        held = triangle_bytes(n_samples, min(n_kernels, 256), size)
        if held + unpacked_bytes(n_samples, n_kernels, size, solver) <= limit:
            return name
    raise MemoryError(_refusal(n_samples, n_kernels, dtype, limit, solver))


def _require_combined(n_samples: int, n_kernels: int, dtype: str, limit: int, solver: SolverSize) -> None:
    """Raise MemoryError where not even the combined matrix fits."""
    if unpacked_bytes(n_samples, n_kernels, np.dtype(dtype).itemsize, solver) > limit:
        raise MemoryError(_refusal(n_samples, n_kernels, dtype, limit, solver))


def _refusal(n_samples: int, n_kernels: int, wanted: str, limit: int, solver: SolverSize) -> str:
    least = {
        name: unpacked_bytes(n_samples, n_kernels, np.dtype(name).itemsize, solver) for name in DTYPES[1:]
    }
    return (
        f"{n_kernels} kernels of {n_samples} samples need {human(least[wanted])} in {wanted} even when only "
        f"their combination is held ({human(least['float32'])} in float32), but {human(limit)} may be used: "
        "raise memory_limit, use fewer samples, or dtype='float32' with tol >= 1e-4."
    )
