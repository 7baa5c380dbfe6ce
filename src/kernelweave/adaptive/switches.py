"""Which kernels a sample can do without: n small 0/1 programs, solved exactly by sorting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelweave._typing import AnyArray, Matrix, Vector

Switches = NDArray[np.bool_]

# A margin may be missed by this share of the terms of its sum: it is what rounding makes of equality.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Switched:
    """The solution of every program, one row each; where ``feasible`` is False there is none."""

    switches: Switches
    feasible: Switches


def fewest_kernels(
    gains: Matrix,
    needed: Vector,
    prior: Switches,
    max_flips: int,
    available: Switches | None = None,
) -> Switched:
    r"""Solve min ‖h_i‖₁ over h_i in {0, 1}^M with h_i'a_i ≥ r_i and ‖h_i − h_0i‖₁ ≤ m_0, for all i at once.

    Parameters
    ----------
    gains : array of shape (n, M)
        a_ip, what kernel p adds to the margin of sample i.
    needed : array of shape (n,)
        r_i, what the kernels have to add up to.
    prior : bool array of shape (n, M) or (M,)
        h_0.
    max_flips : int
        m_0, the entries in which h_i may differ from h_0i.
    available : bool array of shape (n, M) or None
        Kernels a sample has; others are never switched on. None: all.

    Notes
    -----
    [Liu14, Eq. (15)]. Of all ways to switch d kernels off and e on, the one with the largest margin takes the
    d smallest gains among those on and the e largest among those off. So the sums of sorted gains tell for
    every (d, e) whether it is feasible, and the least e − d wins; of equals the one with fewer flips.
    Differs from the paper: no integer programming is needed; which of several optima is taken is stated.

    Examples
    --------
    >>> import numpy as np
    >>> gains = np.array([[3.0, -1.0, 0.5, 0.2]])
    >>> fewest_kernels(gains, np.array([3.0]), np.ones(4, dtype=bool), max_flips=2).switches
    array([[ True, False,  True, False]])

    """
    n, n_kernels = gains.shape
    available = np.ones((n, n_kernels), dtype=bool) if available is None else available
    on = np.broadcast_to(prior, (n, n_kernels)) & available
    off = ~on & available
    target = needed - TOLERANCE * np.maximum(1.0, np.abs(gains).sum(axis=1))
    n_drops = min(max_flips, int(on.sum(axis=1).max(initial=0)))
    n_adds = min(max_flips, int(off.sum(axis=1).max(initial=0)))
    drops, lost = _cheapest(gains, on, n_drops)
    adds, won = _cheapest(-gains, off, n_adds)
    total = np.where(on, gains, 0.0).sum(axis=1)

    best = np.full(n, np.inf)
    d, e = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
    for added in range(n_adds + 1):
        most = min(n_drops, max_flips - added)
        fits = total[:, None] - lost[:, : most + 1] - won[:, added, None] >= target[:, None]
        count = np.where(fits, np.arange(most + 1), -1).max(axis=1)
        better = (count >= 0) & (added - count < best)  # the first of equals has the fewest flips
        best[better] = (added - count)[better]
        d[better], e[better] = count[better], added
    feasible = np.isfinite(best)
    switches = on.copy()
    _flip(switches, drops, d, False)
    _flip(switches, adds, e, True)
    return Switched(switches, feasible)


def _cheapest(costs: Matrix, among: Switches, most: int) -> tuple[AnyArray, Matrix]:
    """Return the places of the cheapest entries among some, in order, and the cost of the first 0, 1, ..."""
    costs = np.where(among, costs, np.inf)
    order = np.argsort(costs, axis=1, kind="stable")[:, :most]
    sums = np.zeros((costs.shape[0], most + 1))
    np.cumsum(np.take_along_axis(costs, order, axis=1), axis=1, out=sums[:, 1:])
    return order, sums


def _flip(switches: Switches, order: AnyArray, counts: AnyArray, value: bool) -> None:
    """Set the first ``counts`` places of every row's order to a value."""
    rows, ranks = np.nonzero(np.arange(order.shape[1]) < counts[:, None])
    switches[rows, order[rows, ranks]] = value
