"""Memory is estimated before it is taken: what is free, what a fit may use, what it would need."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# What a fit may take unless it is told: this share of what is free, and no more than this many bytes.
SHARE_OF_FREE, MOST = 0.25, 4_000_000_000
# Where the system does not say what is free, as much as any machine of today has.
UNKNOWN = 2_000_000_000
FLOAT64_BYTES = 8
# The kernels of a subsample take no more than this.
SUBSAMPLE = 128 << 20
# Rows of values that the threads compute and keep for a moment.
ROWS = 32 << 20


def budget(memory_limit: float | None) -> int:
    """Return the bytes a fit may take: the limit given, or a share of what is free."""
    return int(min(SHARE_OF_FREE * free_bytes(), MOST) if memory_limit is None else memory_limit)


@dataclass(frozen=True)
class SolverSize:
    """What a solver holds of all samples, beside the kernels.

    Parameters
    ----------
    sample_bytes : bytes of the samples once more, as kernels are computed from them.
    matrices : float64 matrices of the learner's own, such as a factor, beside the combined one.
    columns : targets that are solved for together.
    side_by_side : problems that are solved at the same time, each with matrices of its own.
    """

    sample_bytes: int = 0
    matrices: int = 0
    columns: int = 1
    side_by_side: int = 1


ONE = SolverSize()


def packed_bytes(n_samples: int, n_kernels: int, itemsize: int, solver: SolverSize = ONE) -> int:
    """Return the bytes of a packed stack together with what a solver holds beside it."""
    beside = unpacked_bytes(n_samples, n_kernels, itemsize, solver)
    return triangle_bytes(n_samples, n_kernels, itemsize) + beside


def unpacked_bytes(n_samples: int, n_kernels: int, itemsize: int, solver: SolverSize = ONE) -> int:
    """Return the bytes of what a solver holds beside the kernels.

    That is the combined matrix and the learner's own, the rows being made, per kernel its shift and the images of
    a few vectors for every thread, and the kernels of the subsample that a start is looked for on.
    """
    per_kernel = 8 * n_samples * FLOAT64_BYTES * solver.columns
    matrices = n_samples**2 * (itemsize + solver.matrices * FLOAT64_BYTES)
    subsample = min(SUBSAMPLE, triangle_bytes(min(n_samples // 4, 1000), n_kernels, FLOAT64_BYTES))
    one = n_kernels * per_kernel + matrices + ROWS + (subsample if n_samples >= 1000 else 0)
    return one * solver.side_by_side + solver.sample_bytes


def streamed_bytes(
    n_samples: int, n_kernels: int, n_columns: int, itemsize: int = 4, solver: SolverSize = ONE
) -> int:
    """Return the bytes of a fit that stores no kernel: the samples once more, products, and a block of pairs."""
    rows = n_samples * n_columns * FLOAT64_BYTES
    products = 3 * min(n_kernels, 64) * n_samples * FLOAT64_BYTES
    coarse = triangle_bytes(min(n_samples, 1000), n_kernels, FLOAT64_BYTES)
    block = block_samples(n_samples) ** 2 * itemsize
    return rows + (products + coarse + block + ROWS) * solver.side_by_side


def block_samples(n_samples: int) -> int:
    """Return how many samples' coefficients move at a time when kernels are streamed.

    The pairs of a block are held, the work of a block grows with its square, and the number of blocks falls with
    its size: in proportion to the root of n was the fastest from 5,000 to 100,000 samples.
    """
    return min(n_samples, 16 * int(36.0 * n_samples**0.5 / 16.0))


def triangle_bytes(n_samples: int, n_kernels: int, itemsize: int) -> int:
    """Return the bytes of the packed triangles alone."""
    return n_kernels * (n_samples * (n_samples + 1) // 2) * itemsize


# ------------------------------------------------------------------------------------ what is free


def free_bytes() -> int:
    """Return how much memory this process may still take: by the system, its control groups and its limits."""
    known = [
        found
        for found in (_free_on_system(), _free_in_control_groups(), _free_address_space())
        if found is not None
    ]
    return max(min(known), 0) if known else UNKNOWN


def _free_on_system() -> int | None:
    # What the page cache would give back counts.
    _, _, available = _read(Path("/proc/meminfo")).partition("MemAvailable:")
    if available:
        return int(available.split(maxsplit=1)[0]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _free_in_control_groups(
    membership: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Return what the control groups of this process leave it: its own, and all above, have a say."""
    free = []
    for line in _read(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        top = root / "memory" if controllers else root
        files = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes")
            if controllers
            else ("memory.max", "memory.current")
        )
        # In a container the path may lie outside of what is mounted: then the group's own folder is the root.
        for folder in (top, *_folders(top, path)):
            limit, used = (_read(folder / name).strip() for name in files)
            if limit.isdigit() and used.isdigit():
                free.append(int(limit) - int(used))
    return min(free, default=None)


def _folders(top: Path, path: str) -> list[Path]:
    """Return the folders of a control group and of those above it, below the top."""
    names = [name for name in path.split("/") if name not in ("", "..")]
    return [top.joinpath(*names[:depth]) for depth in range(1, len(names) + 1)]


def _free_address_space() -> int | None:
    """Return what ``ulimit -v`` leaves; None where there is no limit, or no such thing."""
    try:
        import resource
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    fields = _read(Path("/proc/self/statm")).split()
    if limit == resource.RLIM_INFINITY or not fields:
        return None
    return int(limit - int(fields[0]) * resource.getpagesize())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""


# ---------------------------------------------------------------------------------------- in words


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
