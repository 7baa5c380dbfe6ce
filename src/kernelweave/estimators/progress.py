"""Bars with what is done and the time left, for fits that take long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from kernelweave.solvers.problem import Progress as Callback
from kernelweave.solvers.result import Record

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
def gap_bars(verbose: int, unit: str = "machine") -> Iterator[Callable[[str, float], Callback | None]]:
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
                # The gap falls by a factor per machine, so the way to go is measured in its logarithm.
                done = math.log(min(max(gap, tol), 1.0)) / math.log(tol)
                display.update(task, completed=done, gap=gap, count=count)

            return show

        yield bar
