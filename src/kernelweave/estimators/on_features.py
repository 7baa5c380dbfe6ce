"""New samples under a model that may stand on explicit features in place of its kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelweave._threads import threads_for
from kernelweave._typing import AnyArray, Indices, Matrix
from kernelweave.bank.column_table import ColumnTable
from kernelweave.bank.cross import in_slices
from kernelweave.bank.protocol import n_rows
from kernelweave.estimators.base import KernelEstimator
from kernelweave.estimators.validation import check_input


class OnFeatures(KernelEstimator):
    """An estimator that may keep features (``features_``) and their coefficients in place of training samples."""

    def combined_kernel(self, X: Any, Z: Any = None) -> Matrix:
        """Return the learnt kernel Σ eta_m k_m between the rows of X and of Z.

        Z are the training samples by default; a model on features does not keep them. With one set of weights per
        class, their mean over the classes is used.
        """
        self._require_fit()
        if not self._is_on_features:
            return super().combined_kernel(X, Z)
        if Z is None:
            raise ValueError(
                "A model on features keeps its landmarks and not the training samples; combined_kernel(X, Z) "
                "compares with any samples Z."
            )
        eta = np.atleast_2d(self.kernel_weights_).mean(axis=0)
        used = np.flatnonzero(eta)
        sides = []
        for samples in (X, Z):
            raw = self.features_.raw(check_input(self, samples, reset=False), used.tolist())
            parts = [R if T is None else R @ T for R, T in zip(raw, self._transforms(used), strict=True)]
            sides.append([np.sqrt(eta[m]) * part for m, part in zip(used, parts, strict=True)])
        return np.asarray(np.hstack(sides[0]) @ np.hstack(sides[1]).T)

    def _columns_used(self) -> ColumnTable:
        if not self._is_on_features:
            return super()._columns_used()
        return ColumnTable(getattr(self, "used_columns_", ()))

    @property
    def _is_on_features(self) -> bool:
        return hasattr(self, "features_")

    def _transforms(self, which: Indices) -> list[Matrix | None]:
        return [self.features_.transforms[m] for m in which]

    def _kernel_parts(self, X: Any) -> AnyArray:
        if not self._is_on_features:
            return super()._kernel_parts(X)
        return self._contributions(check_input(self, X, reset=False))

    def _contributions(self, X: Any) -> AnyArray:
        if all(coef is None for coef in self.feature_coef_):  # no kernel is used
            return np.zeros((n_rows(X), self.intercept_.size, len(self.feature_coef_)))
        return np.asarray(self.features_.contributions(X, self.feature_coef_, threads_for(self.n_jobs)))

    def _values(self, X: Any) -> AnyArray:
        self._require_fit()
        if not self._is_on_features:
            return super()._values(X)
        X = check_input(self, X, reset=False)
        results = self.intercept_.size * len(self.feature_coef_)
        values = in_slices(X, lambda rows: self._contributions(rows).sum(axis=2), results)
        return self._shaped(values + self.intercept_)
