"""Whole paths of solutions along one parameter, each started from its neighbour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelweave._typing import AnyArray, Vector
from kernelweave.estimators.base import KnownDecisions, decision_values
from kernelweave.estimators.frame import tidy
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.training import warn_if_open
from kernelweave.solvers import Certificate, Result, WarmStart


@dataclass(frozen=True)
class Path:
    """Solutions along a grid: one row of ``kernel_weights`` and one certificate per value.

    ``train_score`` and ``test_score`` are what ``score`` of the model says; the latter is NaN where no test
    samples were given, and both are for models without a ``score``, such as outlier detectors.
    ``machines`` counts the inner solves for each value.
    """

    param: str
    values: tuple[Any, ...]
    kernel_names: tuple[str, ...]
    kernel_weights: AnyArray = field(repr=False)
    certificates: tuple[Certificate, ...] = field(repr=False)
    machines: tuple[int, ...]
    train_score: Vector
    test_score: Vector
    models: tuple[MKLModel, ...] = field(repr=False)

    def to_frame(self) -> Any:
        """Return a tidy pandas frame: one row per value and kernel (and class, with weights per class)."""
        weights = self.kernel_weights.reshape(len(self.values), -1, len(self.kernel_names))
        rows = [
            {
                self.param: value,
                "class": c if weights.shape[1] > 1 else None,
                "kernel": name,
                "weight": weights[i, c, m],
                "lower": self.certificates[i].lower,
                "upper": self.certificates[i].upper,
                "relative_gap": self.certificates[i].relative_gap,
                "machines": self.machines[i],
                "train_score": self.train_score[i],
                "test_score": self.test_score[i],
            }
            for i, value in enumerate(self.values)
            for c in range(weights.shape[1])
            for m, name in enumerate(self.kernel_names)
        ]
        return tidy(rows)


def path(
    model: MKLModel,
    X: Any,
    y: Any,
    *,
    param: str,
    values: Sequence[Any],
    sample_weight: Any = None,
    X_test: Any = None,
    y_test: Any = None,
) -> Path:
    """Fit the model along a grid of one parameter, every fit started from the one before.

    The kernels are computed and stored once. Neighbouring values of θ, p, v or C have similar solutions,
    so most fits take very few inner solves; give the values in order.

    Parameters
    ----------
    model : MKLClassifier, MKLRegressor, FisherMKLClassifier
        The model; it is cloned, never changed.
    X, y, sample_weight : training data as for ``fit``.
    param : str
        A parameter of the geometry or the learner, such as "geometry__theta" or "learner__C"; "p" or "reg"
        of `FisherMKLClassifier`.
    values : sequence
        Its values, in the order of the fits.
    X_test, y_test : optional
        Samples to score every model on.

    Returns
    -------
    Path
        Weights, certificates, scores and the fitted models.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kernelweave import KernelBank, MKLClassifier, path
    >>> from kernelweave.geometry import BoxSimplex
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> views = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
    >>> model = MKLClassifier(KernelBank.per_view(views=views), geometry=BoxSimplex(theta=1.0))
    >>> along = path(model, X / X.std(axis=0), y, param="geometry__theta", values=[1 / 3, 0.5, 1.0])
    >>> along.kernel_weights.shape
    (3, 3)

    """
    values = tuple(values)
    if not values:
        raise ValueError("path needs at least one value; got none.")
    if not getattr(model, "path_params", ()):
        raise ValueError(
            "path is for models whose fits can start from one another, such as MKLClassifier; "
            f"{type(model).__name__} has none: fit it once per value."
        )
    if not param.startswith(model.path_params):
        raise ValueError(
            f"path is for parameters that leave the kernels as they are; those of {type(model).__name__} "
            f"begin with {' or '.join(model.path_params)}; got {param!r}."
        )
    plain = {"probability": False} if hasattr(model, "probability") else {}
    models = [clone(model).set_params(**{param: value}, **plain) for value in values]
    data = models[0]._validate(X, y, sample_weight)
    for current in models:
        current._copy_metadata(models[0])
        current._check_parameters()
        current._check_parts(data)
    task = models[0]._build_grams(data, models)
    starts: list[WarmStart] | None = None
    results: list[Result] = []
    for current in models:
        solved = current._solve(task, starts)
        current._set_fitted(task, solved)
        starts = [one.warm_start for one in solved]
        results += [one.result for one in solved]
    warn_if_open(results, model.tol)
    weights = np.array([m.kernel_weights_ for m in models])
    return Path(
        param=param,
        values=values,
        kernel_names=models[0].kernel_names_,
        kernel_weights=weights,
        certificates=tuple(m.certificate_ for m in models),
        machines=tuple(m.n_iter_ for m in models),
        train_score=_scores(models, X, y),
        test_score=np.full(len(models), np.nan) if X_test is None else _scores(models, X_test, y_test),
        models=tuple(models),
    )


def _scores(models: Sequence[MKLModel], X: Any, y: Any) -> Vector:
    """Return what ``score`` of each model says of the samples, NaN where there is none; one look for all."""
    if not hasattr(models[0], "score"):
        return np.full(len(models), np.nan)
    values = decision_values(models, X)
    answering = [KnownDecisions(model, X, known) for model, known in zip(models, values, strict=True)]
    return np.array([model.score(X, y) for model in answering])
