"""Weights first, then the machine: alignment, EasyMKL, heuristics and LP-beta beside learnt and even weights.

Every method sees the same splits, and its one parameter is chosen inside the training part. The first table
has as many views of pure noise as there are real ones: that is where weights can matter.
"""

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.preprocessing import scale

from kernelweave import KernelBank, Views, presets
from kernelweave.kernels import Gaussian, Linear

BANK = KernelBank.per_view([Gaussian(), Gaussian(scale=4.0), Linear()])
COSTS = {"learner__C": [1.0, 10.0]}
METHODS = {
    "average kernel": (presets.average_kernel(BANK, tol=1e-3), COSTS),
    "SimpleMKL": (presets.simple_mkl(BANK, tol=1e-3), COSTS),
    "ALIGNF": (presets.alignf(BANK), COSTS),
    "align": (presets.align(BANK), COSTS),
    "KTA": (presets.kta(BANK), COSTS),
    "EasyMKL": (presets.easy_mkl(BANK), {"lam": [0.1, 0.5]}),
    "FHeuristic": (presets.f_heuristic(BANK), COSTS),
    "PWMK": (presets.pwmk(BANK, cv=3), COSTS),
    "LP-beta": (presets.lp_beta(BANK, cv=3), COSTS),
}


def compare(views, y, methods, n_splits=4, n_train=100):
    """Return the test accuracy of every method on every split, its parameter tuned on the training part."""
    splits = StratifiedShuffleSplit(n_splits, train_size=n_train, random_state=0)
    scores = {name: [] for name in methods}
    for train, test in splits.split(np.zeros(len(y)), y):
        for name, (model, grid) in methods.items():
            search = GridSearchCV(clone(model), grid, cv=3).fit(views[train], y[train])
            scores[name].append(search.score(views[test], y[test]))
    return {name: np.array(found) for name, found in scores.items()}


def with_noise(views, rng):
    """Return the views and as many of the same shape in which there is nothing."""
    noise = {f"noise {name}": rng.normal(size=table.shape) for name, table in views.items()}
    return Views(dict(views.items()) | noise)


def table(title, scores):
    """Print mean accuracies, and the difference to the average kernel with its standard error over splits."""
    print(title)
    for name, found in scores.items():
        gain = found - scores["average kernel"]
        error = gain.std(ddof=1) / len(gain) ** 0.5
        print(f"  {name:<15} {found.mean():.3f}   {gain.mean():+.3f} ± {error:.3f}")


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X, y = load_breast_cancer(return_X_y=True)
    cancer = Views({"mean": scale(X[:, :10]), "error": scale(X[:, 10:20]), "worst": scale(X[:, 20:])})
    table("breast cancer, three views and three of noise", compare(with_noise(cancer, rng), y, METHODS))
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    wine = Views(
        {"acids": X[:, [1, 2, 3]], "colour": X[:, [9, 10, 11]], "rest": X[:, [0, 4, 5, 6, 7, 8, 12]]}
    )
    table("wine, three views", compare(wine, y, METHODS))
