"""What a model has to beat: the average kernel, the best single kernel, one kernel of everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from kernelweave.bank.chosen import ChosenBank, ConcatenatedBank
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.inputs import as_bank, is_precomputed
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.geometry import Point, Uniform
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge, Square
from kernelweave.weak_labels.bag_baselines import SetKernelMKLClassifier
from kernelweave.weak_labels.multi_instance import BagClassifier

AVERAGE, SINGLE, CONCATENATED = "average kernel", "best single kernel", "concatenation"
Grid = dict[str, Sequence[Any]]
GUESS: dict[str, tuple[str, Any]] = {
    "classification": ("most frequent class", DummyClassifier(strategy="most_frequent")),
    "regression": ("mean of the target", DummyRegressor()),
}
# The best single kernel is looked for among so many: those with the largest weight, where there are more.
# That choice has seen all rows, in the baseline's favour.
MOST_SINGLE = 30
INNER_FOLDS = 3
SHARED = ("class_weight", "memory_limit", "n_jobs", "tol")


def best(model: Any) -> Any:
    """Return the model itself, or what a search has chosen."""
    return model.best_estimator_ if hasattr(model, "best_estimator_") else model


def baselines(model: Any, fitted: Any, y: Any) -> dict[str, Any]:
    """Return unfitted models by name, with the columns prepared and errors priced as in the model.

    ``fitted`` is the kernel machine at the end of the fitted model.
    """
    bank, prices = fitted.bank, _prices(model, fitted)
    rare = len(y) if is_regressor(model) else np.unique(np.asarray(y), return_counts=True)[1].min()
    folds = max(2, min(INNER_FOLDS, int(rare) // 2))
    average = _ending_in(model, _machine(fitted, bank, Uniform()))
    heaviest = np.argsort(-np.atleast_2d(fitted.kernel_weights_).mean(axis=0), kind="stable")
    singles = single_kernels(bank, sorted(heaviest[:MOST_SINGLE].tolist()), len(fitted.kernel_names_))
    found = {AVERAGE: searched(average, prices, folds), SINGLE: searched(average, singles | prices, folds)}
    if not is_precomputed(bank):
        joined = ConcatenatedBank(as_bank(bank), Gaussian())
        whole = _ending_in(model, _machine(fitted, joined, Uniform()))
        found[CONCATENATED] = searched(whole, prices, folds)
    guess, dummy = GUESS["regression" if is_regressor(model) else "classification"]
    return found | {guess: clone(dummy)}


def single_kernels(bank: Any, which: Sequence[int], n_kernels: int) -> Grid:
    """Return a grid of the kernels of a bank, each alone."""
    if is_precomputed(bank):
        unit = np.eye(n_kernels)
        return {"geometry": [Point(unit[m].tolist()) for m in which]}
    return {"bank": [ChosenBank(as_bank(bank), [m]) for m in which]}


def searched(model: Any, grid: Grid, folds: int) -> Any:
    """Return a search over parameters of the machine that ends a model, or the model where none is open."""
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    named = {f"{prefix}{name}": values for name, values in grid.items()}
    if all(len(values) == 1 for values in named.values()):
        return clone(model).set_params(**{name: values[0] for name, values in named.items()})
    return GridSearchCV(model, named, cv=folds)


def _prices(model: Any, fitted: Any) -> Grid:
    """Return the prices of errors that the model was searched over, for the baselines to choose from too."""
    if not isinstance(fitted, MKLModel) or not hasattr(fitted._learner, "C"):
        return {}
    search = model.steps[-1][1] if isinstance(model, Pipeline) else model
    seen = getattr(search, "cv_results_", {})
    values = [seen[name] for name in seen if name.endswith("learner__C")]
    return {"learner__C": np.unique(np.asarray(values[0], dtype=np.float64)).tolist()} if values else {}


def _ending_in(model: Any, machine: Any) -> Any:
    """Return the pipeline with another machine at its end, or the machine where there is no pipeline."""
    model = best(model)
    if not isinstance(model, Pipeline):
        return machine
    before = [(name, clone(step) if hasattr(step, "get_params") else step) for name, step in model.steps[:-1]]
    return Pipeline([*before, (model.steps[-1][0], machine)])


def _machine(fitted: Any, bank: Any, geometry: Any) -> Any:
    """Return a machine of the model's loss over a bank, with weights that are not learnt."""
    if isinstance(fitted, BagClassifier):
        return SetKernelMKLClassifier(bank, C=fitted.C, geometry=geometry)
    regression = is_regressor(fitted)
    kind: Any = MKLRegressor if regression else MKLClassifier
    if isinstance(fitted, MKLModel):
        learner = clone(fitted._learner)
    else:
        learner = Square() if regression else Hinge(C=float(getattr(fitted, "C", 1.0)))
    known = kind().get_params(deep=False)
    given = {k: v for k, v in fitted.get_params(deep=False).items() if k in SHARED and k in known}
    return kind(bank, learner=learner, geometry=geometry, **given)
