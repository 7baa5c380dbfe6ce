"""The distance from which on two points count as different."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.estimators.parameters import check_choice, check_number, check_share

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


def best_threshold(
    distances: Vector, signs: Vector, strategy: str = "accuracy", *, min_rate: Any = None, beta: float = 1.0
) -> float:
    """Return the threshold that serves the strategy best on these pairs, in the middle between two distances.

    ``max_tpr`` and ``max_tnr`` keep the other rate at ``min_rate`` or more. Ties go to the smaller threshold.
    """
    check_choice("strategy", strategy, STRATEGIES)
    similar = np.sort(distances[signs > 0.0])
    different = np.sort(distances[signs < 0.0])
    if not len(similar) or not len(different):
        raise ValueError("A threshold needs similar and dissimilar pairs; there is only one kind.")
    known = np.unique(distances)
    # Just below every distance, in the middle between neighbours, and just above all of them.
    cuts = np.r_[np.nextafter(known[0], -np.inf), (known[:-1] + known[1:]) / 2.0, known[-1]]
    tp = np.searchsorted(similar, cuts, side="right")
    fp = np.searchsorted(different, cuts, side="right")
    tpr, tnr = tp / len(similar), 1.0 - fp / len(different)
    if strategy == "accuracy":
        value: AnyArray = np.asarray(tp + len(different) - fp)
    elif strategy == "f_beta":
        check_number("beta", beta, above=0.0)
        value = np.asarray((1.0 + beta**2) * tp) / ((1.0 + beta**2) * tp + beta**2 * (len(similar) - tp) + fp)
    else:
        check_share("min_rate", min_rate)
        kept, wanted = (tnr, tpr) if strategy == "max_tpr" else (tpr, tnr)
        value = np.where(kept >= min_rate, wanted, -1.0)
    return float(cuts[int(np.argmax(value))])
