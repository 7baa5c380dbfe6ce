"""Fits that take long: bars with the gap and the time left, and Ctrl-C that keeps the best so far."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from kernelweave.solvers import Progress as Callback
from kernelweave.solvers import Record

T = TypeVar("T")

COLUMNS = (
    TextColumn("{task.description}", markup=False),
    BarColumn(),
    TextColumn(
        "gap {task.fields[gap]:.1e} (to {task.fields[tol]:.0e}), {task.fields[unit]} {task.fields[count]}"
    ),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)
COUNT = (
    TextColumn("{task.description}", markup=False),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


@contextmanager
def count_bar(verbose: int, title: str) -> Iterator[Callable[[int], None]]:
    """Yield a callback to call with the number of things to do in all whenever one of them is done."""
    if not verbose:
        yield lambda total: None  # noqa: ARG005
        return
    with Progress(*COUNT, transient=verbose < 2) as display:
        task = display.add_task(title, total=None)
        yield lambda total: display.update(task, advance=1, total=total)


@contextmanager
def gap_bars(verbose: int, unit: str = "solve") -> Iterator[Callable[[str, float], Callback | None]]:
    """Yield a maker of callbacks, one bar per problem; it makes None when nothing is to be shown.

    ``unit`` is what is counted beside the gap. One display holds all bars, so problems may run on several
    threads at once.
    """
    if not verbose:
        yield lambda title, tol: None  # noqa: ARG005
        return
    with Progress(*COLUMNS, transient=verbose < 2) as display:

        def bar(title: str, tol: float) -> Callback:
            task = display.add_task(title, total=1.0, gap=1.0, tol=tol, unit=unit, count=0)
            count = 0

            def show(record: Record) -> None:
                nonlocal count
                count += 1
                gap = record.certificate.relative_gap
                # The gap falls by a factor per inner solve, so what is left is measured in its logarithm.
                done = math.log(min(max(gap, tol), 1.0)) / math.log(tol)
                display.update(task, completed=done, gap=gap, count=count)

            return show

        yield bar


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


def raising_when_stopped(stop: Event, progress: Callback | None) -> Callback:
    """Return a callback that reports on, and interrupts its solver once the event is set."""

    def report(record: Record) -> None:
        if progress is not None:
            progress(record)
        if stop.is_set():
            raise KeyboardInterrupt

    return report
