"""Memory is estimated before it is taken."""

from __future__ import annotations

import os
from functools import cache

# Of what the system says is free; the rest is for everybody else.
SHARE_OF_FREE = 0.8
SINGLE, DOUBLE = 4, 8
# Blocks of rows that the threads make and keep for a moment.
ROWS = 32 << 20
# From this many samples on a start is looked for among some of them, as long as their kernels take no more
# than this: one in so many, at least so many, and of few samples one in four up to this many. Those that lead
# a walk are this share, from so many to so many, which are enough to close a gap to 1e-3 in a step or two
# whatever there are.
WORTH, SAMPLE = 1000, 128 << 20
ONE_IN, FEWEST, OF_FEW = 8, 300, 500
LEADING, FEWEST_LEADING, MOST_LEADING = 0.35, 480, 1000
# Where the way is long, from this many samples on already, if their kernels have so many entries.
EARLY, ENTRIES, FEW_ONE_IN = 500, 20_000_000, 4
# Where the system does not say, nothing is refused.
UNKNOWN = 1 << 62


def packed_bytes(n_samples: int, n_kernels: int, itemsize: int) -> int:
    """Return the bytes of a packed stack together with what a solver holds beside it."""
    return _triangles(n_samples, n_kernels) * itemsize + lazy_bytes(n_samples, n_kernels, itemsize)


def lazy_bytes(n_samples: int, n_kernels: int, itemsize: int) -> int:
    """Return the bytes of what a solver holds beside the kernels.

    That is the combined matrix, the rows being made, per kernel its shift and the images of a few vectors for
    every thread, and the kernels of a sample.
    """
    per_kernel = 8 * n_samples * DOUBLE
    size = max(sample_size(n_samples, n_kernels, leads) for leads in (False, True))
    sample = _triangles(size, n_kernels) * itemsize
    return n_kernels * per_kernel + n_samples**2 * itemsize + ROWS + sample


def sample_size(n_samples: int, n_kernels: int, leads: bool, early: bool = True) -> int:
    """Return how many samples to look for a start among; 0 where that does not pay.

    ``leads`` says that they will be asked again on the way, ``early`` that the way is long.
    """
    if n_samples >= WORTH:
        least = FEWEST
        wanted = max(n_samples // ONE_IN, min(n_samples // FEW_ONE_IN, OF_FEW), FEWEST)
        if leads:
            wanted = min(max(int(LEADING * n_samples), FEWEST_LEADING), MOST_LEADING)
    elif early and n_samples >= EARLY and n_kernels * n_samples**2 >= ENTRIES:
        least = wanted = n_samples // FEW_ONE_IN
    else:
        return 0
    size = min(wanted, int((2 * SAMPLE / (n_kernels * DOUBLE)) ** 0.5))
    return size if size >= least else 0


def _triangles(n_samples: int, n_kernels: int) -> int:
    return n_kernels * (n_samples * (n_samples + 1) // 2)


def free_bytes() -> int:
    """Return how much memory this process may still take, by the system's and the container's account."""
    return min(_of_system(), _of_container())


def _of_system() -> int:
    # What the page cache would give back counts.
    _, _, told = _read("/proc/meminfo").partition("MemAvailable:")
    if told:
        return int(told.split(maxsplit=1)[0]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN


def _of_container() -> int:
    for limit, used in _accounts():
        text, taken = _read(limit).strip(), _read(used).strip()
        if text.isdigit() and taken.isdigit():
            return max(int(text) - int(taken), 0)
    return UNKNOWN


@cache
def _accounts() -> tuple[tuple[str, str], ...]:
    """Where the container tells its limit and what is taken of it: not everywhere, and nowhere else later."""
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
