"""Probabilities by scikit-learn's calibration, without fitting the model once more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration
from sklearn.model_selection import cross_val_predict

from kernelweave._typing import AnyArray, Matrix
from kernelweave.estimators.base import fitted_attributes, reset
from kernelweave.estimators.class_targets import indicators, is_multilabel
from kernelweave.estimators.validation import (
    as_one_array,
    as_samples,
    is_precomputed,
    label_column,
    require_same_rows,
)

FOLDS = 5


def calibrate(estimator: Any, X: Any, y: Any, sample_weight: Any, **metadata: Any) -> None:
    """Fit the model and a sigmoid on its cross-validated decision values; keep the model's attributes.

    ``metadata`` is what else ``fit`` takes per sample; what is None is left out.
    """
    require_same_rows(X, y)
    X = as_one_array(X) if is_precomputed(estimator.bank) else as_samples(X)
    plain = clone(estimator).set_params(probability=False)
    if getattr(estimator, "takes_indicators", False) and is_multilabel(y):
        _calibrate_labels(estimator, plain, X, indicators(y), sample_weight)
        return
    require_enough(y)
    metadata = {name: value for name, value in metadata.items() if value is not None}
    wanted = [*metadata, *(["sample_weight"] if sample_weight is not None else [])]
    if wanted and get_config()["enable_metadata_routing"]:
        plain.set_fit_request(**dict.fromkeys(wanted, True))
    calibration = CalibratedClassifierCV(plain, method="sigmoid", cv=FOLDS, ensemble=False)
    calibration.fit(X, y, sample_weight=sample_weight, **metadata)
    fitted = calibration.calibrated_classifiers_[0].estimator
    reset(estimator)
    vars(estimator).update(fitted_attributes(fitted), calibration_=calibration)


@dataclass(frozen=True)
class LabelCalibration:
    """One sigmoid per label on the decision values of a model."""

    model: Any
    sigmoids: tuple[Any, ...]

    def predict_proba(self, X: Any) -> Matrix:
        """Return the probability of every label, one column each."""
        values = self.model.decision_function(X)
        return np.column_stack(
            [sigmoid.predict(v) for sigmoid, v in zip(self.sigmoids, values.T, strict=True)]
        )


def _calibrate_labels(estimator: Any, plain: Any, X: Any, Y: AnyArray, sample_weight: Any) -> None:
    """Fit the model, and a sigmoid per label on held-out values of fits to that label alone, in stratified folds."""
    for label, column in enumerate(Y.T):
        require_enough(column, f"of label {label} ")
    reset(estimator)
    model = clone(plain).fit(X, Y, sample_weight=sample_weight)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    if weights and get_config()["enable_metadata_routing"]:
        plain.set_fit_request(sample_weight=True)
    sigmoids = []
    for column in Y.T:
        held_out = cross_val_predict(plain, X, column, cv=FOLDS, method="decision_function", params=weights)
        sigmoids.append(_SigmoidCalibration().fit(held_out, column, sample_weight))
    vars(estimator).update(fitted_attributes(model), calibration_=LabelCalibration(model, tuple(sigmoids)))


def require_enough(y: Any, of: str = "") -> None:
    """Raise ValueError where a class is too small to be in every fold of the calibration."""
    _, counts = np.unique(label_column(y), return_counts=True)
    if counts.min(initial=FOLDS) < FOLDS:
        raise ValueError(
            f"probability=True calibrates by {FOLDS}-fold cross-validation, but the smallest class {of}has "
            f"{counts.min()} sample(s): give every class {FOLDS} or more, or set probability=False."
        )
