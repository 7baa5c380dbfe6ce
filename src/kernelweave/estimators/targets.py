"""Labels and weights as the solvers want them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, check_array, column_or_1d

from kernelweave._typing import AnyArray, Matrix, Vector

# More classes than this are looked at closely: beyond 20 samples they may be half as many, and no classes.
PLAINLY = 10
# Numbers from here on are whole whatever they are.
WHOLE = 2.0**53


def label_column(y: Any) -> AnyArray:
    """Return labels as one checked column."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    if _is_plain(y):
        return y  # type: ignore[no-any-return]
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def _is_plain(y: Any) -> bool:
    """Tell of most labels at once that they are classes: a column of whole numbers."""
    if type(y) is not np.ndarray or y.ndim != 1 or y.size == 0:
        return False
    if y.dtype != np.float64:
        return y.dtype.kind in "biu"
    return bool((y == np.rint(y)).all() and (np.abs(y) < WHOLE).all())


def encode_labels(y: Any, n_samples: int) -> tuple[AnyArray, AnyArray]:
    """Return the sorted classes and, per sample, the index of its class."""
    y = label_column(y)
    plain = _is_plain(y)
    if not plain:
        check_classification_targets(y)
    classes, index = np.unique(y, return_inverse=True)
    if plain and classes.size > PLAINLY:
        check_classification_targets(y)
    if y.shape[0] != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {y.shape[0]} labels; they must agree.")
    if classes.size < 2:
        raise ValueError(
            f"The classifier needs samples of at least 2 classes, but y has 1 class only: {classes.tolist()}."
        )
    return classes, index


def signs(index: AnyArray, n_classes: int) -> Matrix:
    """Return one column of ±1 per binary problem: one for two classes, else one per class."""
    if n_classes == 2:
        return np.where(index == 1, 1.0, -1.0)[:, None]
    return np.where(index[:, None] == np.arange(n_classes), 1.0, -1.0)


def labels_among(y: Any, classes: AnyArray, n_samples: int) -> AnyArray:
    """Return per sample the place of its label among the classes."""
    y = label_column(y)
    if y.shape[0] != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {y.shape[0]} labels; they must agree.")
    unknown = sorted(set(np.unique(y).tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ValueError(
            f"The labels {unknown} are not among the classes {classes.tolist()} of the first call; name all "
            "labels there, in classes=."
        )
    return np.asarray(np.searchsorted(classes, y))


def named_classes(classes: Any) -> AnyArray:
    """Return the classes of a stream, which have to be named before all of them were seen."""
    if classes is None:
        raise ValueError("The first call of partial_fit needs classes=, the labels that any batch may hold.")
    found = np.unique(np.asarray(classes))
    if found.size < 2:
        raise ValueError(
            f"The classifier needs at least 2 classes, but classes names 1 class only: {found.tolist()}."
        )
    return found


def class_factors(class_weight: Any, classes: AnyArray, counts: AnyArray | None = None) -> Vector:
    """Return the factor of each class, checked; "balanced" needs to know how often each was seen."""
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced" and counts is not None:
        return np.asarray(counts.sum() / (classes.size * np.maximum(counts, 1.0)))
    if not isinstance(class_weight, Mapping):
        balanced = '"balanced", ' if counts is not None else ""
        why = "" if counts is not None else " in a stream, whose frequencies are not known"
        raise ValueError(
            f"class_weight must be {balanced}a dict of class to factor, or None{why}; got {class_weight!r}."
        )
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise ValueError(f"class_weight names the classes {unknown}, but the classes of y are {known}.")
    for label, factor in class_weight.items():
        if not isinstance(factor, Real) or not 0.0 <= float(factor) < float("inf"):
            raise ValueError(
                f"class_weight needs factors that are finite and not negative; got {factor!r} for the class "
                f"{label!r}."
            )
    return np.array([float(class_weight.get(label, 1.0)) for label in known])


def sample_weights(
    sample_weight: Any, class_weight: Any, classes: AnyArray, index: AnyArray, *, all_classes: bool = True
) -> Vector:
    """Return the product of sample and class weights, checked to leave every class something."""
    weight = _check_sample_weight(sample_weight, index, dtype=np.float64, ensure_non_negative=True)
    counts = np.bincount(index, minlength=classes.size)
    weight = weight * class_factors(class_weight, classes, counts)[index]
    totals = np.bincount(index, weights=weight, minlength=classes.size)
    if all_classes and (totals <= 0.0).any():
        empty = classes[totals <= 0.0].tolist()
        raise ValueError(f"Every class needs some weight, but the weights of classes {empty} sum to 0.")
    return np.asarray(weight, dtype=np.float64)


def real_targets(y: Any, n_samples: int) -> Matrix:
    """Return real targets, one column each."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    Y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    if Y.shape[0] != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {Y.shape[0]} targets; they must agree.")
    if Y.ndim > 2:
        raise ValueError(f"y must have one column per target, received shape {Y.shape}.")
    return np.ascontiguousarray(Y.reshape(n_samples, -1))


def plain_weights(sample_weight: Any, Y: Matrix) -> Vector:
    """Return the sample weights of a problem without classes."""
    weight = _check_sample_weight(sample_weight, Y, dtype=np.float64, ensure_non_negative=True)
    return np.asarray(weight, dtype=np.float64)
