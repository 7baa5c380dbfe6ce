"""Checks before any work: the samples, the targets and their weights, the parameters, the folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_array,
    column_or_1d,
    validate_data,
)

from kernelweave import learners
from kernelweave._typing import AnyArray, Indices, Matrix, Vector
from kernelweave.bank import KernelBank, PrecomputedBank, Views
from kernelweave.bank.protocol import FittedKernels
from kernelweave.errors import IncompatiblePartsError
from kernelweave.learners import Learner
from kernelweave.views.same_rows import require_labels
from kernelweave.views.tables import (
    as_table,
    is_column_of_objects,
    is_pandas,
    is_sparse,
    is_table_of_objects,
    require_unique_names,
)

PRECOMPUTED = "precomputed"
# Targets of a learner, in words.
TARGETS = {"classes": "labels of classes", "real": "real targets", "none": "samples without targets"}
Fold: TypeAlias = tuple[Indices, Indices]


# -- samples


class FitsKernels(Protocol):
    """Anything that learns kernels from training samples."""

    def fit(self, X: Any) -> FittedKernels: ...


def as_bank(bank: Any) -> FitsKernels:
    """Return the bank a parameter stands for: None is the default bank, a string is 'precomputed'."""
    if bank is None:
        return KernelBank.default()
    if isinstance(bank, str):
        if bank != PRECOMPUTED:
            raise ValueError(f"bank must be a KernelBank or 'precomputed'; got the string {bank!r}.")
        return PrecomputedBank()
    if not hasattr(bank, "fit"):
        raise TypeError(
            f"bank must be a KernelBank or 'precomputed'; got {type(bank).__name__}: wrap kernels as "
            "KernelBank([kernel, ...])."
        )
    return bank  # type: ignore[no-any-return]


def is_precomputed(bank: Any) -> bool:
    """Tell whether samples arrive as kernel values."""
    return (isinstance(bank, str) and bank == PRECOMPUTED) or isinstance(bank, PrecomputedBank)


def check_input(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check the samples as far as their kind allows, and let scikit-learn remember columns and names."""
    if reset and hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_  # of an earlier fit; set again where this one has names
    if is_precomputed(estimator.bank):
        if reset:
            shape = np.shape(X[0] if isinstance(X, list | tuple) and X else X)
            estimator.n_features_in_ = shape[1] if len(shape) >= 2 else 0
        return X
    X = as_samples(X)
    if isinstance(X, Views):
        if reset:
            estimator.n_features_in_ = X.shape[1]
        return X
    if is_column_of_objects(X) or is_table_of_objects(X):
        X = as_table(X, "X")
        if not hasattr(X, "columns"):  # kernels say what they cannot read
            if reset:
                estimator.n_features_in_ = X.shape[1]
            return X
    if hasattr(X, "columns"):
        require_unique_names(X, "X")
        # pandas and polars frames keep their columns until the bank picks some
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    if (cells := as_cells(X)) is not None:
        validate_data(estimator, cells, reset=reset, skip_check_array=True)
        return cells
    finite: Any = "allow-nan" if getattr(estimator, "fills_gaps", False) else True
    return validate_data(
        estimator, X, reset=reset, dtype=np.float64, accept_sparse="csr", ensure_all_finite=finite
    )


def as_samples(X: Any) -> Any:
    """Return samples as estimators take them: a dict or a list of tables becomes ``Views``."""
    if isinstance(X, Mapping) and not is_sparse(X):  # one format of scipy is a dict
        return Views(X)
    if isinstance(X, list | tuple) and X and all(_is_table(table) for table in X):
        return Views({f"view{number}": table for number, table in enumerate(X)})
    return X


def _is_table(data: Any) -> bool:
    """Tell whether an object is a table by itself, and not a row of one."""
    return hasattr(data, "shape") and len(data.shape) == 2


def as_cells(X: Any) -> AnyArray | None:
    """Return an array, or lists, that hold words, dates or sets as an array; None where all are numbers."""
    if hasattr(X, "dtype"):
        values = np.asarray(X) if getattr(X, "ndim", 0) == 2 and X.dtype.kind in "OUSMm" else None
    else:
        values = _of_lists(X)
    if values is None or values.ndim != 2:
        return None
    if values.dtype.kind == "O" and all(isinstance(cell, Real | None) for cell in values.ravel().tolist()):
        return None
    return values


def _of_lists(X: Any) -> AnyArray | None:
    """Return lists of rows as an array, None where they are no table."""
    if not isinstance(X, list | tuple) or not X or not isinstance(X[0], list | tuple):
        return None
    try:
        if all(isinstance(cell, Real) for row in X for cell in row):
            return None
        return np.array([[*row] for row in X], dtype=object)
    except (TypeError, ValueError):
        return None


def require_same_rows(X: Any, y: Any) -> None:
    """Raise ValueError where X and y label their rows and the labels differ, or differ in order."""
    if getattr(y, "iloc", None) is not None:  # others have no labels
        tables = isinstance(X, Mapping) or (isinstance(X, list | tuple) and any(map(is_pandas, X)))
        require_labels(as_samples(X) if tables else X, y)


def as_one_array(X: Any) -> Any:
    """Return a list of kernel matrices as one array (rows, n_train, M), which can be split."""
    return np.stack(X, axis=2) if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2 else X


# -- targets and weights


def label_column(y: Any) -> AnyArray:
    """Return labels as one checked column."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def encode_labels(y: Any, n_samples: int) -> tuple[AnyArray, AnyArray]:
    """Return the sorted classes and, per sample, the index of its class."""
    y = label_column(y)
    check_classification_targets(y)
    classes, index = np.unique(y, return_inverse=True)
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


# -- parameters


def check_number(
    name: str, value: Any, *, above: float, below: float = float("inf"), optional: bool = False
) -> None:
    """Require a real number strictly between two others, or None where that is allowed."""
    if optional and value is None:
        return
    if not _is_real(value) or not above < float(value) < below:
        legal = (
            f"a number above {above:g}"
            if below == float("inf")
            else f"a number between {above:g} and {below:g}"
        )
        raise ValueError(f"{name} must be {legal}{' or None' if optional else ''}; got {value!r}.")


def check_from_zero(name: str, value: Any, *, below: float = float("inf")) -> None:
    """Require a real number that is zero or more, and below another."""
    if not _is_real(value) or not 0.0 <= float(value) < below:
        legal = "of at least 0" if below == float("inf") else f"from 0 to below {below:g}"
        raise ValueError(f"{name} must be a number {legal}; got {value!r}.")


def check_share(name: str, value: Any, *, positive: bool = False, optional: bool = False) -> None:
    """Require a number from 0 to 1, above 0 where asked, or None where that is allowed."""
    if optional and value is None:
        return
    if not _is_real(value) or not 0.0 <= float(value) <= 1.0 or (positive and float(value) == 0.0):
        legal = "above 0 and at most 1" if positive else "from 0 to 1"
        raise ValueError(f"{name} must be a number {legal}{' or None' if optional else ''}; got {value!r}.")


def check_count(name: str, value: Any, *, least: int = 1, optional: bool = False) -> None:
    """Require a whole number from ``least`` on, or None where that is allowed."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        either = "None or " if optional else ""
        raise ValueError(f"{name} must be {either}a whole number of at least {least}; got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Require one of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}; got {value!r}.")


def check_part(name: str, value: Any, kind: type, example: str) -> None:
    """Require an object of the right kind, not its class nor a word for it."""
    if isinstance(value, type) or not isinstance(value, kind):
        what = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise TypeError(f"{name} must be a {kind.__name__} such as {example}; got {what}.")


def check_learner(value: Any, targets: str, example: str) -> None:
    """Require a learner for such targets: "classes", "real" numbers or "none"."""
    check_part("learner", value, Learner, example)
    if targets not in value.learns_from:
        known = (getattr(learners, name) for name in learners.__all__)
        fitting = [one.__name__ for one in known if targets in getattr(one, "learns_from", ())]
        raise IncompatiblePartsError(
            f"{value!r} cannot learn from {TARGETS[targets]}: it is for {TARGETS[value.learns_from[0]]}. "
            f"Learners that can: {', '.join(fitting)}."
        )


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


# -- folds


def stratified_folds(cv: Any, index: AnyArray, groups: Any = None) -> list[Fold]:
    """Return the folds of a number, a splitter or pairs of indices; ``groups`` are for the splitter.

    They hold every sample out equally often: once, or as often as folds are repeated.
    """
    counts = np.bincount(index)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, a splitter or pairs of indices; got {cv!r}.")
        if counts.min() < 2:
            raise ValueError(
                f"Every class needs at least 2 samples to be held out in turn; one class has {counts.min()}."
            )
        splitter = StratifiedKFold(min(int(cv), int(counts.min())))
    else:
        splitter = check_cv(cv, index, classifier=True)
    folds = [
        (np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.zeros((index.size, 1)), index, groups)
    ]
    held = np.bincount(np.concatenate([test for _, test in folds]), minlength=index.size)
    times = max(1, int(np.median(held)))
    if (held != times).any():
        raise ValueError(
            "cv must hold every sample out, and all equally often; "
            f"{int((held != times).sum())} of {index.size} samples are held out never, or not as often as the others."
        )
    for number, (train, _) in enumerate(folds):
        seen = np.unique(index[train])
        if seen.size < counts.size:
            raise ValueError(
                f"Fold {number} trains on {seen.size} of {counts.size} classes; use a stratified splitter or "
                "fewer folds."
            )
    return folds


def mean_held_out(folds: Sequence[Fold], values: Sequence[AnyArray]) -> AnyArray:
    """Return the values of all samples from those of every fold's held-out ones; the mean over repeated folds."""
    held = np.concatenate([test for _, test in folds])
    found = np.concatenate(values)
    total = np.zeros((int(held.max()) + 1, *found.shape[1:]))
    np.add.at(total, held, found)
    counts = np.bincount(held)
    return np.asarray(total / np.maximum(counts, 1).reshape(-1, *(1,) * (found.ndim - 1)))
