"""The distance from which on two points count as different."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.estimators.parameters import check_choice, check_number, check_share

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


def best_threshold(
    distances: Vector,
    signs: Vector,
    strategy: str = "accuracy",
    *,
    min_rate: Any = None,
    beta: float = 1.0,
    weight: Vector | None = None,
) -> float:
    """Return the threshold that serves the strategy best on these pairs, in the middle between two distances.

    ``max_tpr`` and ``max_tnr`` keep the other rate at ``min_rate`` or more. Ties go to the smaller threshold.
    """
    check_choice("strategy", strategy, STRATEGIES)
    weight = np.ones(len(distances)) if weight is None else weight
    n_similar, n_different = weight[signs > 0.0].sum(), weight[signs < 0.0].sum()
    if n_similar <= 0.0 or n_different <= 0.0:
        raise ValueError("A threshold needs similar and dissimilar pairs; there is only one kind.")
    known = np.unique(distances)
    # Just below every distance, in the middle between neighbours, and just above all of them.
    cuts = np.r_[np.nextafter(known[0], -np.inf), (known[:-1] + known[1:]) / 2.0, known[-1]]
    tp, fp = (_up_to(cuts, distances[signs == kind], weight[signs == kind]) for kind in (1.0, -1.0))
    tpr, tnr = tp / n_similar, 1.0 - fp / n_different
    if strategy == "accuracy":
        value: AnyArray = tp + n_different - fp
    elif strategy == "f_beta":
        check_number("beta", beta, above=0.0)
        value = (1.0 + beta**2) * tp / ((1.0 + beta**2) * tp + beta**2 * (n_similar - tp) + fp)
    else:
        check_share("min_rate", min_rate)
        kept, wanted = (tnr, tpr) if strategy == "max_tpr" else (tpr, tnr)
        value = np.where(kept >= min_rate, wanted, -1.0)
    return float(cuts[int(np.argmax(value))])


def _up_to(cuts: Vector, distances: Vector, weight: Vector) -> Vector:
    """Return the weight of the pairs with a distance of at most each cut."""
    order = np.argsort(distances)
    total = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(total[np.searchsorted(distances[order], cuts, side="right")])
