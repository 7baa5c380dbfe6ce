"""Targets of classifiers beyond one label out of two: several labels per sample, and classes in pairs."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.multiclass import _ovr_decision_function, type_of_target

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.estimators.validation import checked_weights

# -- several labels per sample


def is_multilabel(y: Any) -> bool:
    """Tell whether y is a matrix of indicators: one column of 0 and 1 per label."""
    shape = y.shape if hasattr(y, "shape") else _shape_of_lists(y)
    return len(shape) == 2 and shape[1] > 1 and bool(type_of_target(y) == "multilabel-indicator")


def _shape_of_lists(y: Any) -> tuple[int, ...]:
    rows = (
        isinstance(y, list | tuple)
        and len(y) > 0
        and all(isinstance(r, list | tuple | np.ndarray) for r in y)
    )
    return (len(y), len(y[0])) if rows and len({len(row) for row in y}) == 1 else ()


def indicators(y: Any) -> AnyArray:
    """Return a matrix of indicators as a dense array of whole numbers."""
    return np.asarray(y.toarray() if hasattr(y, "toarray") else y).astype(np.int64)


def encode_indicators(
    y: Any, n_samples: int, sample_weight: Any, class_weight: Any
) -> tuple[Matrix, Vector, AnyArray]:
    """Return one column of ±1 per label, the weights of the samples, and the numbers of the labels."""
    Y = indicators(y)
    if len(Y) != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {len(Y)} rows of labels; they must agree.")
    if class_weight is not None:
        raise ValueError(
            f"class_weight={class_weight!r} is for one label per sample, but y has {Y.shape[1]} columns of labels; "
            "OneVsRestClassifier(model) of scikit-learn weighs every label by itself."
        )
    weight = checked_weights(sample_weight, Y)
    for label, column in enumerate(Y.T):
        found = np.unique(column[weight > 0.0])
        if found.size < 2:
            raise ValueError(
                f"Label {label} is {found.tolist()} in all samples: there is nothing to learn about it. Leave its "
                "column out, use folds in which every label is there and is not, or OneVsRestClassifier(model) of "
                "scikit-learn, which answers with a constant."
            )
    return np.where(Y > 0, 1.0, -1.0), weight, np.arange(Y.shape[1])


# -- classes in pairs


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return all pairs of classes, the first before the second."""
    return list(combinations(range(n_classes), 2))


def votes(values: Matrix, n_classes: int) -> Matrix:
    """Return one score per class from one value per pair, above zero for the second of the two.

    The votes of the pairs; ties are broken by the sums of the values, as scikit-learn does.
    """
    return np.asarray(_ovr_decision_function(values > 0.0, values, n_classes))


def class_indices(Y: AnyArray) -> AnyArray:
    """Return the place of every sample's class among the classes, from ±1 in one column or one per class."""
    binary = Y.ndim == 1 or Y.shape[1] == 1
    return np.asarray((Y.ravel() > 0).astype(int) if binary else Y.argmax(axis=1))
