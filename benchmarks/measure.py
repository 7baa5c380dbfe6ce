"""Time and memory of a call."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable

from benchmarks.resident import raised_megabytes


def round_order(calls: dict[str, Callable[[], object]], number: int) -> list[str]:
    """Return the order of the calls in a round: forward in even rounds, backward in odd ones.

    What one call leaves behind, freed memory above all, is a cost of the next one, so that none may always
    follow the same.
    """
    return list(calls) if number % 2 == 0 else list(reversed(calls))


def seconds(call: Callable[[], object]) -> float:
    time.sleep(0.02)  # threads of BLAS keep a core busy for a while after the last call
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_megabytes(call: Callable[[], object]) -> float:
    """Return how far a call raises the memory of its process, measured in a child of this one."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()

    def child() -> None:
        results.put(raised_megabytes(call))

    process = context.Process(target=child)
    process.start()
    process.join()
    return results.get() if process.exitcode == 0 else float("nan")
