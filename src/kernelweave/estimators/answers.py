"""What a fitted kernel machine answers about new samples: scores, classes, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from kernelweave._typing import AnyArray, Matrix
from kernelweave.estimators.base import KernelEstimator
from kernelweave.estimators.calibration import wants_probability
from kernelweave.estimators.inputs import as_one_array


class KernelClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    """A classifier whose decision is Σ eta_m k_m(x, ·) on ``dual_coef_``, plus ``intercept_``."""

    probability: bool

    def decision_function(self, X: Any) -> AnyArray:
        """Return one signed score per sample, or per sample and class beyond two classes."""
        return self._values(X)

    def predict(self, X: Any) -> AnyArray:
        """Return the class of each sample."""
        return winners(self.decision_function(X), self.classes_)

    @available_if(wants_probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Matrix:
        """Return calibrated class probabilities; needs ``probability=True`` at fit."""
        self._require_fit("calibration_")
        return self.calibration_.predict_proba(as_one_array(X))  # type: ignore[no-any-return]


def accuracy(said: AnyArray, y: AnyArray, weight: AnyArray | None = None) -> float:
    """Return the share of right answers, NaN where no sample has weight; labels are known to be in order."""
    hits = said == y
    if weight is None:
        return float(hits.mean())
    total = float(np.sum(weight))
    return float(hits @ weight) / total if total > 0.0 else np.nan


def winners(values: AnyArray, classes: AnyArray) -> AnyArray:
    """Return the class that each row of decision values speaks for."""
    index = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    return np.asarray(classes[index])
