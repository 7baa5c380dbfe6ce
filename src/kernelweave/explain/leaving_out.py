"""What leaving a view out costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelweave._typing import Vector
from kernelweave.errors import DataError
from kernelweave.evaluation import Paired, paired
from kernelweave.explain.contributions import unwrap, views_of_kernels
from kernelweave.explain.refits import (
    cross_validation_splits,
    has_bank,
    held_out_scores,
    train_test_data,
    with_chosen_kernels,
    with_kernels,
)


@dataclass(frozen=True)
class ViewCosts:
    r"""Held-out scores with all views and without each, on the same splits.

    Parameters
    ----------
    scores : array of shape (splits,)
        Scores with all views.
    without : dict of view to array of shape (splits,)
        Scores without it.
    test_share : float
        Share of the samples in a test fold.

    Notes
    -----
    Differs from the paper: it is in none.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.explain import ViewCosts
    >>> costs = ViewCosts(np.array([0.9, 0.8]), {"a": np.array([0.7, 0.7])}, 0.5)
    >>> round(costs.costs()["a"].difference, 3)
    0.15

    """

    scores: Vector
    without: dict[str, Vector] = field(repr=False)
    test_share: float

    def costs(self) -> dict[str, Paired]:
        """Return for every view how much the score drops without it, paired by split, with an interval.

        The intervals allow for training sets that overlap [Nadeau and Bengio].
        """
        return {
            view: paired(self.scores, scores, test_share=self.test_share)
            for view, scores in self.without.items()
        }


def leave_view_out(model: Any, X: Any, y: Any, *, cv: int = 5, random_state: Any = 0) -> ViewCosts:
    """Refit a model without each of its views, on the splits of one cross-validation.

    Parameters
    ----------
    model : estimator
        A classifier or regressor of kernelweave with a ``bank``, or a pipeline or search that ends in one; it
        is cloned, never changed.
    X, y : samples as for ``fit``.
    cv : int, default=5
        Number of folds; fewer where a class has fewer samples.
    random_state : int, RandomState or None, default=0
        Cuts the folds.

    Returns
    -------
    ViewCosts
        Scores with and without; ``costs()`` are the paired differences.

    Notes
    -----
    Other parameters stay as they are; of a search that averages kernels, so do the weights and C it has chosen on the
    first fold. A cost near zero means that the other views can replace the view, not
    that it carries no information. Differs from the paper: it is in none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import KernelBank, MKLClassifier
    >>> from kernelweave.explain import leave_view_out
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MKLClassifier(KernelBank.per_view(views={"sepal": [0, 1], "petal": [2, 3]}))
    >>> costs = leave_view_out(model, X, y, cv=3).costs()
    >>> costs["petal"].difference > costs["sepal"].difference
    True

    """
    if not has_bank(model):
        raise TypeError(
            f"leave_view_out refits models with a bank of kernels; got {type(model).__name__}, "
            "which has none."
        )
    splits = cross_validation_splits(model, X, y, cv, random_state)
    X_train, y_train, _, _ = train_test_data(model, X, y, splits[0])
    first = clone(model).fit(X_train, y_train)
    fitted, _ = unwrap(first)
    views = kernels_by_view(fitted)
    if len(views) < 2:
        raise DataError(f"There is one view only ({next(iter(views))}); nothing can be left out.")
    without = scores_without_views(
        with_chosen_kernels(model, first),
        X,
        views,
        fitted.kernel_names_,
        lambda _, reduced, X_reduced: held_out_scores(reduced, X_reduced, y, splits),
    )
    return ViewCosts(np.array(held_out_scores(model, X, y, splits)), without, 1.0 / len(splits))


def scores_without_views(
    model: Any,
    X: Any,
    views: Mapping[str, list[int]],
    names: Sequence[str],
    score: Callable[[str, Any, Any], list[float]],
) -> dict[str, Vector]:
    """Return the scores of the model without each view.

    ``views`` are the positions of each view's kernels, ``names`` what these are called; ``score`` is called with
    the name of the view, the model without it and the samples as that model takes them.
    """
    scores = {}
    for left_out, members in views.items():
        kept = sorted({m for kernels in views.values() for m in kernels} - set(members))
        scores[left_out] = np.array(score(left_out, *with_kernels(model, X, kept, names)))
    return scores


def kernels_by_view(fitted: Any) -> dict[str, list[int]]:
    """Return the positions of the kernels of every view of a fitted model."""
    views = views_of_kernels(fitted)
    return {view: [m for m, name in enumerate(views) if name == view] for view in dict.fromkeys(views)}
