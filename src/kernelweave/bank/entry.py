"""One kernel of a bank: what it looks at, and how its Gram matrix is scaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelweave._part import Part
from kernelweave.kernels import Kernel, Scaling


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
