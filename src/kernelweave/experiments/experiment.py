"""What an experiment is: work cut into cells, and what is shown of the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kernelweave.experiments.store import Cell

Records = Sequence[Mapping[str, Any]]


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
        """Return the measures of one cell, the same whenever and wherever it is run but for times."""
        ...


def chosen(cells: list[Cell], quick: Mapping[str, Sequence[Any]]) -> list[Cell]:
    """Return the cells of a quick run: those whose values are among the ones ``quick`` names."""
    return [cell for cell in cells if all(cell[name] in kept for name, kept in quick.items())]


@dataclass(frozen=True)
class Grid:
    """A table of text: a title, a header, rows, and remarks below it."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...] = ()


class View(Protocol):
    """Something to show of the records: tables, or a figure drawn to a file."""

    def tables(self, records: Records) -> list[Grid]:
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
