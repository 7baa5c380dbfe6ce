"""Memory is estimated before it is taken."""

from __future__ import annotations

import os
from pathlib import Path

# Of what the system says is free; the rest is for everybody else.
SHARE_OF_FREE = 0.8
DOUBLE = 8


def packed_bytes(n_samples: int, n_kernels: int, itemsize: int) -> int:
    """Return the bytes of a packed stack together with what a solver holds beside it.

    That is the triangles, the row means and images of every kernel, the matrices being computed and
    converted, and the combined one.
    """
    triangle = n_samples * (n_samples + 1) // 2
    per_kernel = triangle * itemsize + 2 * n_samples * DOUBLE
    return n_kernels * per_kernel + n_samples**2 * (4 * DOUBLE + itemsize)


def dense_bytes(n_samples: int, n_kernels: int) -> int:
    """Return the extra bytes of a stack held by reference: images and the combined matrix."""
    return n_kernels * n_samples * DOUBLE + 2 * n_samples**2 * DOUBLE


def free_bytes() -> int:
    """Return how much memory this process may still take, by the system's and the container's account."""
    pages = os.sysconf("SC_AVPHYS_PAGES") if "SC_AVPHYS_PAGES" in os.sysconf_names else 0
    free = pages * os.sysconf("SC_PAGE_SIZE") if pages > 0 else 1 << 62
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        limit = Path("/sys/fs/cgroup") / name
        if limit.is_file() and (text := limit.read_text().strip()).isdigit():
            free = min(free, int(text))
    return free


def budget(memory_limit: float | None) -> int:
    """Return the bytes a fit may take: the limit given, or a share of what is free."""
    return int(SHARE_OF_FREE * free_bytes() if memory_limit is None else memory_limit)


def human(n_bytes: int) -> str:
    """Return a byte count in the unit people read it in."""
    size = float(n_bytes)
    for unit in ("B", "KB", "MB"):
        if size < 1000.0:
            return f"{size:.3g} {unit}"
        size /= 1000.0
    return f"{size:.3g} GB"
