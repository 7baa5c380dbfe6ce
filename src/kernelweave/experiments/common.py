"""What several studies share: standardising with training statistics, timing, expected warnings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kernelweave._typing import Indices, Matrix, Vector
from kernelweave.bank import Views
from kernelweave.datasets import Dataset


def column_scales(X: Matrix) -> Vector:
    """Return the standard deviation of every column, or 1 where it is constant, to divide by."""
    deviation = X.std(axis=0)
    return np.where(deviation > 0.0, deviation, 1.0)


def standardised(X: Matrix, train: Indices) -> Matrix:
    """Return columns of mean 0 and deviation 1 on the training rows; test rows do not enter."""
    return np.asarray((X - X[train].mean(axis=0)) / column_scales(X[train]))


def standardised_views(X: Views, train: Indices) -> Views:
    """Return views whose columns have mean 0 and deviation 1 on the training rows."""
    return Views({name: standardised(np.asarray(table, dtype=float), train) for name, table in X.items()})


def view_named(dataset: Dataset, name: str) -> Matrix:
    """Return a view of a data set: its table ("X"), one of its extra arrays, or one of its views."""
    if name == "X":
        return np.asarray(dataset.X, dtype=float)
    return np.asarray(dataset.extra[name] if name in dataset.extra else dataset.X[name], dtype=float)


@contextmanager
def convergence_warnings_ignored() -> Iterator[None]:
    """Fit without warnings of a gap that is still open: a study records the gap it reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and the processor seconds it takes."""
    start = time.process_time()
    return call(), time.process_time() - start
