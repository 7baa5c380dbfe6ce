"""Memory that outlives a fit: to have 68 MB of fresh pages takes longer than to read them."""

from __future__ import annotations

from sys import getrefcount
from threading import Lock

import numpy as np

from kernelweave import _core
from kernelweave._typing import AnyArray

# No more than this is kept from one fit to the next.
LARGEST = 1 << 27
# Who refers to memory that nobody uses: the list, and the question itself.
UNUSED = 2
DOUBLE = 8

_kept: list[AnyArray] = []
_lock = Lock()


def lease(shape: tuple[int, ...], dtype: str, n_threads: int = 1) -> AnyArray:
    """Return an array with anything in it, in the memory of an earlier one that nobody refers to any more.

    Where there is none, or it is too small, memory is had from the system, its pages by all threads, and kept
    in its place. Arrays too large to be kept are as fresh as ever.
    """
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if n_bytes > LARGEST:
        return np.empty(shape, dtype=dtype)
    with _lock:
        if not (_kept and _kept[0].nbytes >= n_bytes and getrefcount(_kept[0]) == UNUSED):
            own = np.empty(-(-n_bytes // DOUBLE))
            _core.touch(own[None], n_threads)
            _kept[:] = [own]
        return _kept[0].view(np.uint8)[:n_bytes].view(dtype).reshape(shape)


def forget() -> None:
    """Give back what is kept, as soon as nobody uses it."""
    with _lock:
        _kept.clear()
