"""What was done with every column of the data, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from kernelweave.views.column_types import ColumnType

if TYPE_CHECKING:
    from kernelweave.bank.layout import Block, LeftOut, PairwiseBlock

MOST_SHOWN = 30


@dataclass(frozen=True)
class ColumnUse:
    """What was done with one column.

    ``filled`` counts the training samples whose cell was empty and filled, ``lacking`` those that lack the whole
    view; ``note`` says what is odd about the column.
    """

    column: str | int
    view: str | None
    type: str
    encoding: str
    filled: int = 0
    lacking: int = 0
    note: str = ""


class ColumnTable(tuple[ColumnUse, ...]):
    """One row per column of the data: its view and type, how it is encoded, how often it was filled."""

    __slots__ = ()

    def __repr__(self) -> str:
        heads = [field.name for field in fields(ColumnUse)]
        shown = [[_shown(getattr(row, head)) for head in heads] for row in self[:MOST_SHOWN]]
        widths = [max(map(len, cells)) for cells in zip(heads, *shown, strict=True)]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            for row in [heads, *shown]
        ]
        if len(self) > MOST_SHOWN:
            lines.append(f"... and {len(self) - MOST_SHOWN} columns more")
        return "\n".join(lines)

    def as_frame(self) -> Any:
        """Return the table as a pandas frame."""
        import pandas as pd

        heads = [field.name for field in fields(ColumnUse)]
        return pd.DataFrame({head: [getattr(row, head) for row in self] for head in heads})

    def with_notes(self, notes: Iterable[tuple[str | None, str | int, str]]) -> ColumnTable:
        """Return the table with notes more on some columns: triples of view, name and note."""
        more: dict[tuple[str | None, str | int], list[str]] = {}
        for view, name, note in notes:
            more.setdefault((view, name), []).append(note)
        return ColumnTable(
            replace(
                row,
                note=", ".join(
                    dict.fromkeys([*filter(None, [row.note]), *more.get((row.view, row.column), ())])
                ),
            )
            for row in self
        )


def column_table(blocks: Sequence[Block | PairwiseBlock], left_out: Sequence[LeftOut]) -> ColumnTable:
    """Return what the blocks of a bank make of the columns, each column once, in the order of the blocks."""
    found: dict[tuple[str | None, str | int], ColumnUse] = {}
    for block in blocks:
        for part in getattr(block, "parts", ()):
            types = part.types or (ColumnType("number"),) * len(part.positions)
            words = "as it is" if part.encoder is None else None
            filled = (0,) * len(types) if part.encoder is None else part.encoder.filled
            for k, name in enumerate(part.names):
                text = words or part.encoder.words_of(k)
                use = ColumnUse(name, part.view, types[k].name, text, filled[k], note=types[k].note)
                found.setdefault((part.view, name), use)
    for one in left_out:
        found.setdefault(
            (one.view, one.name),
            ColumnUse(
                one.name, one.view, one.type, "left out", one.filled, getattr(one, "lacking", 0), one.note
            ),
        )
    return ColumnTable(found.values())


def _shown(value: Any) -> str:
    return "" if value is None else str(value)
