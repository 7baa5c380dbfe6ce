"""Ctrl-C ends a fit with what it has, also when several problems are being solved at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

from kernelweave.solvers import Progress, Record

T = TypeVar("T")


def interruptible(jobs: Sequence[Callable[[Event], T]], n_threads: int, stop: Event | None = None) -> list[T]:
    """Run the jobs and return their results; an interrupt is passed on to them through the event.

    ``stop`` is the event to use, for jobs that are part of something larger. Where a job fails the others
    are stopped, and its error is raised.
    """
    stop = Event() if stop is None else stop
    if n_threads == 1 or len(jobs) == 1:
        return [job(stop) for job in jobs]
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(_stopping_others, job, stop) for job in jobs]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
            wait(futures)
    errors = [error for future in futures if (error := future.exception()) is not None]
    if errors:  # the first that is not the echo of another's
        raise next((error for error in errors if not isinstance(error, KeyboardInterrupt)), errors[0])
    return [future.result() for future in futures]


def _stopping_others(job: Callable[[Event], T], stop: Event) -> T:
    try:
        return job(stop)
    except BaseException:
        stop.set()
        raise


def watching(stop: Event, progress: Progress | None) -> Progress:
    """Return a callback that reports on, and interrupts its solver once the event is set."""

    def report(record: Record) -> None:
        if progress is not None:
            progress(record)
        if stop.is_set():
            raise KeyboardInterrupt

    return report
