"""Some kernels of another bank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelweave.bank.base import Bank
from kernelweave.bank.blocks import Block, PairwiseBlock
from kernelweave.bank.entry import Entry
from kernelweave.bank.fitted import Item
from kernelweave.bank.layout import Layout


@dataclass
class ChosenBank(Bank):
    r"""The kernels of another bank at some positions, under the names they have there.

    Parameters
    ----------
    bank : the other bank.
    kernels : positions among its kernels, in order.

    Notes
    -----
    Views none of whose kernels are chosen are not looked at.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelBank
    >>> from kernelweave.bank.chosen import ChosenBank
    >>> both = KernelBank.per_view(views={"a": [0], "b": [1]})
    >>> ChosenBank(both, [1]).fit(np.eye(3)).names
    ('b·gaussian(scale=1)',)

    """

    bank: Any
    kernels: Sequence[int]
    scaling: None = None

    def declared_views(self) -> Mapping[str, Any] | None:
        return self.bank.declared_views()  # type: ignore[no-any-return]

    def plan(self, layout: Layout) -> list[Entry]:
        entries = self.bank.plan(layout)
        return [entries[m] for m in self.kernels]

    def resolve(self, layout: Layout) -> tuple[list[Item], list[Block | PairwiseBlock]]:
        items, blocks = self.bank.resolve(layout)
        chosen = [items[m] for m in self.kernels]
        used = list(dict.fromkeys(item.block for item in chosen))
        return [replace(item, block=used.index(item.block)) for item in chosen], [blocks[b] for b in used]
