"""Memory is estimated before it is taken."""

from __future__ import annotations

import os
from functools import cache

# Of what the system says is free; the rest is for everybody else.
SHARE_OF_FREE = 0.8
FLOAT32_BYTES, FLOAT64_BYTES = 4, 8
# Blocks of rows that the threads make and keep for a moment.
ROWS = 32 << 20
# The kernels of a subsample take no more than this.
SUBSAMPLE = 128 << 20
# Where the system does not say, nothing is refused.
UNKNOWN = 1 << 62


def packed_bytes(n_samples: int, n_kernels: int, itemsize: int) -> int:
    """Return the bytes of a packed stack together with what a solver holds beside it."""
    return triangle_bytes(n_samples, n_kernels, itemsize) + unpacked_bytes(n_samples, n_kernels, itemsize)


def unpacked_bytes(n_samples: int, n_kernels: int, itemsize: int) -> int:
    """Return the bytes of what a solver holds beside the kernels.

    That is the combined matrix, the rows being made, per kernel its shift and the images of a few vectors for
    every thread, and the kernels of the subsample that a start is looked for on.
    """
    per_kernel = 8 * n_samples * FLOAT64_BYTES
    subsample = min(SUBSAMPLE, triangle_bytes(min(n_samples // 4, 1000), n_kernels, FLOAT64_BYTES))
    return n_kernels * per_kernel + n_samples**2 * itemsize + ROWS + (subsample if n_samples >= 1000 else 0)


def triangle_bytes(n_samples: int, n_kernels: int, itemsize: int) -> int:
    """Return the bytes of the packed triangles alone."""
    return n_kernels * (n_samples * (n_samples + 1) // 2) * itemsize


def free_bytes() -> int:
    """Return how much memory this process may still take, by the system's and the container's account."""
    return min(_free_on_system(), _free_in_container())


def _free_on_system() -> int:
    # What the page cache would give back counts.
    _, _, available = _read("/proc/meminfo").partition("MemAvailable:")
    if available:
        return int(available.split(maxsplit=1)[0]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN


def _free_in_container() -> int:
    for limit, used in _accounts():
        text, taken = _read(limit).strip(), _read(used).strip()
        if text.isdigit() and taken.isdigit():
            return max(int(text) - int(taken), 0)
    return UNKNOWN


@cache
def _accounts() -> tuple[tuple[str, str], ...]:
    """Return the files with the container's memory limit and use: not every system has them."""
    known = (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    )
    pairs = [(f"/sys/fs/cgroup/{limit}", f"/sys/fs/cgroup/{used}") for limit, used in known]
    return tuple(pair for pair in pairs if all(map(os.path.exists, pair)))


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def budget(memory_limit: float | None) -> int:
    """Return the bytes a fit may take: the limit given, or a share of what is free."""
    return int(SHARE_OF_FREE * free_bytes() if memory_limit is None else memory_limit)


def require_room(n_bytes: int, memory_limit: float | None, what: str, advice: str) -> None:
    """Raise MemoryError where something does not fit into what may be used."""
    limit = budget(memory_limit)
    if n_bytes > limit:
        raise MemoryError(f"{what} need {human(n_bytes)}, but {human(limit)} may be used: {advice}.")


def human(n_bytes: int) -> str:
    """Return a byte count in the unit people read it in."""
    size = float(n_bytes)
    for unit in ("B", "KB", "MB"):
        if size < 1000.0:
            return f"{size:.3g} {unit}"
        size /= 1000.0
    return f"{size:.3g} GB"
