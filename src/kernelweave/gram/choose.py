"""The one place that decides how Gram matrices are held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernelweave._threads import shared_out
from kernelweave.gram.basis import Basis, among_knots, among_samples, renumbered_bases
from kernelweave.gram.joined import JoinedGrams
from kernelweave.gram.lazy import LazyGrams
from kernelweave.gram.low_rank import LowRankGrams
from kernelweave.gram.memory import SINGLE, WORTH, budget, human, lazy_bytes, packed_bytes
from kernelweave.gram.packed import PackedGrams
from kernelweave.gram.protocol import StoredStack
from kernelweave.gram.source import Source, largest_entries, renumbered

# Rounding to float32 costs up to about 1e-5 of the objective; below this tolerance float64 is needed.
FLOAT32_TOL = 1e-4
# Problems with fewer numbers than this fit in cache: float64 costs nothing there.
SMALL = 2_000_000
# From so many samples on a basis is found faster than the matrices are made, if it may have one pivot for so
# many samples: among knots, which tell the kernels exactly as well, and among the samples.
KNOTTED, KNOTTED_RANKS = 1_000, 8
MANY, RANKS = 4_000, 16
# Groups whose bases are found side by side before what they take is counted.
TOGETHER = 8
# Kernels that column generation may hold at a time.
WORKING = 256
DTYPES = ("auto", "float32", "float64")


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
    lazy: bool = False,
    for_many: bool = False,
    shared: bool = False,
    defer: bool = False,
) -> StoredStack:
    """Hold the kernels the way their size, the tolerance and the memory limit ask for.

    In this order: by reference where matrices exist and float64 is wanted, or a single problem of many
    samples is going to be solved, which makes fewer passes than packing would pay for; many samples in few
    variables by their small basis, if rounding is allowed; what is left packed; made again for every pass
    where that does not fit; and if not even the combined matrix fits, nothing is taken.
    ``in_memory`` says that the matrices exist already: then float64 keeps references and copies nothing.
    ``lazy`` asks for kernels to be made again for every pass, whatever would fit: few of them, a working set,
    are going to be held. ``for_many`` says that many problems are going to be solved: then a basis is second
    choice, and only for its memory; it takes about as long as what is packed once. ``shared`` says that
    several problems are going to be solved on them side by side. With ``defer`` matrices from outside may be
    checked beside the work, until the stack is told to settle; not in float64, where the last digit counts
    and the two triangles of a matrix that is symmetric up to rounding are two matrices.
    """
    wanted, limit = wish(n_samples, n_kernels, tol, dtype), budget(memory_limit)
    how: dict[str, Any] = {"centre": centre, "n_threads": n_threads}
    if lazy:
        dtype = _working(n_samples, n_kernels, wanted, limit)
        return LazyGrams(_checked(sources()), n_kernels, n_samples, dtype=dtype, **how)
    by_reference = wanted == "float64" or (n_samples >= WORTH and not for_many and not shared)
    if in_memory and by_reference and lazy_bytes(n_samples, n_kernels, np.dtype(wanted).itemsize) <= limit:
        given = list(sources())
        if defer and not shared and wanted == "float32":
            _deferred(given, n_threads)
        if wanted == "float64" or dtype != "auto" or _within_single(given, n_kernels, n_threads):
            held = _checked(given) if shared else given  # threads must not check side by side
            return LazyGrams(held, n_kernels, n_samples, dtype=wanted, **how)
    chosen = packing(n_samples, n_kernels, tol, dtype, limit)
    if chosen is None and lazy_bytes(n_samples, n_kernels, np.dtype(wanted).itemsize) > limit:
        raise MemoryError(_refusal(n_samples, n_kernels, wanted, limit))
    rounded = (chosen or wanted) == "float32"
    rest, bases = list(sources()), list[Basis]()
    if defer and not shared and rounded and chosen is not None:
        _deferred(rest, n_threads)  # as early as can be: it goes on beside what follows
    if rounded and dtype == "auto" and not _within_single(rest, n_kernels, n_threads):
        return store(
            sources,
            n_samples,
            n_kernels,
            in_memory=in_memory,
            centre=centre,
            tol=tol,
            dtype="float64",
            memory_limit=memory_limit,
            n_threads=n_threads,
            shared=shared,
            defer=defer,
        )
    if rounded and dtype == "auto" and not (for_many and chosen):
        room = limit - lazy_bytes(n_samples, n_kernels, SINGLE)
        rest, bases = _split(rest, n_samples, room, n_threads)
    if not bases:
        if chosen is not None:
            # One problem starts from even weights, and from few samples their sum is a small matrix.
            even = not for_many and not shared and n_samples < WORTH
            return PackedGrams.pack(rest, n_kernels, n_samples, chosen, even=even, **how)
        return LazyGrams(_checked(rest), n_kernels, n_samples, dtype=wanted, **how)
    return _joined(rest, bases, n_samples, n_kernels, limit, how)


def wish(n_samples: int, n_kernels: int, tol: float, dtype: str) -> str:
    """Return the dtype that size and tolerance ask for, memory aside."""
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}; got {dtype!r}.")
    if dtype != "auto":
        return dtype
    return "float32" if tol >= FLOAT32_TOL and n_kernels * n_samples**2 > SMALL else "float64"


def packing(n_samples: int, n_kernels: int, tol: float, dtype: str, limit: int) -> str | None:
    """Return the dtype to pack all kernels in, or None when no packing fits the limit."""
    wanted = wish(n_samples, n_kernels, tol, dtype)
    need = {name: packed_bytes(n_samples, n_kernels, np.dtype(name).itemsize) for name in DTYPES[1:]}
    if need[wanted] <= limit:
        return wanted
    return "float32" if dtype == "auto" and tol >= FLOAT32_TOL and need["float32"] <= limit else None


def _working(n_samples: int, n_kernels: int, wanted: str, limit: int) -> str:
    """Return the dtype in which a working set fits beside the combined matrix, float64 if possible."""
    for name in ("float64", wanted):
        size = np.dtype(name).itemsize
        held = packed_bytes(n_samples, min(n_kernels, WORKING), size)
        if held + lazy_bytes(n_samples, n_kernels, size) <= limit:
            return name
    raise MemoryError(_refusal(n_samples, n_kernels, wanted, limit))


def _split(
    sources: list[Source], n_samples: int, room: int, n_threads: int
) -> tuple[list[Source], list[Basis]]:
    """Return the sources without a small basis, and the bases of the others, as long as there is room."""
    rest, bases = list[Source](), list[Basis]()
    for start in range(0, len(sources), TOGETHER):
        some = sources[start : start + TOGETHER]
        found = _bases(some, n_samples, n_threads) if room > 0 else [None] * len(some)
        for source, basis in zip(some, found, strict=True):
            room -= 0 if basis is None else basis.n_bytes
            if basis is None or room < 0:
                rest.append(source)
            else:
                bases.append(basis)
    return rest, bases


def _bases(sources: list[Source], n_samples: int, n_threads: int) -> list[Basis | None]:
    found: dict[int, Basis | None] = {}

    def look(share: Sequence[int]) -> None:
        for place in share:
            found[place] = _basis(sources[place], n_samples)

    shared_out(look, range(len(sources)), n_threads)
    return [found[place] for place in range(len(sources))]


def _basis(source: Source, n_samples: int) -> Basis | None:
    knots = source.knots() if n_samples >= KNOTTED else None
    if knots is not None:
        return among_knots(source, knots, n_samples // KNOTTED_RANKS)
    if n_samples >= MANY and source.is_smooth:
        return among_samples(source, n_samples // RANKS)
    return None


def _joined(
    rest: list[Source], bases: list[Basis], n_samples: int, n_kernels: int, limit: int, how: dict[str, Any]
) -> StoredStack:
    """Hold some kernels by their bases, and the others packed, or made again where that does not fit."""
    low = np.sort([m for basis in bases for m in basis.kernels])
    others = np.setdiff1d(np.arange(n_kernels), low)
    small = LowRankGrams(renumbered_bases(bases), n_samples, **how)
    if not rest:
        return small
    sources = renumbered(rest)
    taken = sum(basis.n_bytes for basis in bases)
    if taken + packed_bytes(n_samples, others.size, SINGLE) <= limit:
        large: StoredStack = PackedGrams.pack(sources, others.size, n_samples, "float32", **how)
    else:
        large = LazyGrams(_checked(sources), others.size, n_samples, dtype="float32", **how)
    return JoinedGrams(large, [small], [others, low], how["n_threads"])


def _within_single(sources: Sequence[Source], n_kernels: int, n_threads: int) -> bool:
    """Tell whether entries of this size neither overflow nor vanish in float32."""
    sizes = largest_entries(sources, n_kernels, n_threads)
    return bool(((sizes == 0.0) | ((sizes > 1e-25) & (sizes < 1e25))).all())


def _deferred(sources: Sequence[Source], n_threads: int) -> None:
    for source in sources:
        source.defer(n_threads)


def _checked(sources: Sequence[Source]) -> Sequence[Source]:
    for source in sources:
        source.check()
    return sources


def _refusal(n_samples: int, n_kernels: int, wanted: str, limit: int) -> str:
    least = {name: lazy_bytes(n_samples, n_kernels, np.dtype(name).itemsize) for name in DTYPES[1:]}
    return (
        f"{n_kernels} kernels of {n_samples} samples need {human(least[wanted])} in {wanted} even when only "
        f"their combination is held ({human(least['float32'])} in float32), but {human(limit)} may be used: "
        "raise memory_limit, use fewer samples, or dtype='float32' with tol >= 1e-4."
    )
