"""A bank written down without data: its entries, and how they are resolved against columns or views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kernelweave._part import Part
from kernelweave.bank.fitted import FittedBank, Item
from kernelweave.bank.layout import Block, Layout, PairwiseBlock
from kernelweave.kernels import Kernel, Scaling
from kernelweave.kernels.scaling import as_scaling


@dataclass
class Entry(Part):
    r"""One kernel of a bank, on one view or on some columns of it.

    Parameters
    ----------
    kernel : the kernel function.
    view : name of a view of the ``Views``, or of one the bank declares for a table; None is the whole table.
    columns : columns of that view, as names, positions, slice, mask or callable; None is all of them.
    scaling : scaling of its Gram matrix, or a tuple of them; None takes the bank's.
    name : text to report; None makes one of the view and the kernel, such as ``rna·gaussian(width=0.5)``.
    transform : transformer of scikit-learn for the columns, fitted to the training samples; None takes the
        bank's.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> from kernelweave.kernels import Gaussian
    >>> Entry(Gaussian(width=0.5), view="rna").kernel.label
    'gaussian(width=0.5)'

    """

    kernel: Kernel
    view: str | None = None
    columns: Any = None
    scaling: Scaling | Sequence[Scaling] | None = None
    name: str | None = None
    transform: Any = None


def as_entry(item: Any) -> Entry:
    """Return an entry for an entry, a kernel (on the whole table) or a pair (view, kernel)."""
    if isinstance(item, Kernel):
        return Entry(item)
    if (
        isinstance(item, tuple)
        and len(item) == 2
        and isinstance(item[0], str)
        and isinstance(item[1], Kernel)
    ):
        return Entry(item[1], view=item[0])
    if isinstance(item, Entry) and isinstance(item.kernel, Kernel):
        return item
    raise TypeError(
        f"An entry of a bank is a kernel, a pair (view name, kernel) or an Entry, received {item!r}."
    )


def unique(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names with #2, #3, ... after the repeated ones.

    Examples
    --------
    >>> unique(["a", "b", "a"])
    ('a', 'b', 'a#2')

    """
    names = list(names)
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        candidate, count = name, 1
        while candidate in seen or (count > 1 and candidate in taken):
            count += 1
            candidate = f"{name}#{count}"
        seen.add(candidate)
        result.append(candidate)
    return tuple(result)


class Bank(Part, ABC):
    """A list of kernels, written down without data and resolved against columns or views at fit."""

    scaling: Scaling | Sequence[Scaling] | None
    # A transformer of scikit-learn for the columns of every view, or a dict of view to transformer.
    transform: Any = None
    # Whether every sample has to have a value for one of the kernels.
    needs_a_view: ClassVar[bool] = True

    @property
    def is_default(self) -> bool:
        """Whether its kernels are those of an estimator without a bank."""
        return False

    @abstractmethod
    def plan(self, layout: Layout) -> list[Entry]:
        """Return the entries for data of this layout."""

    def declared_views(self) -> Mapping[str, Any] | None:
        """Return the column groups of a table that this bank names, if any."""
        return None

    def fit(self, X: Any) -> FittedBank:
        """Resolve the bank against the training samples ``X``: a table, or a ``Views``."""
        layout = Layout(X, self.declared_views())
        items, blocks = self.resolve(layout)
        for block in blocks:
            block.require_present(X)
        return FittedBank(items, blocks, X, layout.left_out)

    def placed(self, layout: Layout) -> list[tuple[Entry, Block | PairwiseBlock]]:
        """Return the entries, each with the block it looks at."""
        entries = [self._with_transform(entry, layout) for entry in self.plan(layout)]
        return [(entry, layout.block(entry)) for entry in entries]

    def _with_transform(self, entry: Entry, layout: Layout) -> Entry:
        """Return an entry that has none of its own with the bank's transformer."""
        if self.transform is None or entry.transform is not None or entry.kernel.pairwise:
            return entry
        if isinstance(self.transform, Mapping):
            layout.require_views(self.transform)
            if entry.view is not None:
                return replace(entry, transform=self.transform.get(entry.view))
        return replace(entry, transform=self.transform)

    def resolve(self, layout: Layout) -> tuple[list[Item], list[Block | PairwiseBlock]]:
        """Return the kernels for data of this layout, and the blocks they look at."""
        placed = self.placed(layout)
        if not placed:
            raise ValueError(f"{self!r} has no kernels; give it at least one.")
        entries = [entry for entry, _ in placed]
        blocks, positions = _distinct([block for _, block in placed])
        names = unique(
            entry.name or "·".join(_words(blocks[position], entry))
            for entry, position in zip(entries, positions, strict=True)
        )
        own = as_scaling(self.scaling)
        items = [
            Item(
                name,
                entry.kernel.for_columns(blocks[position].columns),
                position,
                own if entry.scaling is None else as_scaling(entry.scaling),
            )
            for name, entry, position in zip(names, entries, positions, strict=True)
        ]
        return items, blocks


def _words(block: Block | PairwiseBlock, entry: Entry) -> list[str]:
    """Return what the name of a kernel is made of: its view, how the columns were prepared, its formula."""
    return [word for word in (block.label, block.preparation, _label(entry)) if word]


def _label(entry: Entry) -> str:
    entry.kernel.check()  # a label is only worth reading when the parameters make sense
    return entry.kernel.label


def _distinct(wanted: list[Block | PairwiseBlock]) -> tuple[list[Block | PairwiseBlock], list[int]]:
    """Return each block once, under a label of its own, and the place of every wanted block among them."""
    blocks: dict[Any, Block | PairwiseBlock] = {}
    for block in wanted:
        blocks.setdefault(block.key, block)
    position_of = {key: position for position, key in enumerate(blocks)}
    labels: dict[str, Iterator[str]] = {}
    for one in dict.fromkeys(block.preparation for block in blocks.values()):
        labels[one] = iter(unique(block.label for block in blocks.values() if block.preparation == one))
    labelled = [replace(block, label=next(labels[block.preparation])) for block in blocks.values()]
    return labelled, [position_of[block.key] for block in wanted]
