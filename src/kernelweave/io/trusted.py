"""Which types a model file may hold: those of the model's own layers, beside numpy's and scikit-learn's."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from functools import cache
from types import ModuleType

# Classes of these layers are values: making one reads no file and starts nothing.
ROOMS = (
    *("kernels", "views", "gram", "bank", "geometry", "learners", "solvers", "estimators"),
    *("multiclass", "weak_labels", "privileged", "metric", "adaptive", "baselines", "evidence"),
)
# Parts of scikit-learn's own models, and tables, that skops does not list by itself.
OF_OTHERS = (
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.ShuffleSplit",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.model_selection._split.StratifiedShuffleSplit",
)


@cache
def own_types() -> frozenset[str]:
    """Return the full names of the classes of the layers a model is made of."""
    found = set(OF_OTHERS)
    for layer in ROOMS:
        package = importlib.import_module(f"kernelweave.{layer}")
        for module in [package, *_inside(package)]:
            found |= {
                f"{module.__name__}.{name}"
                for name, value in vars(module).items()
                if isinstance(value, type) and value.__module__ == module.__name__
            }
    return frozenset(found)


def strangers(names: Iterable[str], trusted: Sequence[str | type]) -> list[str]:
    """Return the names that are neither ours nor trusted by the user."""
    also = {name if isinstance(name, str) else f"{name.__module__}.{name.__name__}" for name in trusted}
    return sorted(set(names) - own_types() - also)


def _inside(package: ModuleType) -> list[ModuleType]:
    names = (found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    return [importlib.import_module(name) for name in names]
