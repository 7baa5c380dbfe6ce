"""Decision values of models that share a bank, in one pass over the kernels of the new samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.cross import scores
from kernelweave.estimators.inputs import check_input


def decision_values(models: Sequence[Any], X: Any) -> list[AnyArray]:
    """Return what ``decision_function`` of each model says about X, per sample and class."""
    values = _linear(models, [model.dual_coef_ for model in models], X)
    return [model._shaped(part + model.intercept_) for model, part in zip(models, values, strict=True)]


@contextmanager
def looking_at(models: Sequence[Any], X: Any) -> Iterator[None]:
    """Compute the decision values of all models in one pass; they answer for X from memory meanwhile."""
    for model, values in zip(models, decision_values(models, X), strict=True):
        model._known = X, values
    try:
        yield
    finally:
        for model in models:
            del model._known


def values_along(model: Any, X: Any, coef: Matrix, intercept: Vector) -> Matrix:
    """Return the values of other combinations of a model's support, one column per row of ``coef``."""
    return np.asarray(_linear([model], [coef], X)[0] + intercept)


def _linear(models: Sequence[Any], coefs: Sequence[Matrix], X: Any) -> list[Matrix]:
    """Return Σ_j k(x, x_j) coef_j under the weights of each model, all models in one pass."""
    first = models[0]
    X = check_input(first, X, reset=False)
    counts = [len(coef) for coef in coefs]
    ends = np.cumsum(counts)
    stacked = np.zeros((ends[-1], first.bank_.n_samples))
    eta = np.empty((ends[-1], len(first.bank_)))
    for model, coef, end, count in zip(models, coefs, ends, counts, strict=True):
        stacked[end - count : end, model.support_] = coef
        eta[end - count : end] = model.kernel_weights_
    columns = np.flatnonzero(stacked.any(axis=0))
    values = scores(first.bank_, X, eta, stacked[:, columns], columns)
    return np.split(values, ends[:-1], axis=1)
