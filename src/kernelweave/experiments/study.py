"""What a study and an experiment are: work in cells, views of its records; and the register of all."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import pkgutil
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Protocol

from kernelweave.errors import DataError
from kernelweave.experiments import papers
from kernelweave.experiments.store import Cell

Records = Sequence[Mapping[str, Any]]
# Classes that were renamed after records were written: name today → name in the fingerprints of the records.
RECORDED_NAMES = {"PrivilegedTask": "Task", "ViewMethod": "Contestant"}
# Parameters that came after records were written, at the values at which they change nothing.
ADDED_PARAMETERS = (r",\s+transform=None",)


class Study(Protocol):
    """Work in cells that do not depend on each other; several experiments may show one study."""

    @property
    def name(self) -> str:
        """The name under which its records are kept."""
        ...

    @property
    def protocol(self) -> str:
        """A fingerprint of everything that changes the numbers; records of another one do not count."""
        ...

    @property
    def datasets(self) -> Sequence[str]:
        """The data files it reads."""
        ...

    def cells(self, quick: bool) -> list[Cell]:
        """Return all cells, or the few of a quick run; every cell is a flat dict of plain values."""
        ...

    def measure(self, cell: Cell, data: str | Path | None) -> dict[str, Any]:
        """Return the measures of one cell; apart from times they are the same on every run."""
        ...


def fingerprint(*settings: Any) -> str:
    """Return a short hash of the settings that change a study's numbers.

    It is taken of their ``repr``, so a class among them is known by its name: one that has been renamed
    needs a line in ``RECORDED_NAMES``, or the records written before no longer count; likewise a parameter that
    was added (``ADDED_PARAMETERS``).
    """
    text = repr(settings)
    for added in ADDED_PARAMETERS:
        text = re.sub(added, "", text)
    for today, recorded in RECORDED_NAMES.items():
        text = text.replace(f"{today}(", f"{recorded}(")
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def all_cells(**axes: Iterable[Any]) -> list[Cell]:
    """Return one cell for every combination of the values of the axes; the last axis varies fastest.

    >>> all_cells(split=range(2), method=("a", "b"))[:2]
    [{'split': 0, 'method': 'a'}, {'split': 0, 'method': 'b'}]
    """
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def quick_cells(cells: list[Cell], quick: Mapping[str, Sequence[Any]]) -> list[Cell]:
    """Return the cells of a quick run: those whose values are among the ones ``quick`` names."""
    return [cell for cell in cells if all(cell[name] in kept for name, kept in quick.items())]


@dataclass(frozen=True)
class ResultTable:
    """A table of text: a title, a header, rows, and remarks below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()


class View(Protocol):
    """Something to show of the records: tables, or a figure drawn to a file."""

    def tables(self, records: Records) -> list[ResultTable]:
        """Return the tables of these records."""
        ...

    def draw(self, records: Records, file: Path) -> bool:
        """Draw the figure of these records; False when there is nothing to draw."""
        ...


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper: the study behind it, what is shown, and how it differs from print."""

    id: str
    title: str
    source: str
    study: Study
    views: tuple[View, ...]
    differences: tuple[str, ...] = field(default=())

    def tables(self, records: Records) -> list[ResultTable]:
        """Return the tables of all views."""
        return [table for view in self.views for table in view.tables(records)]


@cache
def experiments() -> dict[str, Experiment]:
    """Return every experiment under its id, in alphabetical order; the modules of ``papers`` declare them."""
    found: dict[str, Experiment] = {}
    for module in pkgutil.iter_modules(papers.__path__):
        for experiment in importlib.import_module(f"{papers.__name__}.{module.name}").EXPERIMENTS:
            if experiment.id in found:
                raise RuntimeError(f"Two experiments have the id {experiment.id!r}.")
            found[experiment.id] = experiment
    return dict(sorted(found.items()))


def experiment(name: str) -> Experiment:
    """Return the experiment of an id; DataError names the ones there are."""
    every = experiments()
    if name in every:
        return every[name]
    near = difflib.get_close_matches(name, every, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise DataError(f"There is no experiment {name!r}; there are {', '.join(every)}.{hint}")
