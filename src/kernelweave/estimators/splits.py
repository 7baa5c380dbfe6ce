"""Folds in which every class is to be found on both sides."""

from __future__ import annotations

from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from kernelweave._typing import AnyArray, Indices

Fold: TypeAlias = tuple[Indices, Indices]


def stratified_folds(cv: Any, index: AnyArray) -> list[Fold]:
    """Return the folds of a number, a splitter or pairs of indices; they hold every sample out once."""
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
    folds = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.zeros((index.size, 1)), index)]
    held = np.bincount(np.concatenate([test for _, test in folds]), minlength=index.size)
    if (held != 1).any():
        raise ValueError(
            "cv must hold every sample out exactly once; "
            f"{int((held != 1).sum())} of {index.size} samples are held out never or more than once."
        )
    for number, (train, _) in enumerate(folds):
        seen = np.unique(index[train])
        if seen.size < counts.size:
            raise ValueError(
                f"Fold {number} trains on {seen.size} of {counts.size} classes; use a stratified splitter or "
                "fewer folds."
            )
    return folds
