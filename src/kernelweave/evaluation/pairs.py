"""Verification: similar pairs should come before dissimilar ones when sorted by distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils.validation import assert_all_finite, column_or_1d

from kernelweave._typing import AnyArray, Vector


def check_distances(y: Any, distances: Any) -> tuple[AnyArray, Vector]:
    """Return labels ±1 of both kinds and one finite distance for each."""
    y, distances = column_or_1d(y), column_or_1d(distances)
    if len(y) != len(distances):
        raise ValueError(f"There are {len(y)} labels but {len(distances)} distances; they must agree.")
    assert_all_finite(distances, input_name="distances")
    if set(np.unique(y).tolist()) != {-1, 1}:
        raise ValueError(
            "y must hold +1 for similar and -1 for dissimilar pairs, both of them; got the values "
            f"{np.unique(y)[:5].tolist()}."
        )
    return y, np.asarray(distances, dtype=np.float64)


def pair_average_precision(y: Any, distances: Any) -> float:
    """Return the average precision of finding similar pairs by their small distances [Xu14, Sec. 5.5.2].

    Ties count as in scikit-learn: pairs at one distance are found together.

    >>> pair_average_precision([1, -1, 1, -1], [0.1, 0.2, 0.3, 0.4])
    0.833...
    """
    y, distances = check_distances(y, distances)
    return float(average_precision_score(y, -distances, pos_label=1))


def pair_roc_auc(y: Any, distances: Any) -> float:
    """Return the probability that a similar pair is nearer than a dissimilar one; ties count half.

    >>> pair_roc_auc([1, -1, 1, -1], [0.1, 0.2, 0.3, 0.4])
    0.75
    """
    y, distances = check_distances(y, distances)
    return float(roc_auc_score(y, -distances))
