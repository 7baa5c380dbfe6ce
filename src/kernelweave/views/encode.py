"""From the types of columns to their encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._typing import Indices
from kernelweave.views.column_types import ColumnType
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


# The group of columns that are encoded together, by their type; text and sets stand alone.
GROUPS = {
    "number": "numbers",
    "boolean": "numbers",
    "category": "categories",
    "ordered": "ordered",
    "date": "dates",
    "text": "text",
    "set": "set",
}


def encode_together(table: Table, types: Sequence[ColumnType], what: str, *, plain: bool = False) -> Encoder:
    """Return one encoder of all columns, each by its type, so that a column of any type counts alike."""
    places: dict[object, list[int]] = {}
    for j, kind in enumerate(types):
        group = GROUPS[kind.name]
        places.setdefault((group, j) if group in ("text", "set") else (group, -1), []).append(j)
    parts, filled = [], np.zeros(len(types), dtype=int)
    for (group, _), columns in places.items():  # type: ignore[misc]
        chosen = np.array(columns, dtype=np.intp)
        encoder = encoder_of(
            group, take_columns(table, chosen), [types[j] for j in columns], what, plain=plain
        )
        parts.append((chosen, encoder))
        filled[chosen] = encoder.filled
    return side_by_side(parts, tuple(filled.tolist()))


def side_by_side(parts: Sequence[tuple[Indices, Encoder]], filled: tuple[int, ...]) -> Encoder:
    """Return encoders as one, so that columns of all types count alike."""
    if len(parts) == 1:
        return parts[0][1]
    factors = tuple(
        float(np.sqrt(columns.size)) if isinstance(encoder, CategoryEncoder) else 1.0
        for columns, encoder in parts
    )
    return SideBySide(tuple(parts), factors, filled)
