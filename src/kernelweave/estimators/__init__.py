"""scikit-learn estimators: validation and glue, no mathematics."""

from kernelweave.estimators.classifier import MKLClassifier

__all__ = ["MKLClassifier"]
