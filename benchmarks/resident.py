"""How much memory a call takes; nothing else is imported, so that other packages' environments can use it."""

import contextlib
import ctypes
from collections.abc import Callable
from pathlib import Path


def raised_megabytes(call: Callable[[], object]) -> float:
    """Return how far a call raises the memory of this process above where it stands."""
    give_back()
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts from here
    before = _kilobytes("VmRSS")
    call()
    return (_kilobytes("VmHWM") - before) / 1e3


def give_back() -> None:
    """Return to the system what was freed: otherwise a call that reuses it seems to take nothing."""
    with contextlib.suppress(OSError, AttributeError):  # other systems have no such call
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _kilobytes(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return float(line.split()[1])
    return float("nan")
