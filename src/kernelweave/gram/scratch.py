"""Memory that outlives a fit: to have 68 MB of fresh pages takes longer than to read them."""

from __future__ import annotations

import os
from math import prod
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
    n_bytes = prod(shape) * np.dtype(dtype).itemsize
    if n_bytes > LARGEST:
        return np.empty(shape, dtype=dtype)
    with _lock:
        if _kept and _kept[0].nbytes >= n_bytes and getrefcount(_kept[0]) == UNUSED:
            return _part(_kept[0], shape, dtype, n_bytes)
        _kept.clear()  # before more is taken
    own = np.empty(-(-n_bytes // DOUBLE))
    _core.touch(own[None], n_threads)
    with _lock:
        _kept[:] = [own]
    return _part(own, shape, dtype, n_bytes)


def forget() -> None:
    """Give back what is kept, as soon as nobody uses it."""
    with _lock:
        _kept.clear()


def _part(own: AnyArray, shape: tuple[int, ...], dtype: str, n_bytes: int) -> AnyArray:
    return own.view(np.uint8)[:n_bytes].view(dtype).reshape(shape)


def _afresh() -> None:
    """Start over in a forked child: who held the lock is not there to let go of it."""
    global _lock
    _lock = Lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_afresh)
