"""scikit-learn estimators: validation and glue, no mathematics."""

from importlib import import_module
from typing import Any

from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.fisher import FisherMKLClassifier
from kernelweave.estimators.one_class import OneClassMKL
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.search import MKLClassifierCV, MKLRegressorCV

__all__ = [
    "AlignedMKLClassifier",
    "EasyMKLClassifier",
    "FHeuristicClassifier",
    "FisherMKLClassifier",
    "LPBetaClassifier",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "OneClassMKL",
    "PWMKClassifier",
    "SVM2K",
    "SVMPlusClassifier",
]

# Estimators that live with their mathematics, and are found here too.
ELSEWHERE = {
    "AlignedMKLClassifier": "baselines",
    "EasyMKLClassifier": "baselines",
    "FHeuristicClassifier": "baselines",
    "LPBetaClassifier": "baselines",
    "PWMKClassifier": "baselines",
    "SVM2K": "privileged",
    "SVMPlusClassifier": "privileged",
}


def __getattr__(name: str) -> Any:
    if name in ELSEWHERE:
        return getattr(import_module(f"kernelweave.{ELSEWHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
