"""Checks before any work: the samples, the targets and their weights, the parameters, the folds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import date
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
from kernelweave.bank.missing_views import KernelsWithMissingViews
from kernelweave.bank.protocol import FittedKernels
from kernelweave.errors import IncompatiblePartsError
from kernelweave.learners import Learner
from kernelweave.views.column_values import is_empty, reads_as_number
from kernelweave.views.same_rows import require_labels
from kernelweave.views.tables import (
    as_table,
    column_names,
    is_arrow,
    is_column_of_objects,
    is_pandas,
    is_sparse,
    is_table_of_objects,
    require_unique_names,
    take_columns,
)

PRECOMPUTED = "precomputed"
# Targets of a learner, in words.
TARGETS = {"classes": "labels of classes", "real": "real targets", "none": "samples without targets"}
# Largest size of weights and targets, and the inverse of the smallest: objectives hold their squares.
MOST = 1e100
# Kinds of labels that are of several types.
KINDS: dict[str, type] = {"number": Real, "str": str}
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
    for name in ("feature_names_in_", "column_labels_") if reset else ():
        vars(estimator).pop(name, None)  # of an earlier fit; set again where this one has names
    if is_precomputed(estimator.bank):
        if reset:
            shape = np.shape(X[0] if isinstance(X, list | tuple) and X else X)
            estimator.n_features_in_ = shape[1] if len(shape) >= 2 else 0
        return X
    X = as_samples(X)
    if isinstance(X, Views):
        if reset:
            estimator.n_features_in_ = X.shape[1]
        return X if reset else with_fitted_views(estimator, X)
    if is_column_of_objects(X) or is_table_of_objects(X):
        X = as_table(X, "X")
        if not hasattr(X, "columns"):  # kernels say what they cannot read
            if reset:
                estimator.n_features_in_ = X.shape[1]
            return X
    if hasattr(X, "columns"):
        require_unique_names(X, "X")
        X = X if reset else with_fitted_columns(estimator, X)
        if (
            reset and column_names(X) is None and is_pandas(X)
        ):  # numbers, which scikit-learn takes for no names
            estimator.column_labels_ = X.columns.tolist()
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


def keep_labels(estimator: Any, X: Any) -> None:
    """Keep the labels of columns that are numbers, which scikit-learn takes for no names."""
    if column_names(X) is None and is_pandas(X):
        estimator.column_labels_ = X.columns.tolist()


def with_fitted_columns(estimator: Any, X: Any) -> Any:
    """Return a frame with its columns in the order of the fit; one that lacks some, or has others, is refused."""
    known = list(getattr(estimator, "feature_names_in_", getattr(estimator, "column_labels_", ())))
    names = list(X.columns)
    if not known or not names or names == known or isinstance(names[0], str) != isinstance(known[0], str):
        return X
    place = {name: position for position, name in enumerate(names)}
    lacking = [name for name in known if name not in place]
    others = sorted(place.keys() - set(known), key=str)
    if lacking or others:
        lacks = f"lacks {_listed(lacking)}, which the model was fitted with" if lacking else ""
        more = f"has {_listed(others)}, which the model was not fitted with" if others else ""
        advice = (
            "add such columns, empty (NaN) where nothing is known"
            if lacking
            else "pass X[model.feature_names_in_]"
        )
        raise ValueError(f"X {', and '.join(filter(None, [lacks, more]))}; {advice}.")
    return take_columns(X, np.array([place[name] for name in known], dtype=np.intp))


def with_fitted_views(estimator: Any, X: Views) -> Views:
    """Return Views in which views of the fit that are not there are missing ones, where the kernels can do without."""
    bank = getattr(estimator, "bank_", getattr(getattr(estimator, "features_", None), "kernels", None))
    if not isinstance(bank, KernelsWithMissingViews):
        return X
    given = X.names
    X, absent = bank.with_all_views(X)
    eta = np.atleast_2d(getattr(estimator, "kernel_weights_", np.ones(len(bank))))
    counting = [name for name, kernels in absent.items() if eta[:, kernels].any()]
    if counting:
        warnings.warn(
            f"X has no view {', '.join(map(repr, counting))}, which the model was fitted with: all samples are taken "
            f"to lack it; X has {', '.join(map(repr, given))}.",
            UserWarning,
            stacklevel=2,
        )
    return X


def _listed(names: Sequence[Any], most: int = 5) -> str:
    """Return names of columns in words, the first few of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"the column{'s' * (len(names) > 1)} {', '.join(map(repr, names[:most]))}{more}"


def as_samples(X: Any) -> Any:
    """Return samples as estimators take them: a dict or a list of tables becomes ``Views``."""
    if is_arrow(X):
        return as_table(X, "X")
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        raise TypeError("X is a list of dicts; pass a table: pandas.DataFrame(X).")
    if isinstance(X, Mapping) and not is_sparse(X):  # one format of scipy is a dict
        for name, table in X.items():
            if np.ndim(table) == 1 and not is_column_of_objects(table):
                raise ValueError(
                    f"A dict is taken for several tables, but {name!r} is one column of numbers; pass one table, "
                    "pandas.DataFrame(X), or columns as tables with .reshape(-1, 1)."
                )
        return Views(X)
    if isinstance(X, list | tuple) and X and all(_is_table(table) for table in X):
        return Views({f"view{number}": table for number, table in enumerate(X)})
    return X


def _is_table(data: Any) -> bool:
    """Tell whether an object is a table by itself, and not a row of one."""
    return hasattr(data, "shape") and len(data.shape) == 2


def as_cells(X: Any) -> AnyArray | None:
    """Return an array of objects, or lists, some of which are no numbers, as an array; None where all are."""
    if hasattr(X, "dtype"):
        values = np.asarray(X) if getattr(X, "ndim", 0) == 2 and X.dtype.kind in "OUSMm" else None
    else:
        values = _of_lists(X)
    if values is None or values.ndim != 2:
        return None
    if values.dtype.kind == "O" and all(map(_is_number, values.ravel().tolist())):
        return None
    return values


def _is_number(cell: Any) -> bool:
    """Tell whether a cell is a number or empty; true and false are not: beside numbers they are encoded otherwise."""
    return isinstance(cell, Real | None) and not isinstance(cell, bool)


def _of_lists(X: Any) -> AnyArray | None:
    """Return lists of rows as an array, None where they are no table."""
    if not isinstance(X, list | tuple) or not X or not isinstance(X[0], list | tuple):
        return None
    try:
        if all(cell is not None and _is_number(cell) for row in X for cell in row):
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


def label_column(y: Any, *, one_type: bool = True) -> AnyArray:
    """Return labels as one checked column, all of one type unless that is checked elsewhere."""
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    if one_type:  # before lists of words and others become text throughout
        require_one_type(np.asarray(y, dtype=object if isinstance(y, list | tuple) else None))
    y = column_or_1d(y, warn=True)
    assert_all_finite(y, input_name="y")
    return np.asarray(y)


def require_one_type(labels: AnyArray, name: str = "y") -> None:
    """Raise ValueError where labels cannot be put in order: words among numbers, or none at all."""
    if labels.dtype.kind != "O" or labels.ndim > 2 or labels.shape[1:] not in ((), (1,)):
        return
    kinds: dict[str, int] = {}
    for row, label in enumerate(labels.ravel()):
        if is_empty(label):
            raise ValueError(f"{name} has no label in row {row} ({label!r}); leave rows without a label out.")
        kind = next((name for name, of in KINDS.items() if isinstance(label, of)), type(label).__name__)
        kinds.setdefault(kind, row)
    if len(kinds) > 1:
        (one, first), (other, second), *_ = kinds.items()
        raise ValueError(
            f"{name} holds labels of different types, {labels.flat[first]!r} ({one}) in row {first} and "
            f"{labels.flat[second]!r} ({other}) in row {second}; make all of them text, with {name}.astype(str)."
        )


def require_classes(y: AnyArray) -> None:
    """Raise ValueError where labels are real numbers."""
    with np.errstate(invalid="ignore"):  # the largest are no whole numbers
        check_classification_targets(y)


def encode_labels(y: Any, n_samples: int) -> tuple[AnyArray, AnyArray]:
    """Return the sorted classes and, per sample, the index of its class."""
    y = label_column(y)
    require_classes(y)
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
    classes = np.asarray(classes)
    require_one_type(classes, "classes")
    found = np.unique(classes)
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
    weight = checked_weights(sample_weight, index)
    counts = np.bincount(index, minlength=classes.size)
    weight = weight * class_factors(class_weight, classes, counts)[index]
    totals = np.bincount(index, weights=weight, minlength=classes.size)
    if all_classes and (totals <= 0.0).any():
        empty = classes[totals <= 0.0].tolist()
        raise ValueError(f"Every class needs some weight, but the weights of classes {empty} sum to 0.")
    return require_range(weight, "The weight of sample")


def checked_weights(sample_weight: Any, samples: Any) -> Vector:
    """Return one weight per sample, 1 where none are given: finite, not negative, and of a size to compute with."""
    weight = _check_sample_weight(sample_weight, samples, dtype=np.float64, ensure_non_negative=True)
    return require_range(np.asarray(weight, dtype=np.float64), "The weight of sample")


def require_range(values: AnyArray, what: str) -> AnyArray:
    """Raise ValueError where numbers other than 0 are so large or small that their powers leave float64."""
    size = np.abs(values)
    wrong = (size > MOST) | ((size < 1.0 / MOST) & (size > 0.0))
    if wrong.any():
        place = np.argwhere(wrong)[0]
        raise ValueError(
            f"{what} {place[0]} is {values[tuple(place)]:g}; numbers other than 0 have to be between "
            f"{1.0 / MOST:g} and {MOST:g} in size: multiply all of them by one factor."
        )
    return values


def real_targets(y: Any, n_samples: int) -> Matrix:
    """Return real targets, one column each."""
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    Y = require_range(_numbers(y), "The target of sample")
    if Y.shape[0] != n_samples:
        raise ValueError(f"X has {n_samples} samples but y has {Y.shape[0]} targets; they must agree.")
    if Y.ndim > 2:
        raise ValueError(f"y must have one column per target, received shape {Y.shape}.")
    return np.ascontiguousarray(Y.reshape(n_samples, -1))


def _numbers(y: Any) -> AnyArray:
    """Return real targets as an array, or name the first that is no number."""
    given = np.asarray(y)
    if given.dtype.kind in "mM" or (
        given.dtype.kind == "O" and given.size and isinstance(given.flat[0], date)
    ):
        raise ValueError("y holds dates or times; pass numbers, such as the days since the first of them.")
    try:
        return np.asarray(check_array(y, dtype=np.float64, ensure_2d=False, input_name="y"))
    except (TypeError, ValueError):
        for place, value in np.ndenumerate(given) if given.dtype.kind in "OUS" else ():
            if not isinstance(value, Real) and not (isinstance(value, str) and reads_as_number(value)):
                raise ValueError(
                    f"The target of sample {place[0]} is {value!r}, which is no number; pass numbers, or take "
                    "a classifier."
                ) from None
        raise


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
