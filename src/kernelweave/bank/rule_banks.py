"""Banks whose kernels follow from the columns or views of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelweave.bank.layout import Layout
from kernelweave.bank.spec import Bank, Entry
from kernelweave.kernels import (
    Gaussian,
    InverseDistance,
    InverseSquareDistance,
    Kernel,
    Laplacian,
    Polynomial,
    Scaling,
    UnitMean,
)

# [Rakotomamonjy08]: ten widths from fine to coarse.
WIDTHS = tuple(2.0**power for power in range(-3, 7))
# [Xu13, Sec. V-E]: 4^(n-1), n = -2 .. 2.
SCALES = tuple(4.0 ** (n - 1) for n in range(-2, 3))


@dataclass
class PerFeatureBank(Bank):
    r"""Gaussians and polynomials on all variables together and on each single one: SimpleMKL's bank.

    With d variables it holds (1 + d) x (widths + degrees) kernels; d = 8 gives 117.

    Parameters
    ----------
    widths : widths of the Gaussians.
    degrees : degrees of the polynomials (offset 1).
    scaling : scaling of every Gram matrix, or a tuple of them; None leaves them as they are.

    Notes
    -----
    [Rakotomamonjy08], [Xu13, Sec. V-B]. Widths mean something only on standardised columns.
    Symbols: sigma -> width.
    Differs from the paper: the mean of the diagonal is 1, not the trace.

    Examples
    --------
    >>> import numpy as np
    >>> len(PerFeatureBank().fit(np.random.default_rng(0).normal(size=(5, 8))))
    117

    """

    widths: Sequence[float] = WIDTHS
    degrees: Sequence[int] = (1, 2, 3)
    scaling: Scaling | Sequence[Scaling] | None = field(default_factory=UnitMean)

    def plan(self, layout: Layout) -> list[Entry]:
        kernels: list[Kernel] = [Gaussian(width=float(width)) for width in self.widths]
        kernels += [Polynomial(degree=int(degree)) for degree in self.degrees]
        places: list[tuple[str | None, int | None]] = [(None, None), *layout.single_columns()]
        return [Entry(kernel, view=view, columns=column) for view, column in places for kernel in kernels]


@dataclass
class PerViewBank(Bank):
    r"""Each kernel on each view.

    Parameters
    ----------
    kernels : one kernel or a sequence of them; None is one Gaussian whose gamma is learnt per view.
    views : dict of name to columns for a table; None takes the views of a ``Views``, or all columns as one.
    scaling : scaling of every Gram matrix, or a tuple of them; None leaves them as they are.
    transform : transformer of scikit-learn for every view, or a dict of view to transformer; fitted to the training
        samples. "by_type" encodes every column by its type, numbers as z-scores; None leaves numbers as they are.

    Notes
    -----
    Differs from the paper: nothing.

    Examples
    --------
    >>> import numpy as np
    >>> bank = PerViewBank(views={"left": [0, 1], "right": [2]})
    >>> bank.fit(np.random.default_rng(0).normal(size=(5, 3))).names
    ('left·gaussian(scale=1)', 'right·gaussian(scale=1)')

    """

    kernels: Kernel | Sequence[Kernel] | None = None
    views: Mapping[str, Any] | None = None
    scaling: Scaling | Sequence[Scaling] | None = field(default_factory=UnitMean)
    transform: Any = None

    def declared_views(self) -> Mapping[str, Any] | None:
        return self.views

    def plan(self, layout: Layout) -> list[Entry]:
        kernels = [Gaussian()] if self.kernels is None else self.kernels
        return on_each_view([kernels] if isinstance(kernels, Kernel) else kernels, layout)


@dataclass
class DistancesBank(Bank):
    r"""Four kernels of the Euclidean distance at several scales, on each view.

    Gaussian, Laplacian, inverse square distance and inverse distance, with gamma = scale / mean(D^2).

    Parameters
    ----------
    scales : multiples of gamma_0; five of them give 20 kernels per view.
    views : dict of name to columns for a table; None takes the views of a ``Views``, or all columns as one.
    scaling : scaling of every Gram matrix, or a tuple of them; all four kernels have k(x, x) = 1 without one.
    transform : transformer of scikit-learn for every view, or a dict of view to transformer; fitted to the training
        samples. "by_type" encodes every column by its type, numbers as z-scores; None leaves numbers as they are.

    Notes
    -----
    [Xu13, Sec. V-E]: gamma = 4^(n-1) gamma_0, n = -2 .. 2, the default here.
    Symbols: 4^(n-1) -> scale, gamma_0 = 1/A -> 1 / mean(D^2).
    Differs from the paper: the mean runs over the pairs i != j of training samples.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = DistancesBank().fit(np.random.default_rng(0).normal(size=(5, 3)))
    >>> len(fitted), fitted.names[4]
    (20, 'x·gaussian(scale=4)')

    """

    scales: Sequence[float] = SCALES
    views: Mapping[str, Any] | None = None
    scaling: Scaling | Sequence[Scaling] | None = None
    transform: Any = None

    def declared_views(self) -> Mapping[str, Any] | None:
        return self.views

    def plan(self, layout: Layout) -> list[Entry]:
        return on_each_view(distance_kernels(self.scales), layout)


def on_each_view(kernels: Sequence[Kernel], layout: Layout) -> list[Entry]:
    """Return every kernel on every view, the kernels of one view in a row so that they share distances."""
    for kernel in kernels:
        if not isinstance(kernel, Kernel):
            raise TypeError(f"The kernels of a bank are kernels such as Gaussian(), received {kernel!r}.")
    return [Entry(kernel, view=view) for view in layout.view_names for kernel in kernels]


def distance_kernels(scales: Sequence[float] = SCALES) -> list[Kernel]:
    """Return the four kernels of a distance at every scale."""
    families = (Gaussian, Laplacian, InverseSquareDistance, InverseDistance)
    return [family(scale=float(scale)) for family in families for scale in scales]
