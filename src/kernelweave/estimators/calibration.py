"""Probabilities by scikit-learn's calibration, without fitting the model once more."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV

from kernelweave.estimators.base import fitted_attributes, reset
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
    require_enough(y)
    plain = clone(estimator).set_params(probability=False)
    metadata = {name: value for name, value in metadata.items() if value is not None}
    wanted = [*metadata, *(["sample_weight"] if sample_weight is not None else [])]
    if wanted and get_config()["enable_metadata_routing"]:
        plain.set_fit_request(**dict.fromkeys(wanted, True))
    calibration = CalibratedClassifierCV(plain, method="sigmoid", cv=FOLDS, ensemble=False)
    calibration.fit(X, y, sample_weight=sample_weight, **metadata)
    fitted = calibration.calibrated_classifiers_[0].estimator
    reset(estimator)
    vars(estimator).update(fitted_attributes(fitted), calibration_=calibration)


def require_enough(y: Any) -> None:
    """Raise ValueError where a class is too small to be in every fold of the calibration."""
    _, counts = np.unique(label_column(y), return_counts=True)
    if counts.min(initial=FOLDS) < FOLDS:
        raise ValueError(
            f"probability=True calibrates by {FOLDS}-fold cross-validation, but the smallest class has "
            f"{counts.min()} sample(s): give every class {FOLDS} or more, or set probability=False."
        )
