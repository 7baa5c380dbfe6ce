"""The bank of prepared columns: few kernels per view that mean the same whatever the units of the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelweave.bank.by_type import ByTypeBank, NothingToLearnError
from kernelweave.bank.layout import Block, Layout, PairwiseBlock
from kernelweave.bank.spec import Bank, Entry, unique
from kernelweave.kernels import Kernel, Laplacian, Linear, Scaling, UnitVariance
from kernelweave.views.encoders import NumberEncoder
from kernelweave.views.preparations import CommonUnitEncoder, RankEncoder

# How numbers are prepared, and the word for it in the names of kernels.
PREPARATIONS = {"zscores": "", "ranks": "ranks", "centred": "centred"}


@dataclass
class PreparedBank(Bank):
    r"""A linear and a Laplacian kernel on each view, whose columns are prepared and whose kernels have unit variance.

    Numbers become z-scores, counts log1p x idf with rows of unit length, and columns of other types what
    `KernelBank.by_type` makes of them; each type of column is a view of its own. All of it is learnt on the training
    samples.

    Parameters
    ----------
    kernels : sequence of kernels, or a dict of preparation to such a sequence; None is ``(Linear(), Laplacian())``
        The preparations of numbers are "zscores", "ranks" (normal scores, blind to outliers and skewness) and
        "centred" (in the unit they came in, for columns that share one). Other columns are prepared in one way and
        have the kernels of all preparations.
    views : dict of name to columns for a table; None takes the views of a ``Views``, or all columns as one.
    transform : transformer of scikit-learn for all columns of every view, or a dict of view to transformer, in
        place of the preparation; fitted to the training samples.
    scaling : scaling of every Gram matrix, or a tuple of them; None is `UnitVariance`, which gives C a meaning that
        depends neither on the units of the columns nor on their number.

    Notes
    -----
    Columns that are constant or number the rows are left out, and views that have no others.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Gaussian, Linear
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> PreparedBank(views={"left": [0, 1], "right": [2]}).fit(X).names[:2]
    ('left·linear', 'left·laplacian(scale=1)')
    >>> PreparedBank({"zscores": [Linear()], "ranks": [Gaussian()]}).fit(X).names
    ('x·linear', 'x·ranks·gaussian(scale=1)')

    """

    kernels: Sequence[Kernel] | Mapping[str, Sequence[Kernel]] | None = None
    views: Mapping[str, Any] | None = None
    transform: Any = None
    scaling: Scaling | Sequence[Scaling] | None = None

    @property
    def is_default(self) -> bool:
        return self.kernels is None and self.scaling is None

    def declared_views(self) -> Mapping[str, Any] | None:
        return self.views

    def plan(self, layout: Layout) -> list[Entry]:
        return [entry for entry, _ in self.placed(layout)]

    def placed(self, layout: Layout) -> list[tuple[Entry, Block | PairwiseBlock]]:
        kernels, scaling = self._kernels(), UnitVariance() if self.scaling is None else None
        found: list[tuple[Entry, Block | PairwiseBlock]] = []
        for view, block in self._blocks(layout):
            for prepared, own in _prepared(block, kernels, layout):
                found += [(Entry(kernel, view=view, scaling=scaling), prepared) for kernel in own]
        return found

    def _kernels(self) -> dict[str, list[Kernel]]:
        """Return the kernels by preparation."""
        given = (Linear(), Laplacian()) if self.kernels is None else self.kernels
        found: dict[str, list[Kernel]] = {}
        for name, kernels in (given if isinstance(given, Mapping) else {"zscores": given}).items():
            if name not in PREPARATIONS:
                raise ValueError(
                    f"Numbers are prepared as {', '.join(map(repr, PREPARATIONS))}, received {name!r}."
                )
            found[name] = as_kernels(kernels)
        return found

    def _blocks(self, layout: Layout) -> list[tuple[str | None, Block]]:
        """Return the blocks of all views that have any, under labels of their own."""
        by_type = ByTypeBank(views=self.views, transform=self.transform)
        by_type.require_known(layout)
        found: list[tuple[str | None, Block]] = []
        for place, view in enumerate(layout.view_names, start=1):
            try:
                found += [(view, block) for block, _ in by_type.blocks(view, layout)]
            except NothingToLearnError:
                if not found and place == len(layout.view_names):
                    raise
        labels = unique(block.label for _, block in found)
        return [
            (view, replace(block, label=label)) for (view, block), label in zip(found, labels, strict=True)
        ]


def as_kernels(kernels: Any) -> list[Kernel]:
    """Return the kernels of a preparation as a list; each reads columns."""
    found = [kernels] if isinstance(kernels, Kernel) else list(kernels)
    for kernel in found:
        if not isinstance(kernel, Kernel) or kernel.pairwise:
            raise TypeError(
                f"The kernels of prepared columns are kernels such as Gaussian(), received {kernel!r}."
            )
    return found


def _prepared(
    block: Block, kernels: Mapping[str, Sequence[Kernel]], layout: Layout
) -> list[tuple[Block, Sequence[Kernel]]]:
    """Return a block of numbers in every way it is to be prepared; others in their one, with all kernels."""
    encoder = block.parts[0].encoder if len(block.parts) == 1 else None
    if not isinstance(encoder, NumberEncoder):
        every = [kernel for some in kernels.values() for kernel in some]
        return [(block, [kernel for k, kernel in enumerate(every) if kernel not in every[:k]])]
    [part] = block.parts
    found = []
    for name, own in kernels.items():
        if name == "ranks":
            table, what = layout.rows_with(part)
            ranks = RankEncoder.learn(encoder, encoder.transform(table, what))
            other = replace(block, parts=(replace(part, encoder=ranks),), preparation=PREPARATIONS[name])
        elif name == "centred":
            unit = CommonUnitEncoder.learn(encoder)
            other = replace(block, parts=(replace(part, encoder=unit),), preparation=PREPARATIONS[name])
        else:
            other = block
        found.append((other, own))
    return found
