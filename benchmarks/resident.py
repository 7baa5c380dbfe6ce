"""How much memory a call takes; nothing else is imported, so that other packages' environments can use it."""

import contextlib
import ctypes
from collections.abc import Callable
from pathlib import Path


def raised_megabytes(call: Callable[[], object]) -> float:
    """Return how far a call raises the memory of this process above its present level."""
    release_freed_memory()
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts from here
    before = _kilobytes("VmRSS")
    call()
    return (_kilobytes("VmHWM") - before) / 1e3


def release_freed_memory() -> None:
    """Return freed memory to the system: a call that reuses it would seem to take none."""
    with contextlib.suppress(OSError, AttributeError):  # other systems have no such call
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _kilobytes(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return float(line.split()[1])
    return float("nan")
