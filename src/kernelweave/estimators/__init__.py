"""scikit-learn estimators: validation and glue, no mathematics."""

from kernelweave.estimators.classifier import MKLClassifier
from kernelweave.estimators.search import MKLClassifierCV

__all__ = ["MKLClassifier", "MKLClassifierCV"]
