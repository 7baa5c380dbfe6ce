"""A model fitted again: on some rows, with some of its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.metaestimators import _safe_split

from kernelweave._typing import AnyArray, Indices
from kernelweave.bank.protocol import n_rows
from kernelweave.bank.subset import ChosenBank
from kernelweave.estimators.validation import as_bank, as_one_array, is_precomputed
from kernelweave.explain.contributions import unwrap
from kernelweave.weak_labels.semi_supervised import SemiSupervisedMKLClassifier, is_unlabelled

Split = tuple[Indices, Indices]


def parameter_prefix(model: Any) -> str:
    """Return the prefix under which a model, pipeline or search has the parameters of its kernel model."""
    if hasattr(model, "steps"):
        name, last = model.steps[-1]
        return f"{name}__{parameter_prefix(last)}"
    if hasattr(model, "estimator") and "bank" not in model.get_params(deep=False):
        return f"estimator__{parameter_prefix(model.estimator)}"
    return ""


def has_bank(model: Any) -> bool:
    """Return whether a model, or the end of a pipeline or search, is made with a bank of kernels."""
    return hasattr(model, "get_params") and f"{parameter_prefix(model)}bank" in model.get_params()


def with_kernels(model: Any, X: Any, kernels: Sequence[int], names: Sequence[str]) -> tuple[Any, Any]:
    """Return an unfitted model with some of its kernels only, and the samples as it takes them.

    Kernels of a bank are known by their names: on some of the samples it may have fewer, where they follow from these.
    """
    name = f"{parameter_prefix(model)}bank"
    bank = model.get_params()[name]
    if is_precomputed(bank):
        return clone(model), as_one_array(X)[:, :, list(kernels)]
    return clone(model).set_params(**{name: ChosenBank(as_bank(bank), [str(names[m]) for m in kernels])}), X


def unlabelled_rows(model: Any, y: AnyArray) -> AnyArray:
    """Return a mask of the rows without a label, where the model learns from such rows."""
    semi_supervised = isinstance(unwrap(model)[0], SemiSupervisedMKLClassifier)
    return is_unlabelled(y) if semi_supervised else np.zeros(len(y), dtype=bool)


def cross_validation_splits(model: Any, X: Any, y: Any, folds: int, random_state: Any) -> list[Split]:
    """Return the splits of a cross-validation, each class in every fold; a rare class means fewer folds.

    Rows without a label are always trained on and never tested.
    """
    y = np.asarray(y)
    if len(y) != n_rows(X):
        raise ValueError(f"X has {n_rows(X)} rows and y has {len(y)}; they must agree.")
    without = unlabelled_rows(model, y)
    labelled, others = np.flatnonzero(~without), np.flatnonzero(without)
    if is_regressor(model) or y.ndim == 2:  # numbers, or several labels per sample
        splitter: Any = KFold(max(min(folds, len(y) // 2), 2), shuffle=True, random_state=random_state)
    else:
        counts = np.unique(y[labelled], return_counts=True)[1]
        if counts.min() < 2:
            raise ValueError("Cross-validation needs two samples or more of every class.")
        splitter = StratifiedKFold(min(folds, int(counts.min())), shuffle=True, random_state=random_state)
    return [
        (np.sort(np.concatenate([labelled[train], others])), labelled[test])
        for train, test in splitter.split(np.zeros(len(labelled)), y[labelled])
    ]


def train_test_data(model: Any, X: Any, y: Any, split: Split) -> tuple[Any, AnyArray, Any, AnyArray]:
    """Return X_train, y_train, X_test, y_test of a split; kernel matrices are cut in rows and columns."""
    X, (train, test) = as_one_array(X), split
    X_train, y_train = _safe_split(model, X, y, train)
    X_test, y_test = _safe_split(model, X, y, test, train)
    return X_train, y_train, X_test, y_test


def held_out_scores(model: Any, X: Any, y: Any, splits: Sequence[Split]) -> list[float]:
    """Return the score on every fold of the model fitted to the others."""
    scores = []
    for split in splits:
        X_train, y_train, X_test, y_test = train_test_data(model, X, y, split)
        scores.append(float(clone(model).fit(X_train, y_train).score(X_test, y_test)))
    return scores
