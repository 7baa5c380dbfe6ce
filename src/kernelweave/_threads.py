"""Work that releases the GIL, on a few threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def shared_out(work: Callable[[Sequence[Any]], None], items: Sequence[Any], n_threads: int) -> None:
    """Call ``work`` once per thread on its share of the items, every n-th of them."""
    if not items:
        return
    n_threads = max(1, min(n_threads, len(items)))
    shares = [items[first::n_threads] for first in range(n_threads)]
    if n_threads == 1:
        work(shares[0])
        return
    with ThreadPoolExecutor(n_threads - 1) as pool:
        pending = [pool.submit(work, share) for share in shares[1:]]
        work(shares[0])
        for future in pending:
            future.result()
