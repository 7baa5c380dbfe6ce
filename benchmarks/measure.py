"""Time and memory of a call."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable

from benchmarks import resident
from kernelweave.gram.scratch import forget

# Threads of BLAS keep a core busy for a while after their last call: the next contestant shall not pay.
PAUSE = 0.02


def turn(contestants: dict[str, Callable[[], object]], number: int) -> list[str]:
    """Return whose turn it is in this round, one after the other: there, and the next time back.

    What one contestant leaves behind, freed memory above all, is the next one's cost: nobody is always next.
    """
    return list(contestants) if number % 2 == 0 else list(reversed(contestants))


def seconds(call: Callable[[], object]) -> float:
    time.sleep(PAUSE)
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_megabytes(call: Callable[[], object]) -> float:
    """Return how far a call raises the memory of its process, measured in a child of this one."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def child() -> None:
        answers.put(raised_megabytes(call))

    process = context.Process(target=child)
    process.start()
    process.join()
    return answers.get() if process.exitcode == 0 else float("nan")


def raised_megabytes(call: Callable[[], object]) -> float:
    """Return how far a call raises the memory of this process above where it stands."""
    forget()  # what an earlier fit has left counts
    return resident.raised_megabytes(call)
