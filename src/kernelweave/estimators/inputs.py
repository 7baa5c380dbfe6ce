"""The three kinds of input: a table, Views, precomputed kernels."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import validate_data

from kernelweave.bank import KernelBank, PrecomputedBank, Views
from kernelweave.bank.gap_fits import fit_with_gaps
from kernelweave.bank.protocol import FittedKernels

PRECOMPUTED = "precomputed"


class Bank(Protocol):
    """Anything that learns kernels from training samples."""

    def fit(self, X: Any) -> FittedKernels: ...


def as_bank(bank: Any) -> Bank:
    """Return the bank a parameter stands for: None is the default bank, a string is 'precomputed'."""
    if bank is None:
        return KernelBank.distances()
    if isinstance(bank, str):
        if bank != PRECOMPUTED:
            raise ValueError(f"bank must be a KernelBank or 'precomputed'; got the string {bank!r}.")
        return PrecomputedBank()
    if not hasattr(bank, "fit"):
        raise TypeError(
            f"bank must be a KernelBank or 'precomputed'; got {type(bank).__name__}: wrap kernels as "
            "KernelBank([kernel, ...])."
        )
    return bank  # type: ignore[no-any-return]


def fit_bank(bank: Any, X: Any) -> FittedKernels:
    """Fit the bank to samples that may lack views; such a sample sits at the mean of those that have it."""
    fitted = fit_with_gaps(as_bank(bank), X)
    return fitted.centred() if getattr(fitted, "has_gaps", False) else fitted  # type: ignore[no-any-return]


def is_precomputed(bank: Any) -> bool:
    """Tell whether samples arrive as kernel values."""
    return (isinstance(bank, str) and bank == PRECOMPUTED) or isinstance(bank, PrecomputedBank)


def check_input(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Check the samples as far as their kind allows, and let scikit-learn remember columns and names."""
    if reset and hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_  # of an earlier fit; set again where this one has names
    if is_precomputed(estimator.bank):
        if reset:
            shape = np.shape(X[0] if isinstance(X, list | tuple) and X else X)
            estimator.n_features_in_ = shape[1] if len(shape) >= 2 else 0
        return X
    if isinstance(X, Views):
        if reset:
            estimator.n_features_in_ = X.shape[1]
        return X
    if hasattr(X, "columns"):  # pandas and polars frames keep their columns until the bank picks some
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    finite: Any = "allow-nan" if getattr(estimator, "accepts_gaps", False) else True
    return validate_data(
        estimator, X, reset=reset, dtype=np.float64, accept_sparse="csr", ensure_all_finite=finite
    )


def as_one_array(X: Any) -> Any:
    """Return a list of kernel matrices as one array (rows, n_train, M), which can be split."""
    return np.stack(X, axis=2) if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2 else X
