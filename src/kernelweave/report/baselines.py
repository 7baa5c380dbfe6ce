"""The baselines of a report: the average kernel, the best single kernel, one of all columns, a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from kernelweave.bank.subset import ChosenBank, ConcatenatedBank
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.validation import is_precomputed
from kernelweave.explain.refits import named_bank, with_last_step
from kernelweave.geometry import Point, Uniform
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge, Square
from kernelweave.weak_labels.bag_baselines import SetKernelMKLClassifier
from kernelweave.weak_labels.multi_instance import BagClassifier

AVERAGE, SINGLE, CONCATENATED = "average kernel", "best single kernel", "concatenation"
ParamGrid = dict[str, Sequence[Any]]
# Models that ignore the columns, by task: their name and an unfitted one.
DUMMIES: dict[str, tuple[str, Any]] = {
    "classification": ("most frequent class", DummyClassifier(strategy="most_frequent")),
    "regression": ("mean of the target", DummyRegressor()),
}


def best_estimator(model: Any) -> Any:
    """Return the estimator that a search has chosen, or the model itself where it is no search."""
    return model.best_estimator_ if hasattr(model, "best_estimator_") else model


def baselines(model: Any, fitted: Any, y: Any) -> dict[str, Any]:
    """Return unfitted models by name, with the columns prepared and the cost of errors as in the model.

    ``fitted`` is the kernel model at the end of the fitted ``model``.
    """
    bank, costs = named_bank(fitted), _searched_costs(model, fitted)
    rarest = len(y) if is_regressor(model) else np.unique(np.asarray(y), return_counts=True)[1].min()
    folds = max(2, min(3, int(rarest) // 2))
    average = with_last_step(best_estimator(model), _fixed_weight_model(fitted, bank, Uniform()))
    # A search over very many single kernels takes long: the 30 of largest weight are tried. That choice was
    # made on all rows, in the baseline's favour.
    heaviest = np.argsort(-np.atleast_2d(fitted.kernel_weights_).mean(axis=0), kind="stable")[:30]
    singles = single_kernels(bank, sorted(heaviest.tolist()), fitted.kernel_names_)
    models = {
        AVERAGE: grid_search(average, costs, folds),
        SINGLE: grid_search(average, singles | costs, folds),
    }
    if not is_precomputed(bank):
        concatenated = ConcatenatedBank(bank, Gaussian())
        joint = with_last_step(best_estimator(model), _fixed_weight_model(fitted, concatenated, Uniform()))
        models[CONCATENATED] = grid_search(joint, costs, folds)
    name, dummy = DUMMIES["regression" if is_regressor(model) else "classification"]
    return models | {name: clone(dummy)}


def single_kernels(bank: Any, which: Sequence[int], names: Sequence[str]) -> ParamGrid:
    """Return a grid of some kernels of a bank, each alone; by their names, as folds may have others beside them."""
    if is_precomputed(bank):
        unit = np.eye(len(names))
        return {"geometry": [Point(unit[m].tolist()) for m in which]}
    return {"bank": [ChosenBank(bank, [str(names[m])]) for m in which]}


def grid_search(model: Any, grid: ParamGrid, folds: int) -> Any:
    """Return a search over parameters of a model's last step, or the model if there is nothing to choose."""
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    named = {f"{prefix}{name}": values for name, values in grid.items()}
    if all(len(values) == 1 for values in named.values()):
        return clone(model).set_params(**{name: values[0] for name, values in named.items()})
    return GridSearchCV(model, named, cv=folds)


def _searched_costs(model: Any, fitted: Any) -> ParamGrid:
    """Return the costs of errors that the model was searched over, for the baselines to choose from too."""
    if not isinstance(fitted, MKLModel) or not hasattr(fitted._learner, "C"):
        return {}
    search = model.steps[-1][1] if isinstance(model, Pipeline) else model
    results = getattr(search, "cv_results_", {})
    values = [results[name] for name in results if name.endswith("learner__C")]
    return {"learner__C": np.unique(np.asarray(values[0], dtype=np.float64)).tolist()} if values else {}


def _fixed_weight_model(fitted: Any, bank: Any, geometry: Any) -> Any:
    """Return a model of the same loss over a bank, with weights that are not learnt."""
    if isinstance(fitted, BagClassifier):
        return SetKernelMKLClassifier(bank, C=fitted.C, geometry=geometry)
    regression = is_regressor(fitted)
    kind: Any = MKLRegressor if regression else MKLClassifier
    if isinstance(fitted, MKLModel):
        learner = clone(fitted._learner)
    else:
        learner = Square() if regression else Hinge(C=float(getattr(fitted, "C", 1.0)))
    shared = {"class_weight", "memory_limit", "n_jobs", "tol"} & kind().get_params(deep=False).keys()
    same = {k: v for k, v in fitted.get_params(deep=False).items() if k in shared}
    return kind(bank, learner=learner, geometry=geometry, **same)
