"""Draws data sets whose distribution is published, and simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kernelweave._typing import Matrix, Vector
from kernelweave.bank import Views
from kernelweave.datasets.dataset import Dataset


def ringnorm(n_samples: int = 400, n_features: int = 20, random_state: Any = None) -> Dataset:
    """Draw Breiman's ringnorm: a wide Gaussian at 0 (+1) around a narrow one off the centre (−1).

    Class +1 is N(0, 4I), class −1 N(a·1, I) with a = 2/√d.

    >>> from kernelweave.datasets import ringnorm
    >>> ringnorm(100, random_state=0).X.shape
    (100, 20)
    """
    rng = check_random_state(random_state)
    y = np.where(rng.uniform(size=n_samples) < 0.5, 1, -1)
    X = rng.standard_normal((n_samples, n_features))
    X = np.where(y[:, None] > 0, 2.0 * X, X + 2.0 / np.sqrt(n_features))
    return Dataset("ringnorm", X, y)


def g241c(n_samples: int = 1500, random_state: Any = None) -> Dataset:
    """Draw the g241c of the semi-supervised learning book: two Gaussians, so the cluster assumption holds.

    Unit variance in 241 dimensions, centres 2.5 apart in a random direction, columns standardised.

    >>> from kernelweave.datasets import g241c
    >>> float(g241c(200, random_state=0).X.std(axis=0).max().round(6))
    1.0
    """
    rng = check_random_state(random_state)
    y = _balanced(n_samples)
    X = rng.standard_normal((n_samples, 241)) + 0.5 * 2.5 * y[:, None] * _direction(rng)
    return _standardised("g241c", X, y, rng)


def g241d(n_samples: int = 1500, random_state: Any = None) -> Dataset:
    """Draw the g241d of the same book: four Gaussians whose clusters mislead.

    The two of class +1 lie 6 apart; from each of them one of class −1 lies 2.5 off in a random direction.

    >>> from kernelweave.datasets import g241d
    >>> int(g241d(200, random_state=0).y.sum())
    0
    """
    rng = check_random_state(random_state)
    y = _balanced(n_samples)
    left, right = -3.0 * (apart := _direction(rng)), 3.0 * apart
    centres = {
        (1, 0): left,
        (1, 1): right,
        (-1, 0): left + 2.5 * _direction(rng),
        (-1, 1): right + 2.5 * _direction(rng),
    }
    side = (np.arange(n_samples) // 2) % 2
    X = rng.standard_normal((n_samples, 241))
    X += np.array([centres[label, which] for label, which in zip(y.tolist(), side.tolist(), strict=True)])
    return _standardised("g241d", X, y, rng)


def corrupted_views(
    n_samples: int = 60,
    n_views: int = 5,
    share: float = 0.35,
    distance: float = 3.0,
    random_state: Any = None,
) -> Dataset:
    """Draw views of two classes in which single entries belong to the other class.

    In every view of five columns the classes are unit Gaussians whose centres lie ``distance`` apart; a
    ``share`` of the (sample, view) entries is swapped for a draw of the opposite class, and
    ``extra["corrupted"]`` (n_samples, n_views) marks them.

    >>> from kernelweave.datasets import corrupted_views
    >>> bool(corrupted_views(random_state=0).extra["corrupted"].any())
    True
    """
    rng = check_random_state(random_state)
    y = _balanced(n_samples)
    corrupted = rng.uniform(size=(n_samples, n_views)) < share
    side = np.where(corrupted, -y[:, None], y[:, None])
    views = {}
    for m in range(n_views):
        centre = 0.5 * distance * _direction(rng, 5)
        views[f"view{m}"] = rng.standard_normal((n_samples, 5)) + side[:, [m]] * centre
    order = rng.permutation(n_samples)
    return Dataset("corrupted_views", Views(views)[order], y[order], {"corrupted": corrupted[order]})


def privileged_toy(n_samples: int = 200, n_noise: int = 10, random_state: Any = None) -> Dataset:
    """Draw samples whose noise is known while training: ``extra["privileged"]`` says how hard each one is.

    The label is the sign of a linear score; the columns show the score through noise whose size differs from
    sample to sample, and ``n_noise`` columns of nothing. The privileged columns are the clean score and the
    size of the noise.

    >>> from kernelweave.datasets import privileged_toy
    >>> privileged_toy(50, random_state=0).extra["privileged"].shape
    (50, 2)
    """
    rng = check_random_state(random_state)
    score = rng.standard_normal(n_samples)
    noise = rng.exponential(size=n_samples)
    X = score[:, None] + noise[:, None] * rng.standard_normal((n_samples, 2))
    X = np.column_stack([X, rng.standard_normal((n_samples, n_noise))])
    y = np.where(score > 0.0, 1, -1)
    return Dataset("privileged_toy", X, y, {"privileged": np.column_stack([score, noise])})


def with_noise_features(X: Matrix, ratio: float, random_state: Any = None) -> Matrix:
    """Return X with round(ratio · d) columns of standard Gaussian noise beside its d own.

    >>> import numpy as np
    >>> from kernelweave.datasets import with_noise_features
    >>> with_noise_features(np.zeros((3, 8)), 0.5, random_state=0).shape
    (3, 12)
    """
    rng = check_random_state(random_state)
    return np.column_stack([X, rng.standard_normal((len(X), round(ratio * X.shape[1])))])


def overlapping_gaussians(n_views: int = 20, n_samples: int = 100, random_state: Any = None) -> Dataset:
    """Draw the simulation of [Yan09]: views in which two Gaussians overlap, drawn independently.

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
        train[f"view{m}"], test[f"view{m}"] = _gaussian_view(rng, y)
    return Dataset(
        "overlapping_gaussians", Views(train), y, {"X_test": Views(test), "y_test": y}, "two classes"
    )


def _balanced(n_samples: int) -> Vector:
    return np.where(np.arange(n_samples) % 2 == 0, 1, -1)


def _direction(rng: Any, n_features: int = 241) -> Vector:
    direction = rng.standard_normal(n_features)
    return np.asarray(direction / np.linalg.norm(direction))


def _standardised(name: str, X: Matrix, y: Vector, rng: Any) -> Dataset:
    order = rng.permutation(len(y))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Dataset(name, X[order], y[order])


def _gaussian_view(rng: Any, y: Vector) -> tuple[Matrix, Matrix]:
    train, test = np.empty((len(y), 2)), np.empty((len(y), 2))
    for label in (1, -1):
        mean = rng.uniform(1.0, 2.0, size=2)
        A = rng.standard_normal((2, 2))
        factor = np.linalg.cholesky(A @ A.T + np.eye(2))
        for drawn in (train, test):
            inside = y == label
            drawn[inside] = mean + rng.standard_normal((int(inside.sum()), 2)) @ factor.T
    return train, test
