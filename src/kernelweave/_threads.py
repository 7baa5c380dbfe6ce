"""Work on a few threads: our own, and those of BLAS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from numbers import Integral
from typing import Any, TypeVar

from joblib import effective_n_jobs
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


def threads_for(n_jobs: Any) -> int:
    """Return how many threads ``n_jobs`` means: None is one, -1 one per processor, as in scikit-learn."""
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            "n_jobs must be None or a whole number other than 0, the number of threads, or -1 for one per processor; "
            f"got {n_jobs!r}."
        )
    return int(effective_n_jobs(None if n_jobs is None else int(n_jobs)))


def blas_threads(n_threads: int) -> AbstractContextManager[Any]:
    """Keep BLAS to this many threads: its own pool fights with ours and loses small problems to locking."""
    return _pools().limit(limits=n_threads, user_api="blas")  # type: ignore[no-any-return]


@cache
def _pools() -> ThreadpoolController:
    return ThreadpoolController()
