"""Two classes seen in several views, some entries of which belong to the other class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.bank import Views


@dataclass(frozen=True)
class ViewEntries:
    """Samples in views, their labels, and which entries (sample, view) were swapped or taken away."""

    X: Views
    y: AnyArray
    corrupted: AnyArray


def make_views(
    n_samples: int,
    *,
    n_views: int = 8,
    n_features: int = 5,
    separation: float = 3.0,
    random_state: Any = None,
) -> ViewEntries:
    r"""Draw two balanced classes, in every view two Gaussians of unit variance ``separation`` apart.

    The direction from one class to the other is drawn anew for every view, from a generator of its own, so
    that training and test samples of one ``random_state`` (a number, or a number and a part) share it.

    Examples
    --------
    >>> data = make_views(6, n_views=2, random_state=0)
    >>> data.X, data.y.tolist()
    (Views(view 0: 6 x 5, view 1: 6 x 5), [-1, 1, -1, 1, -1, 1])

    """
    seed, part = random_state if isinstance(random_state, tuple) else (random_state, 0)
    directions = np.random.default_rng(seed).standard_normal((n_views, n_features))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    rng = np.random.default_rng(None if seed is None else [seed, part])
    y = np.where(np.arange(n_samples) % 2, 1, -1)
    views = {
        f"view {m}": rng.standard_normal((n_samples, n_features)) + 0.5 * separation * y[:, None] * direction
        for m, direction in enumerate(directions)
    }
    return ViewEntries(Views(views), y, np.zeros((n_samples, n_views), dtype=bool))


def swap_entries(data: ViewEntries, share: float, random_state: Any = None) -> ViewEntries:
    """Give a share of the entries (sample, view) the features of a sample of the other class."""
    rng = np.random.default_rng(random_state)
    swapped = rng.random(data.corrupted.shape) < share
    views = {}
    for m, (name, table) in enumerate(data.X.items()):
        views[name] = np.array(table)
        for label in (-1, 1):
            mine = np.flatnonzero(swapped[:, m] & (data.y == label))
            views[name][mine] = table[rng.choice(np.flatnonzero(data.y != label), mine.size)]
    return ViewEntries(Views(views), data.y, swapped)


def remove_entries(data: ViewEntries, share: float, random_state: Any = None) -> ViewEntries:
    """Take a share of the entries (sample, view) away, as rows of NaN; every sample keeps one view."""
    rng = np.random.default_rng(random_state)
    n, n_views = data.corrupted.shape
    gone = rng.random((n, n_views)) < share
    gone[np.arange(n), rng.integers(n_views, size=n)] = False
    views = {
        name: np.where(gone[:, m, None], np.nan, table) for m, (name, table) in enumerate(data.X.items())
    }
    return ViewEntries(Views(views), data.y, gone)
