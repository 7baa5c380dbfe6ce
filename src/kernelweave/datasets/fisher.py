"""The simulation of the multiple-kernel Fisher discriminant: many weak views of the same two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelweave._typing import Matrix, Vector
from kernelweave.bank import Views
from kernelweave.datasets.dataset import Dataset


def overlapping_gaussians(n_views: int = 20, n_samples: int = 100, random_state: Any = None) -> Dataset:
    """Draw views of two columns in which two Gaussians overlap, each view drawn independently.

    In every view and class the two coordinates of the mean are uniform between 1 and 2 and the covariance is
    AA' + I with A of standard normal entries. Half of the samples are of class +1. As many test samples of
    the same distributions are in ``extra["X_test"]`` and ``extra["y_test"]``.

    The paper leaves the covariances open: these give the error it reports for one kernel, 0.43.

    >>> from kernelweave.datasets import overlapping_gaussians
    >>> drawn = overlapping_gaussians(5, random_state=0)
    >>> drawn.X.shape, drawn.extra["X_test"].shape
    ((100, 10), (100, 10))
    """
    rng = check_random_state(random_state)
    y = np.repeat([1, -1], [n_samples // 2, n_samples - n_samples // 2])
    train, test = {}, {}
    for m in range(n_views):
        train[f"view{m}"], test[f"view{m}"] = _view(rng, y)
    return Dataset(
        "overlapping_gaussians", Views(train), y, {"X_test": Views(test), "y_test": y}, "two classes"
    )


def _view(rng: Any, y: Vector) -> tuple[Matrix, Matrix]:
    train, test = np.empty((len(y), 2)), np.empty((len(y), 2))
    for label in (1, -1):
        mean = rng.uniform(1.0, 2.0, size=2)
        A = rng.standard_normal((2, 2))
        factor = np.linalg.cholesky(A @ A.T + np.eye(2))
        for drawn in (train, test):
            inside = y == label
            drawn[inside] = mean + rng.standard_normal((int(inside.sum()), 2)) @ factor.T
    return train, test
