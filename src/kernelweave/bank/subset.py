"""Some kernels of another bank, and one kernel of all that it looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from kernelweave.bank.fitted import Item
from kernelweave.bank.layout import WHOLE, Block, Columns, Layout, PairwiseBlock
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
    r"""Some kernels of another bank, under the names they have there.

    Parameters
    ----------
    bank : the other bank.
    kernels : positions among its kernels, or their names, in order. Names that the bank does not have for the data at
        hand, where kernels follow from these, are passed over; one of them has to be there.

    Notes
    -----
    Views none of whose kernels are chosen are not looked at. A sample without any of the others sits at the mean of
    those that have them, as it does in the other bank.
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

    kernels: Sequence[int | str]
    needs_a_view: ClassVar[bool] = False

    def plan(self, layout: Layout) -> list[Entry]:
        entries = self.bank.plan(layout)
        return [entries[m] for m in self._positions(self.bank.resolve(layout)[0])]

    def resolve(self, layout: Layout) -> tuple[list[Item], list[Block | PairwiseBlock]]:
        items, blocks = self.bank.resolve(layout)
        chosen = [items[m] for m in self._positions(items)]
        used = list(dict.fromkeys(item.block for item in chosen))
        return [replace(item, block=used.index(item.block)) for item in chosen], [blocks[b] for b in used]

    def _positions(self, items: Sequence[Item]) -> list[int]:
        place = {item.name: m for m, item in enumerate(items)}
        found = [place.get(one) if isinstance(one, str) else one for one in self.kernels]
        if set(found) <= {None}:
            raise ValueError(
                f"The bank has none of the kernels {', '.join(map(str, self.kernels))} for these samples."
            )
        return [one for one in found if one is not None]


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
        joined: list[Columns] = []
        seen: set[tuple[str | None, int]] = set()
        for part in parts:
            new = tuple(position for position in part.positions if (part.view, position) not in seen)
            seen |= {(part.view, position) for position in new}
            if new:  # what is encoded together stays together
                joined.append(part if part.encoder is not None else replace(part, positions=new))
        return [Item(self.kernel.label, self.kernel, 0, None)], [Block(WHOLE, tuple(joined))]
