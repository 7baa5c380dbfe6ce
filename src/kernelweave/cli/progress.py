"""Progress of long commands: a bar with the time left, and Ctrl-C that is remembered."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from kernelweave.cli.files import Watch

Tick = Callable[[str], None]


@contextmanager
def fits_bar(shown: bool) -> Iterator[Callable[[int], Tick]]:
    """Yield a function that starts a bar of a number of fits; what that returns is called before each fit."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown) as progress:

        def begin(total: int) -> Tick:
            bar = progress.add_task("", total=total, completed=-1)
            return lambda name: progress.update(bar, description=name, advance=1)

        yield begin


@contextmanager
def reading_bar(shown: bool, title: str) -> Iterator[Watch]:
    """Yield what is to be told how much of a file is read; it shows that, and the time left."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown) as progress:
        bar = progress.add_task(title, total=1.0)

        def show(n_rows: int, n_columns: int, share: float) -> None:  # noqa: ARG001
            progress.update(bar, completed=share)

        yield show


@contextmanager
def remembered_interrupt() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C sets, also where a fit catches the interrupt, stops early and returns."""
    pressed = threading.Event()

    def press(*_: Any) -> None:
        pressed.set()
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield pressed
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
