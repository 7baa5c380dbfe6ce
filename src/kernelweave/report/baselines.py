"""What a model has to beat: the average kernel, the best single kernel, one kernel of everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from kernelweave.bank import KernelBank
from kernelweave.bank.chosen import ChosenBank
from kernelweave.estimators.bag_baselines import SetKernelMKLClassifier
from kernelweave.estimators.bag_classifier import BagClassifier
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.inputs import as_bank, is_precomputed
from kernelweave.estimators.model import MKLModel
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.geometry import Point, Uniform
from kernelweave.kernels import Gaussian
from kernelweave.learners import Hinge, Square

AVERAGE, SINGLE, CONCATENATED = "average kernel", "best single kernel", "concatenation"
# The best single kernel is looked for among so many: those with the largest weight, where there are more.
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
    bank = fitted.bank
    found = {
        AVERAGE: _ending_in(model, _machine(fitted, bank, Uniform())),
        SINGLE: _best_single(model, fitted, y),
    }
    if not is_precomputed(bank):
        found[CONCATENATED] = _ending_in(model, _machine(fitted, KernelBank([Gaussian()]), Uniform()))
    return found


def _best_single(model: Any, fitted: Any, y: Any) -> Any:
    """Return a search for the one kernel that does best on folds of the training rows."""
    heaviest = np.argsort(-np.atleast_2d(fitted.kernel_weights_).mean(axis=0), kind="stable")
    candidates = sorted(heaviest[:MOST_SINGLE].tolist())
    machine = _machine(fitted, fitted.bank, Uniform())
    whole = _ending_in(model, machine)
    prefix = f"{whole.steps[-1][0]}__" if isinstance(whole, Pipeline) else ""
    grid: dict[str, Sequence[Any]]
    if is_precomputed(fitted.bank):
        unit = np.eye(len(fitted.kernel_names_))
        grid = {f"{prefix}geometry": [Point(unit[m].tolist()) for m in candidates]}
    else:
        grid = {f"{prefix}bank": [ChosenBank(as_bank(fitted.bank), [m]) for m in candidates]}
    if len(candidates) == 1:
        return whole.set_params(**{name: values[0] for name, values in grid.items()})
    rare = len(y) if is_regressor(model) else np.unique(np.asarray(y), return_counts=True)[1].min()
    return GridSearchCV(whole, grid, cv=max(2, min(INNER_FOLDS, int(rare) // 2)))


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
