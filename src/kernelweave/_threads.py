"""Work on a few threads: our own, and those of BLAS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


def shared_out(work: Callable[[Sequence[Any]], T], items: Sequence[Any], n_threads: int) -> list[T]:
    """Call ``work`` once per thread on its share of the items, every n-th of them.

    Returns what each call returned, in the order of the shares and not of their completion: sums over them
    are the same every time.
    """
    if not items:
        return []
    n_threads = max(1, min(n_threads, len(items)))
    shares = [items[first::n_threads] for first in range(n_threads)]
    if n_threads == 1:
        return [work(shares[0])]
    with ThreadPoolExecutor(n_threads - 1) as pool:
        pending = [pool.submit(work, share) for share in shares[1:]]
        return [work(shares[0]), *(future.result() for future in pending)]


def blas_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Keep BLAS to this many threads: its own pool fights with ours and loses small problems to locking."""
    return _pools().limit(limits=n_threads, user_api="blas")  # type: ignore[no-any-return]


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()
