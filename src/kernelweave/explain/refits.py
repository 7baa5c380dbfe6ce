"""A model fitted again: on some rows, with some of its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
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
    prefix, which = parameter_prefix(model), list(kernels)
    params = model.get_params()
    bank, geometry = params[f"{prefix}bank"], params.get(f"{prefix}geometry")
    fewer = clone(model)
    if geometry is not None:
        fewer.set_params(**{f"{prefix}geometry": geometry.of_kernels(np.array(which, dtype=np.intp))})
    if is_precomputed(bank):
        return fewer, as_one_array(X)[:, :, which]
    return fewer.set_params(
        **{f"{prefix}bank": ChosenBank(named_bank(model), [str(names[m]) for m in which])}
    ), X


def named_bank(model: Any) -> Any:
    """Return the bank of a model, or of the end of a pipeline or search; its default where none is named."""
    while not hasattr(model, "part") and not hasattr(model, "bank"):
        model = model.steps[-1][1] if hasattr(model, "steps") else model.estimator
    bank = model.part("bank") if "bank" in getattr(model, "defaults", ()) else model.bank
    return bank if is_precomputed(bank) else as_bank(bank)


def with_chosen_kernels(model: Any, fitted: Any) -> Any:
    """Return the model with the kernels, weights and cost that its search has averaged; others as they are.

    ``fitted`` is the model as fitted: positions among its kernels are those of the returned one.
    """
    last, _ = unwrap(fitted)
    return with_last_step(model, clone(last.best_estimator_)) if getattr(last, "averages", False) else model


def with_last_step(model: Any, last: Any) -> Any:
    """Return the pipeline of a model with another last step, or that step alone if there is no pipeline."""
    if not isinstance(model, Pipeline):
        return last
    before = [(name, clone(step) if hasattr(step, "get_params") else step) for name, step in model.steps[:-1]]
    return Pipeline([*before, (model.steps[-1][0], last)])


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
