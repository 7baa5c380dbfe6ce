"""scikit-learn estimators: validation and glue, no mathematics."""

from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.search import MKLClassifierCV
from kernelweave.estimators.svm_2k import SVM2K
from kernelweave.estimators.svm_plus import SVMPlusClassifier

__all__ = ["MKLClassifier", "MKLClassifierCV", "SVM2K", "SVMPlusClassifier"]
