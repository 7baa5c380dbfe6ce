"""Time and memory of a call."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from typing import Any

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
    found: float | None = _in_child(lambda: raised_megabytes(call))
    return float("nan") if found is None else found


def timed(call: Callable[[], Any], judge: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the seconds of a call, how far it raised the memory, and what is said of what it returned.

    All of it happens in a child of this process.
    """

    def child() -> dict[str, Any]:
        found: dict[str, Any] = {}

        def run() -> None:
            start = time.perf_counter()
            found["model"] = call()
            found["seconds"] = time.perf_counter() - start

        found["megabytes"] = raised_megabytes(run)
        return found | judge(found.pop("model"))

    found: dict[str, Any] | None = _in_child(child)
    if found is None:
        raise RuntimeError("The child process ended without an answer: what it says stands above.")
    return found


def _in_child(call: Callable[[], Any]) -> Any:
    """Return what a call returns in a child of this process, None where that fails."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=lambda: results.put(call()))
    process.start()
    process.join()
    return results.get() if process.exitcode == 0 else None
