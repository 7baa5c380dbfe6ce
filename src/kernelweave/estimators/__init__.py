"""scikit-learn estimators: validation and glue, no mathematics."""

from kernelweave.estimators.aligned import AlignedMKLClassifier
from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.easy_mkl import EasyMKLClassifier
from kernelweave.estimators.fisher import FisherMKLClassifier
from kernelweave.estimators.heuristics import FHeuristicClassifier, PWMKClassifier
from kernelweave.estimators.lp_beta import LPBetaClassifier
from kernelweave.estimators.one_class import OneClassMKL
from kernelweave.estimators.regressor import MKLRegressor
from kernelweave.estimators.regressor_search import MKLRegressorCV
from kernelweave.estimators.search import MKLClassifierCV
from kernelweave.estimators.svm_2k import SVM2K
from kernelweave.estimators.svm_plus import SVMPlusClassifier

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
