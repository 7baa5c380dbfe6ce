"""scikit-learn estimators: validation and glue, no mathematics."""

from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.fisher import FisherMKLClassifier
from kernelweave.estimators.one_class import OneClassMKL
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.regressor_search import MKLRegressorCV
from kernelweave.estimators.search import MKLClassifierCV

__all__ = [
    "FisherMKLClassifier",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLRegressor",
    "MKLRegressorCV",
    "OneClassMKL",
]
