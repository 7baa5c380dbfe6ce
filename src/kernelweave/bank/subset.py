"""Some kernels of another bank, and one kernel of all that it looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernelweave.bank.fitted import Item
from kernelweave.bank.layout import WHOLE, Block, Layout, PairwiseBlock
from kernelweave.bank.spec import Bank, Entry
from kernelweave.kernels import Kernel


@dataclass
class OfAnotherBank(Bank):
    """A bank made of another one, whose views it takes over."""

    bank: Any
    scaling: None = field(default=None, kw_only=True)

    @property
    def is_default(self) -> bool:
        return bool(self.bank.is_default)

    def declared_views(self) -> Mapping[str, Any] | None:
        return self.bank.declared_views()  # type: ignore[no-any-return]


@dataclass
class ChosenBank(OfAnotherBank):
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
    >>> from kernelweave.bank.subset import ChosenBank
    >>> both = KernelBank.per_view(views={"a": [0], "b": [1]})
    >>> ChosenBank(both, [1]).fit(np.eye(3)).names
    ('b·gaussian(scale=1)',)

    """

    kernels: Sequence[int]

    def plan(self, layout: Layout) -> list[Entry]:
        entries = self.bank.plan(layout)
        return [entries[m] for m in self.kernels]

    def resolve(self, layout: Layout) -> tuple[list[Item], list[Block | PairwiseBlock]]:
        items, blocks = self.bank.resolve(layout)
        chosen = [items[m] for m in self.kernels]
        used = list(dict.fromkeys(item.block for item in chosen))
        return [replace(item, block=used.index(item.block)) for item in chosen], [blocks[b] for b in used]


@dataclass
class ConcatenatedBank(OfAnotherBank):
    r"""One kernel of all columns that another bank looks at, side by side.

    Parameters
    ----------
    bank : the other bank.
    kernel : the kernel.

    Notes
    -----
    Blocks of kernel values are not looked at.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import KernelBank
    >>> from kernelweave.bank.subset import ConcatenatedBank
    >>> from kernelweave.kernels import Linear
    >>> some = KernelBank.per_view(views={"a": [0], "b": [0, 2]})
    >>> next(ConcatenatedBank(some, Linear()).fit([[1.0, 9.0, 2.0], [0.0, 9.0, 1.0]]).grams())
    array([[5., 2.],
           [2., 1.]])

    """

    kernel: Kernel

    def plan(self, layout: Layout) -> list[Entry]:  # noqa: ARG002 - its block is that of no entry
        return [Entry(self.kernel)]

    def resolve(self, layout: Layout) -> tuple[list[Item], list[Block | PairwiseBlock]]:
        _, blocks = self.bank.resolve(layout)
        parts = [part for block in blocks if isinstance(block, Block) for part in block.parts]
        if not parts:
            raise ValueError("The bank looks at no columns, only at blocks of kernel values.")
        joined = []
        for view in dict.fromkeys(part.view for part in parts):
            of_view = [part for part in parts if part.view == view]
            positions = sorted({position for part in of_view for position in part.positions})
            joined.append(replace(of_view[0], positions=tuple(positions)))
        return [Item(self.kernel.label, self.kernel, 0, None)], [Block(WHOLE, tuple(joined))]
