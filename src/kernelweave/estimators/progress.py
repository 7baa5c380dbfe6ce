"""A bar with the gap reached and the time left, for fits that take long."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from kernelweave.solvers.problem import Progress as Callback
from kernelweave.solvers.result import Record


@contextmanager
def gap_bar(verbose: int, tol: float, title: str) -> Iterator[Callback | None]:
    """Yield a callback for the solver that draws the bar, or None when nothing is to be shown."""
    if not verbose:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("gap {task.fields[gap]:.1e} (to {task.fields[tol]:.0e}), machine {task.fields[machines]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=verbose < 2) as bar:
        task = bar.add_task(title, total=1.0, gap=1.0, tol=tol, machines=0)
        count = 0

        def show(record: Record) -> None:
            nonlocal count
            count += 1
            gap = min(max(record.certificate.relative_gap, tol), 1.0)
            # The gap falls by a factor per machine, so the way to go is measured in its logarithm.
            done = math.log(gap) / math.log(tol) if tol < 1.0 else 1.0
            bar.update(task, completed=done, gap=record.certificate.relative_gap, machines=count)

        yield show
