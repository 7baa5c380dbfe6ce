"""The common part of all banks: a plan of entries becomes a fitted bank."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernelweave._part import Part
from kernelweave.bank.blocks import Block, PairwiseBlock
from kernelweave.bank.entry import Entry
from kernelweave.bank.fitted import FittedBank, Item
from kernelweave.bank.layout import Layout
from kernelweave.bank.naming import unique
from kernelweave.kernels import Scaling
from kernelweave.kernels.scaling import as_scaling


class Bank(Part, ABC):
    """A list of kernels, written down without data and resolved against columns or views at fit."""

    scaling: Scaling | Sequence[Scaling] | None

    @abstractmethod
    def plan(self, layout: Layout) -> list[Entry]:
        """Return the entries for data of this layout."""

    def declared_views(self) -> Mapping[str, Any] | None:
        """Return the column groups of a table that this bank names, if any."""
        return None

    def fit(self, X: Any) -> FittedBank:
        """Resolve the bank against the training samples ``X``: a table, or a ``Views``."""
        return FittedBank(*self.resolve(Layout(X, self.declared_views())), X)

    def resolve(self, layout: Layout) -> tuple[list[Item], list[Block | PairwiseBlock]]:
        """Return the kernels for data of this layout, and the blocks they look at."""
        entries = self.plan(layout)
        if not entries:
            raise ValueError(f"{self!r} has no kernels; give it at least one.")
        blocks, positions = _distinct([layout.block(entry) for entry in entries])
        names = unique(
            entry.name or f"{blocks[position].label}·{_label(entry)}"
            for entry, position in zip(entries, positions, strict=True)
        )
        own = as_scaling(self.scaling)
        items = [
            Item(name, entry.kernel, position, own if entry.scaling is None else as_scaling(entry.scaling))
            for name, entry, position in zip(names, entries, positions, strict=True)
        ]
        return items, blocks


def _label(entry: Entry) -> str:
    entry.kernel.check()  # a label is only worth reading when the parameters make sense
    return entry.kernel.label


def _distinct(wanted: list[Block | PairwiseBlock]) -> tuple[list[Block | PairwiseBlock], list[int]]:
    """Return each block once, under a label of its own, and the place of every wanted block among them."""
    places: dict[Any, int] = {}
    positions = [places.setdefault(block.key, len(places)) for block in wanted]
    first = {position: block for block, position in reversed(list(zip(wanted, positions, strict=True)))}
    blocks = [first[position] for position in range(len(places))]
    labels = unique(block.label for block in blocks)
    return [replace(block, label=label) for block, label in zip(blocks, labels, strict=True)], positions
