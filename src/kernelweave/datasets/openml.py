"""The same data sets from OpenML, for those with a network."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import fetch_openml

from kernelweave._typing import AnyArray
from kernelweave.datasets.catalogue import CATALOGUE, check, entry
from kernelweave.datasets.dataset import Dataset
from kernelweave.errors import DataError


def fetch(name: str, **options: Any) -> Dataset:
    """Return a data set from OpenML, checked for shape and class counts; labels are ±1 as in the files.

    ``options`` go to scikit-learn's ``fetch_openml``: data_home, cache, n_retries.

    >>> from kernelweave.datasets import fetch
    >>> fetch("musk1")
    Traceback (most recent call last):
        ...
    kernelweave.errors.DataError: 'musk1' is not taken from OpenML; these are: australian, banana, ...
    """
    known = entry(name)
    if known.openml is None:
        there = ", ".join(sorted(key for key, value in CATALOGUE.items() if value.openml))
        raise DataError(f"{name!r} is not taken from OpenML; these are: {there}.")
    found = fetch_openml(
        name=known.openml[0], version=known.openml[1], as_frame=False, parser="liac-arff", **options
    )
    X = np.asarray(found.data, dtype=float)
    y = _signs(np.asarray(found.target).astype(str), known.counts)
    X = X[:, np.ptp(X, axis=0) > 0.0] if X.shape[1] > known.n_features else X
    check(name, known, X, y)
    return Dataset(name, X, y, notes=f"OpenML {known.openml[0]} version {known.openml[1]}")


def _signs(labels: AnyArray, counts: tuple[int, ...]) -> AnyArray:
    """Return ±1 for labels of any names: −1 for the class that has the first of the counts."""
    values, found = np.unique(labels, return_counts=True)
    negative = values[np.argmin(np.abs(found - counts[0]))]
    return np.where(labels == negative, -1, 1).astype(np.int8)
