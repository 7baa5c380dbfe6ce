"""Work that releases the GIL, on a few threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


def in_turn(work: Callable[..., None], items: Iterable[tuple[Any, ...]], n_threads: int) -> None:
    """Call ``work`` on every item, only a few at a time: items may be large and made on the way."""
    if n_threads <= 1:
        for item in items:
            work(*item)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        pending: deque[Future[None]] = deque()
        for item in items:
            pending.append(pool.submit(work, *item))
            if len(pending) > n_threads:
                pending.popleft().result()
        for future in pending:
            future.result()
