"""From the types of columns to their encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._typing import Indices
from kernelweave.views.column_types import ColumnType, are_counts
from kernelweave.views.encoders import (
    CategoryEncoder,
    CountEncoder,
    DateEncoder,
    Encoder,
    NumberEncoder,
    OrderedEncoder,
)
from kernelweave.views.tables import Table, TablePart, stack, take_columns
from kernelweave.views.text_encoders import SetEncoder, TextEncoder


@dataclass(frozen=True)
class SideBySide(Encoder):
    """Several encoders of parts of the same columns, side by side; ``factors`` bring them to one scale."""

    parts: tuple[tuple[Indices, Encoder], ...]
    factors: tuple[float, ...]
    filled: tuple[int, ...] = field(repr=False)

    def transform(self, table: Table, what: str) -> Any:
        return self.once(table, what, {})

    def once(self, table: Table, what: str, known: dict[int, Any]) -> Any:
        found = []
        for (columns, encoder), factor in zip(self.parts, self.factors, strict=True):
            part = TablePart(what, columns.tolist())
            block = encoder.once(take_columns(table, columns), part, known)
            found.append(block if factor == 1.0 else block * factor)
        return stack(found)

    @property
    def words(self) -> str:
        return "by type"

    def words_of(self, position: int) -> str:
        for columns, encoder in self.parts:
            if position in columns:
                return encoder.words_of(int(np.flatnonzero(columns == position)[0]))
        return self.words


def encoder_of(
    name: str, table: Table, types: Sequence[ColumnType], what: str, *, plain: bool = False
) -> Encoder:
    """Return the encoder of columns of one group of types, learnt on the rows of a table."""
    if name == "numbers":
        booleans = np.array([kind.name == "boolean" for kind in types], dtype=bool)
        return NumberEncoder.learn(table, what, booleans, plain=plain)
    if name == "ordered":
        return OrderedEncoder.learn(table, what, [kind.levels or () for kind in types])
    learn = {
        "counts": CountEncoder.learn,
        "categories": CategoryEncoder.learn,
        "dates": DateEncoder.learn,
        "text": TextEncoder.learn,
        "set": SetEncoder.learn,
    }
    return learn[name](table, what)


# The group of columns that are encoded together, by their type.
GROUPS = {
    "number": "numbers",
    "boolean": "numbers",
    "category": "categories",
    "ordered": "ordered",
    "date": "dates",
    "text": "text",
    "set": "set",
}
ORDER = tuple(dict.fromkeys(GROUPS.values()))
# Groups whose columns are encoded one by one.
ALONE = ("text", "set")


@dataclass(frozen=True)
class ColumnGroup:
    """Columns of a table that are encoded together: what they are, where they stand, and their encoder."""

    name: str
    columns: Indices
    encoder: Encoder


def column_groups(
    table: Table,
    types: Sequence[ColumnType],
    what: str,
    columns: Sequence[int] | None = None,
    *,
    plain: bool = False,
) -> list[ColumnGroup]:
    """Return (some) columns of a dense table in groups by type, each with its encoder learnt on the rows.

    Many columns of counts are one group of their own. ``plain`` leaves numbers as they are but for their gaps.
    """
    places = np.arange(len(types)) if columns is None else np.asarray(columns, dtype=np.intp)
    found: dict[tuple[int, int], list[int]] = {}
    for j in places.tolist():
        name = GROUPS[types[j].name]
        found.setdefault((ORDER.index(name), j if name in ALONE else -1), []).append(j)
    members = [(ORDER[number], np.array(own)) for (number, _), own in sorted(found.items())]
    if not plain and places.size and are_counts(take_columns(table, places)):
        members = [("counts", places)]
    groups = []
    for name, own in members:
        part, kinds = take_columns(table, own), [types[j] for j in own]
        groups.append(
            ColumnGroup(name, own, encoder_of(name, part, kinds, TablePart(what, own.tolist()), plain=plain))
        )
    return groups


def encode_together(table: Table, types: Sequence[ColumnType], what: str, *, plain: bool = False) -> Encoder:
    """Return one encoder of all columns, each by its type, so that a column of any type counts alike."""
    return side_by_side(column_groups(table, types, what, plain=plain)).encoder


def side_by_side(groups: Sequence[ColumnGroup]) -> ColumnGroup:
    """Return groups as one, in which a column of any type counts alike."""
    if len(groups) == 1:
        return groups[0]
    members = np.sort(np.concatenate([group.columns for group in groups]))
    filled, parts = np.zeros(members.size, dtype=int), []
    for group in groups:
        own = np.searchsorted(members, group.columns)
        filled[own] = group.encoder.filled
        parts.append((own, group.encoder))
    factors = [np.sqrt(own.size) if isinstance(encoder, CategoryEncoder) else 1.0 for own, encoder in parts]
    encoder = SideBySide(tuple(parts), tuple(map(float, factors)), tuple(filled.tolist()))
    return ColumnGroup("together", members, encoder)
