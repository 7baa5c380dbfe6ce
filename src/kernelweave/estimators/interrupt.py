"""Ctrl-C ends a fit with what it has, also when several problems are being solved at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

from kernelweave.solvers import Progress, Record

T = TypeVar("T")


def interruptible(jobs: Sequence[Callable[[Event], T]], n_threads: int) -> list[T]:
    """Run the jobs and return their results; an interrupt is passed on to them through the event."""
    stop = Event()
    if n_threads == 1 or len(jobs) == 1:
        return [job(stop) for job in jobs]
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(job, stop) for job in jobs]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
            wait(futures)
        return [future.result() for future in futures]


def watching(stop: Event, progress: Progress | None) -> Progress:
    """Return a callback that reports on, and interrupts its solver once the event is set."""

    def report(record: Record) -> None:
        if progress is not None:
            progress(record)
        if stop.is_set():
            raise KeyboardInterrupt

    return report
