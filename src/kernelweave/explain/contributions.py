"""What every kernel adds to the decision value of a sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelweave._typing import AnyArray, Vector
from kernelweave.errors import NotOfferedError
from kernelweave.estimators.base import KernelEstimator


@dataclass(frozen=True)
class Contributions:
    r"""What every kernel adds to the decision value of each sample: f(x) = Σ_m values_m(x) + intercept.

    Parameters
    ----------
    values : array of shape (n, M), or (n, problems, M) beyond two classes
        Contributions of the kernels.
    intercept : array of shape (), or (problems,)
        The part that no kernel adds.
    names, views : tuples of str
        The kernels, and the view of each.

    Notes
    -----
    Differs from the paper: it is in none; the decision function of every additive kernel model.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.explain import Contributions
    >>> found = Contributions(np.array([[1.0, 2.0], [3.0, 2.0]]), np.array(-1.0), ("a", "b"), ("x", "x"))
    >>> found.decision
    array([2., 4.])
    >>> found.importance()
    {'a': 1.0, 'b': 0.0}

    """

    values: AnyArray = field(repr=False)
    intercept: AnyArray
    names: tuple[str, ...]
    views: tuple[str, ...]

    @property
    def decision(self) -> AnyArray:
        """The decision values: the sum over the kernels and the intercept."""
        return np.asarray(self.values.sum(axis=-1) + self.intercept)

    def by_view(self) -> Contributions:
        """Return the contributions of the views: the sums over their kernels."""
        views = tuple(dict.fromkeys(self.views))
        places = np.array([views.index(view) for view in self.views])
        parts = [self.values[..., places == k].sum(axis=-1) for k in range(len(views))]
        return Contributions(np.stack(parts, axis=-1), self.intercept, views, views)

    def importance(self) -> dict[str, float]:
        """Return how much each kernel moves the decision: the mean distance from its mean over the samples.

        A kernel that adds the same to every sample acts as an intercept, and has importance 0. Several
        problems give their mean.
        """
        moved = np.abs(self.values - self.values.mean(axis=0)).mean(axis=0)
        shares: Vector = moved if moved.ndim == 1 else moved.mean(axis=0)
        return {name: float(share) for name, share in zip(self.names, shares, strict=True)}


def contributions(model: Any, X: Any) -> Contributions:
    """Return what every kernel of a fitted model adds to the decision value of each sample.

    Parameters
    ----------
    model : estimator
        A fitted kernel model of kernelweave, or a pipeline or search that ends in one.
    X : samples as for ``predict``.

    Returns
    -------
    Contributions
        They add up to ``decision_function`` (``predict`` of a regressor).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import KernelBank, MKLClassifier
    >>> from kernelweave.explain import contributions
    >>> X, y = load_iris(return_X_y=True)
    >>> views = {"sepal": [0, 1], "petal": [2, 3]}
    >>> model = MKLClassifier(KernelBank.per_view(views=views)).fit(X, y)
    >>> found = contributions(model, X[:3])
    >>> bool(np.allclose(found.decision, model.decision_function(X[:3])))
    True
    >>> list(found.by_view().importance())
    ['sepal', 'petal']

    """
    last, X = unwrap(model, X)
    if not isinstance(last, KernelEstimator):
        raise NotOfferedError(
            f"contributions needs a kernel machine of kernelweave; got {type(last).__name__}, "
            "which has no kernels."
        )
    last._require_fit()
    parts, intercept = _kernel_parts(last, X)
    single = parts.shape[1] == 1
    return Contributions(
        parts[:, 0] if single else parts,
        intercept.reshape(()) if single else intercept,
        tuple(str(name) for name in last.kernel_names_),
        views_of_kernels(last),
    )


def views_of_kernels(fitted: Any) -> tuple[str, ...]:
    """Return the view of every kernel of a fitted model; kernels without a view are one of their own."""
    bank = getattr(fitted, "bank_", None)  # a model on features has none
    return tuple(str(view) for view in getattr(bank, "view_names", fitted.kernel_names_))


def unwrap(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the kernel model inside pipelines and searches, and the samples transformed for it."""
    while True:
        if hasattr(model, "steps"):
            for _, step in model.steps[:-1]:
                if X is not None and step not in (None, "passthrough"):
                    X = step.transform(X)
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_") and not hasattr(model, "dual_coef_"):
            model = model.best_estimator_
        else:
            return model, X


def _kernel_parts(model: Any, X: Any) -> tuple[AnyArray, AnyArray]:
    """Return the parts of the kernels and the intercept; refuse a decision that is not a sum over kernels."""
    votes = " but a vote of pairs of classes" if getattr(model, "multiclass", None) == "one_vs_one" else ""
    refusal = NotOfferedError(
        f"The decision of {type(model).__name__} is not a sum over kernels of single samples{votes}; contributions "
        "are known for MKLClassifier, MKLRegressor, OneClassMKL and other machines with one coefficient per "
        "sample."
    )
    try:
        parts: AnyArray = model._kernel_parts(X)
        intercept: AnyArray = model._kernel_rest()
    except (IndexError, TypeError, AttributeError) as error:  # coefficients of another shape, or none
        raise refusal from error
    # A few rows are enough to see whether the parts add up to the model's own decision.
    decide = model.decision_function if hasattr(model, "decision_function") else model.predict
    decision = np.asarray(decide(_first_rows(X, 8)))
    total = parts[: len(decision)].sum(axis=2) + intercept
    decision = decision.reshape(total.shape) if decision.size == total.size else decision
    if decision.shape != total.shape:
        raise refusal
    if np.abs(decision - total).max() > 1e-9 * max(1.0, np.abs(decision).max()):
        raise refusal
    return parts, intercept


def _first_rows(X: Any, count: int) -> Any:
    if isinstance(X, list | tuple) and np.ndim(X[0]) > 1:  # matrices or views; else rows as lists
        return [part[:count] for part in X]
    return X.iloc[:count] if hasattr(X, "iloc") else X[:count]
