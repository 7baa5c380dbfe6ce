"""How much the kernel weights vary from sample to sample: refits on bootstrap resamples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import NotOfferedError
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.training import warn_if_open
from kernelweave.explain.contributions import views_of_kernels


@dataclass(frozen=True)
class WeightStability:
    r"""Kernel weights with bootstrap intervals and the frequency of being selected.

    Parameters
    ----------
    names, views : tuples of str
        The kernels, and the view of each.
    weights : array of shape (M,), or (classes, M)
        The weights on all samples.
    resampled : array of shape (resamples, M), or (resamples, classes, M)
        The weights on every resample.
    level : float
        Of the intervals.

    Notes
    -----
    Intervals are percentiles of the resampled weights and show how the weights vary, no more. Noise takes
    some weight in a small sample, and in a resample more still, so that the weights of a much larger sample
    lie within them far less often than ``level`` says: ``kernelweave reproduce weight-intervals`` counts it.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.explain import WeightStability
    >>> resampled = np.array([[1.0, 0.0], [0.8, 0.2]])
    >>> found = WeightStability(("a", "b"), ("x", "x"), np.array([1.0, 0.0]), resampled, 0.5)
    >>> found.frequency
    array([1. , 0.5])
    >>> found.lower
    array([0.85, 0.05])

    """

    names: tuple[str, ...]
    views: tuple[str, ...]
    weights: AnyArray
    resampled: AnyArray = field(repr=False)
    level: float

    @property
    def lower(self) -> AnyArray:
        """The lower ends of the intervals."""
        return np.asarray(np.quantile(self.resampled, 0.5 - 0.5 * self.level, axis=0))

    @property
    def upper(self) -> AnyArray:
        """The upper ends of the intervals."""
        return np.asarray(np.quantile(self.resampled, 0.5 + 0.5 * self.level, axis=0))

    @property
    def frequency(self) -> AnyArray:
        """The share of resamples in which the kernel has weight."""
        top = self.resampled.max(axis=-1, keepdims=True)
        # Less than a millionth of the largest weight is what a solver leaves at its tolerance.
        return np.asarray((self.resampled > 1e-6 * top).mean(axis=0))

    def over_classes(self) -> WeightStability:
        """Return the same of the mean over the classes, where every class has weights of its own."""
        if self.weights.ndim == 1:
            return self
        return replace(self, weights=self.weights.mean(axis=0), resampled=self.resampled.mean(axis=1))

    def view_weights(self) -> dict[str, tuple[float, float, float]]:
        """Return (weight, lower, upper) of every view: of the sum over its kernels, mean over the classes."""
        found, mean = {}, self.over_classes()
        for view in dict.fromkeys(self.views):
            of_view = np.array([name == view for name in self.views])
            sums = mean.resampled[:, of_view].sum(axis=1)
            ends = np.quantile(sums, [0.5 - 0.5 * self.level, 0.5 + 0.5 * self.level])
            found[view] = (float(mean.weights[of_view].sum()), float(ends[0]), float(ends[1]))
        return found


def weight_stability(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    n_resamples: int = 100,
    level: float = 0.95,
    random_state: Any = None,
) -> WeightStability:
    """Refit a model on bootstrap resamples and return how its kernel weights vary.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, FisherMKLClassifier, OneClassMKL
        The model, or a fitted search for one, whose best parameters are taken; it is cloned, never changed.
        Standardise the columns beforehand.
    X, y : training data as for ``fit``.
    n_resamples : int, default=100
        Number of resamples.
    level : float, default=0.95
        Share of the resampled weights that an interval covers.
    random_state : int, RandomState or None, default=None
        Draws the resamples.

    Returns
    -------
    WeightStability
        Weights, intervals and selection frequency.

    Notes
    -----
    A sample drawn k times has weight k, which is the same problem as k copies of it, so the kernels are
    computed and stored once, and every fit starts from the one on all samples. What the kernels estimate from
    samples (widths, scalings) is estimated from all of them. A resample without some class is drawn again.
    Differs from the paper: it is in none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import KernelBank, MKLClassifier
    >>> from kernelweave.explain import weight_stability
    >>> X, y = load_iris(return_X_y=True)
    >>> views = {"sepal": [0, 1], "petal": [2, 3]}
    >>> model = MKLClassifier(KernelBank.per_view(views=views))
    >>> weight_stability(model, X[50:], y[50:], n_resamples=10, random_state=0).names
    ('sepal·gaussian(scale=1)', 'petal·gaussian(scale=1)')

    """
    model = getattr(model, "best_estimator_", model)  # of a search: with the parameters it chose
    if not isinstance(model, MKLModel):
        raise NotOfferedError(
            f"weight_stability refits models that learn kernel weights, such as MKLClassifier; got "
            f"{type(model).__name__}: pass the last step of a pipeline and transformed samples."
        )
    if not model.refits_on_resamples:
        raise NotOfferedError(
            f"The weights of {type(model).__name__} do not come from one problem over weighted samples, so "
            "they cannot be refitted on resamples of them."
        )
    if getattr(model, "features", None) is not None:
        raise NotOfferedError(
            f"weight_stability refits on the kernels themselves, and this {type(model).__name__} learns on "
            f"{model.features!r}: set features=None, and pass a few thousand samples."
        )
    if n_resamples < 2 or not 0.0 < level < 1.0:
        raise ValueError(
            f"n_resamples must be 2 or more and level between 0 and 1; got {n_resamples} and {level}."
        )
    plain = {"probability": False} if hasattr(model, "probability") else {}
    model = clone(model).set_params(**plain)
    model._check_parameters()
    data = model._validate(X, y)
    model._check_parts(data)
    task = model._build_grams(data, [model] * (n_resamples + 1))
    solved = model._solve(task)
    model._set_fitted(task, solved)
    warn_if_open([one.result for one in solved], model.tol)
    starts = [one.warm_start for one in solved]
    found, still_open = [], []
    rng, classes = check_random_state(random_state), _classes(task.targets)
    for counts in _resample_counts(n_resamples, len(data.weight), classes, rng):
        resampled = replace(task, data=replace(data, weight=data.weight * counts))
        again = model._solve(resampled, starts)
        still_open += [one.result for one in again]
        eta = [one.result.eta for one in again]
        found.append(eta[0] if len(eta) == 1 else np.array(eta))
    with warnings.catch_warnings():
        warnings.simplefilter("once", ConvergenceWarning)
        warn_if_open(still_open, model.tol)
    weights = np.asarray(model.kernel_weights_)
    return WeightStability(
        tuple(model.kernel_names_), views_of_kernels(model), weights, np.array(found), level
    )


def _classes(targets: dict[str, AnyArray]) -> AnyArray:
    """Return the number of each sample's class, or zeros where targets are not classes."""
    columns = np.column_stack(list(targets.values()))
    if np.unique(columns).size > 2:
        return np.zeros(len(columns), dtype=np.intp)
    return np.asarray(np.unique(columns, axis=0, return_inverse=True)[1]).ravel()


def _resample_counts(n: int, size: int, classes: AnyArray, rng: Any) -> Iterator[Vector]:
    """Yield how often every sample is drawn, in resamples that have two samples of every class or more."""
    for _ in range(n):
        while True:
            counts = rng.multinomial(size, np.full(size, 1.0 / size)).astype(np.float64)
            present = np.bincount(classes, weights=counts > 0)
            if present.min() >= min(2, np.bincount(classes).min()):
                yield counts
                break
