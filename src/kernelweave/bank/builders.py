"""The bank of explicit entries, and the door to banks whose kernels follow from the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kernelweave.bank.by_type import ByTypeBank, DefaultBank
from kernelweave.bank.layout import Layout
from kernelweave.bank.prepared import PreparedBank
from kernelweave.bank.rule_banks import (
    DistancesBank,
    PerFeatureBank,
    PerViewBank,
    distance_kernels,
    on_each_view,
)
from kernelweave.bank.spec import Bank, Entry, as_entry
from kernelweave.kernels import Kernel, Scaling


@dataclass
class KernelBank(Bank):
    r"""A list of named kernels, written down without data.

    Parameters
    ----------
    entries : sequence of kernels (on the whole table), pairs (view name, kernel) or ``Entry``; None is the
        default bank, the kernels of ``KernelBank.distances()``.
    views : dict of name to columns (names, positions, slice, mask, callable) for a table; a ``Views`` has its
        own.
    scaling : scaling of the Gram matrices of entries that have none of their own, or a tuple of them.
    transform : transformer of scikit-learn for the columns of every entry that has none of its
        own, or a dict of view to transformer; fitted to the training samples. "by_type" encodes every column by its
        type, numbers as z-scores; None leaves numbers as they are.

    Notes
    -----
    ``fit(X)`` resolves it against a table or ``Views``; ``per_feature``, ``per_view``, ``distances`` and
    ``by_type`` make banks whose kernels follow from the columns or views. ``prepared`` is what ``bank=None``
    means for `MKLClassifier` and its search, ``default`` what it means for the other estimators. Kernels read
    numbers as they are; empty cells are filled by the median, and columns of words encoded as by ``by_type``.
    Kernels of one view that stand together share its distances.
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Gaussian, Linear
    >>> bank = KernelBank([Linear(), ("size", Gaussian(width=0.5))], views={"size": [0, 1]})
    >>> bank.fit(np.random.default_rng(0).normal(size=(5, 3))).names
    ('x·linear', 'size·gaussian(width=0.5)')

    """

    # KernelBank.per_feature(...) and its sisters: the classes themselves, so that nothing is said twice.
    per_feature: ClassVar[type[PerFeatureBank]] = PerFeatureBank
    per_view: ClassVar[type[PerViewBank]] = PerViewBank
    distances: ClassVar[type[DistancesBank]] = DistancesBank
    by_type: ClassVar[type[ByTypeBank]] = ByTypeBank
    default: ClassVar[type[DefaultBank]] = DefaultBank
    prepared: ClassVar[type[PreparedBank]] = PreparedBank

    entries: Sequence[Entry | Kernel | tuple[str, Kernel]] | None = None
    views: Mapping[str, Any] | None = None
    scaling: Scaling | Sequence[Scaling] | None = None
    transform: Any = None

    def declared_views(self) -> Mapping[str, Any] | None:
        return self.views

    def plan(self, layout: Layout) -> list[Entry]:
        if self.entries is None:
            return on_each_view(distance_kernels(), layout)
        if isinstance(self.entries, Kernel | Entry | str | Mapping):
            raise TypeError(
                f"The entries of a bank are a list of kernels, received {self.entries!r}; put it in a list."
            )
        return [as_entry(item) for item in self.entries]
