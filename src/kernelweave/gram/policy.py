"""The one place that decides how Gram matrices are held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kernelweave._threads import shared_out
from kernelweave._typing import Matrix
from kernelweave.gram.blockwise import BlockGrams
from kernelweave.gram.dense import DenseGrams
from kernelweave.gram.joined import JoinedGrams
from kernelweave.gram.lowrank.low_rank import (
    Basis,
    LowRankGrams,
    among_knots,
    among_samples,
    renumbered_bases,
)
from kernelweave.gram.memory import budget, human, packed_bytes, triangle_bytes, unpacked_bytes
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import GramStack
from kernelweave.gram.source import BlockSource, block_diagonals, renumbered

DTYPES = ("auto", "float32", "float64")


class TrainingKernels(Protocol):
    """The kernels of the training samples: matrices of the user, or sources that compute them."""

    @property
    def n_samples(self) -> int: ...

    def __len__(self) -> int: ...

    def given_matrices(self, n_threads: int = 1) -> list[Matrix] | None:
        """Return the user's own matrices after checking them, None where kernels are computed."""

    def sources(self) -> list[BlockSource]:
        """Return the kernels as sources that compute them a few rows at a time."""


@dataclass(frozen=True)
class StoragePolicy:
    """What decides how kernels are held.

    Parameters
    ----------
    centre : whether the learner has a bias, so that centring the kernels changes nothing.
    tol : the relative gap asked for; below 1e-4 kernels are held in float64.
    dtype : "auto", or the type to hold them in.
    memory_limit : most bytes for the kernels; None is a share of what is free.
    n_threads : threads of their passes.
    several_problems : whether several problems will be solved on the same kernels, so that packing pays.
    working_set : whether a few kernels at a time will be held by the solver, and the others only read.
    """

    centre: bool
    tol: float
    dtype: str = "auto"
    memory_limit: float | None = None
    n_threads: int = 1
    several_problems: bool = False
    working_set: bool = False

    def preferred_dtype(self, n_samples: int, n_kernels: int) -> str:
        """Return the type that size and tolerance ask for, memory aside.

        Rounding to float32 costs up to about 1e-5 of the objective; problems with less than two million
        entries fit in cache, where float64 costs nothing.
        """
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}; got {self.dtype!r}.")
        if self.dtype != "auto":
            return self.dtype
        return "float32" if self.tol >= 1e-4 and n_kernels * n_samples**2 > 2_000_000 else "float64"


def build_gram_stack(kernels: TrainingKernels, policy: StoragePolicy) -> GramStack:
    """Hold the kernels the way their size, the tolerance and the memory limit ask for.

    In this order: the user's own matrices by reference, where float64 is wanted or a single problem of many
    samples is solved, which makes fewer passes than packing would pay for; kernels of one or two variables
    and many samples by a small basis, if rounding is allowed; the others packed; computed again for every
    pass where that does not fit; and if not even the combined matrix fits, nothing is taken.
    """
    n, M, limit = kernels.n_samples, len(kernels), budget(policy.memory_limit)
    dtype = policy.preferred_dtype(n, M)
    _require_combined(n, M, dtype, limit)  # before anything is read or computed
    how: dict[str, Any] = {"centre": policy.centre, "n_threads": policy.n_threads}
    given = kernels.given_matrices(policy.n_threads)
    if policy.dtype == "auto" and dtype == "float32" and not _fits_single(kernels, given):
        dtype = "float64"
        _require_combined(n, M, dtype, limit)
    packing_fits = packed_bytes(n, M, np.dtype(dtype).itemsize) <= limit
    if given is not None:
        stack = DenseGrams(given, dtype=dtype, **how)
        packing_pays = dtype == "float32" and (n < 1000 or policy.several_problems)
        return stack.packed(dtype) if packing_pays and packing_fits and not policy.working_set else stack
    sources = kernels.sources()
    if policy.working_set:
        return BlockGrams(sources, M, n, dtype=_working_dtype(n, M, dtype, limit), **how)
    if dtype == "float32" and policy.dtype == "auto" and not (policy.several_problems and packing_fits):
        sources, bases = _split(sources, n, limit - unpacked_bytes(n, M, 4), policy.n_threads)
        if bases:
            return _with_bases(sources, bases, n, M, limit, how)
    if packing_fits:
        return PackedGrams.from_blocks(sources, M, n, dtype=dtype, **how)
    return BlockGrams(sources, M, n, dtype=dtype, **how)


def exact_gram_stack(kernels: TrainingKernels, like: GramStack) -> GramStack:
    """Return the kernels as they were given, without rounding, centred as another stack of them is."""
    given = kernels.given_matrices()
    # Shifts of zero centre nothing, so this serves stacks that are not centred too.
    how: dict[str, Any] = {"centre": True, "n_threads": like.n_threads, "shifts": like.shifts}
    if given is not None:
        return DenseGrams(given, **how)
    return BlockGrams(kernels.sources(), len(kernels), kernels.n_samples, **how)


def _require_combined(n_samples: int, n_kernels: int, dtype: str, limit: int) -> None:
    """Raise MemoryError where not even the combined matrix fits."""
    if unpacked_bytes(n_samples, n_kernels, np.dtype(dtype).itemsize) > limit:
        raise MemoryError(_refusal(n_samples, n_kernels, dtype, limit))


def _fits_single(kernels: TrainingKernels, given: list[Matrix] | None) -> bool:
    """Tell whether entries of this size neither overflow nor vanish in float32."""
    if given is not None:
        sizes = np.array([np.abs(np.diagonal(K)).max(initial=0.0) for K in given])
    else:
        diagonals = block_diagonals(kernels.sources(), len(kernels), kernels.n_samples)
        sizes = np.abs(diagonals).max(axis=1)
    return bool(((sizes == 0.0) | ((sizes > 1e-25) & (sizes < 1e25))).all())


def _working_dtype(n_samples: int, n_kernels: int, dtype: str, limit: int) -> str:
    """Return the type in which a working set of 256 kernels fits beside the rest, float64 if possible."""
    for name in ("float64", dtype):
        size = np.dtype(name).itemsize
        held = triangle_bytes(n_samples, min(n_kernels, 256), size)
        if held + unpacked_bytes(n_samples, n_kernels, size) <= limit:
            return name
    raise MemoryError(_refusal(n_samples, n_kernels, dtype, limit))


def _split(
    sources: list[BlockSource], n_samples: int, room: int, n_threads: int
) -> tuple[list[BlockSource], list[Basis]]:
    """Return the sources without a small basis, and the bases of the others, as long as there is room."""
    rest, bases = list[BlockSource](), list[Basis]()
    together = 8  # groups whose bases are found side by side before what they take is counted
    for start in range(0, len(sources), together):
        some = sources[start : start + together]
        found = _bases(some, n_samples, n_threads) if room > 0 else [None] * len(some)
        for source, basis in zip(some, found, strict=True):
            room -= 0 if basis is None else basis.n_bytes
            if basis is None or room < 0:
                rest.append(source)
            else:
                bases.append(basis)
    return rest, bases


def _bases(sources: list[BlockSource], n_samples: int, n_threads: int) -> list[Basis | None]:
    found: dict[int, Basis | None] = {}

    def look(share: Sequence[int]) -> None:
        for place in share:
            found[place] = _basis(sources[place], n_samples)

    shared_out(look, range(len(sources)), n_threads)
    return [found[place] for place in range(len(sources))]


def _basis(source: BlockSource, n_samples: int) -> Basis | None:
    """Return a basis where it is found faster than the matrices are computed: n / rank was measured."""
    knots = source.knots() if n_samples >= 1_000 else None
    if knots is not None:
        return among_knots(source, knots, n_samples // 8)
    if n_samples >= 4_000 and source.may_be_low_rank:
        return among_samples(source, n_samples // 16)
    return None


def _with_bases(
    rest: list[BlockSource],
    bases: list[Basis],
    n_samples: int,
    n_kernels: int,
    limit: int,
    how: dict[str, Any],
) -> GramStack:
    """Hold some kernels by their bases, and the others packed, or computed again where that does not fit."""
    low = np.sort([m for basis in bases for m in basis.kernels])
    others = np.setdiff1d(np.arange(n_kernels), low)
    small = LowRankGrams(renumbered_bases(bases), n_samples, **how)
    if not rest:
        return small
    sources = renumbered(rest)
    taken = sum(basis.n_bytes for basis in bases)
    if taken + packed_bytes(n_samples, others.size, 4) <= limit:
        large: GramStack = PackedGrams.from_blocks(sources, others.size, n_samples, dtype="float32", **how)
    else:
        large = BlockGrams(sources, others.size, n_samples, dtype="float32", **how)
    return JoinedGrams(large, small, (others, low), how["n_threads"])


def _refusal(n_samples: int, n_kernels: int, wanted: str, limit: int) -> str:
    least = {name: unpacked_bytes(n_samples, n_kernels, np.dtype(name).itemsize) for name in DTYPES[1:]}
    return (
        f"{n_kernels} kernels of {n_samples} samples need {human(least[wanted])} in {wanted} even when only "
        f"their combination is held ({human(least['float32'])} in float32), but {human(limit)} may be used: "
        "raise memory_limit, use fewer samples, or dtype='float32' with tol >= 1e-4."
    )
