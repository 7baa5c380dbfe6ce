"""Decision values of models that share a bank, in one pass over the kernels of the new samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray
from kernelweave.bank.cross import scores
from kernelweave.estimators.inputs import check_input


def decision_values(models: Sequence[Any], X: Any) -> list[AnyArray]:
    """Return what ``decision_function`` of each model says about X, per sample and class."""
    first = models[0]
    X = check_input(first, X, reset=False)
    counts = [len(model.dual_coef_) for model in models]
    ends = np.cumsum(counts)
    coef = np.zeros((ends[-1], first.bank_.n_samples))
    eta = np.empty((ends[-1], len(first.bank_)))
    for model, end, count in zip(models, ends, counts, strict=True):
        coef[end - count : end, model.support_] = model.dual_coef_
        eta[end - count : end] = model.kernel_weights_
    columns = np.flatnonzero(coef.any(axis=0))
    values = scores(first.bank_, X, eta, coef[:, columns], columns)
    return [
        model._shaped(part + model.intercept_)
        for model, part in zip(models, np.split(values, ends[:-1], axis=1), strict=True)
    ]
