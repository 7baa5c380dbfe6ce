"""The learnt kernel as scikit-learn takes kernels: features of a pipeline, and a function of two sets of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError

from kernelweave._typing import Matrix
from kernelweave.bank.cross import combined
from kernelweave.estimators.validation import check_input


class LearntKernel:
    """The kernel that a fitted model has learnt, Σ eta_m k_m."""

    _require_fit: Any
    kernel_weights_: Any
    bank_: Any

    def combined_kernel(self, X: Any, Z: Any = None) -> Matrix:
        """Return the learnt kernel Σ eta_m k_m between the rows of X and of Z.

        Z are the training samples by default. With one set of weights per class,
        their mean over the classes is used.
        """
        self._require_fit()
        eta = np.atleast_2d(self.kernel_weights_).mean(axis=0)
        X = check_input(self, X, reset=False)
        Z = None if Z is None else check_input(self, Z, reset=False)
        return combined(self.bank_, X, eta, Z)

    def __call__(self, X: Any, Z: Any = None) -> Matrix:
        """Return the learnt kernel between the rows of X and of Z, X itself by default.

        >>> from sklearn.datasets import load_iris
        >>> from sklearn.svm import SVC
        >>> from kernelweave import MKLClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = MKLClassifier().fit(X, y)
        >>> model(X[:2], X[:3]).shape, bool(SVC(kernel=model).fit(X, y).score(X, y) > 0.95)
        ((2, 3), True)
        """
        try:
            return self.combined_kernel(X, X if Z is None else Z)
        except NotFittedError as error:
            raise NotFittedError(
                f"{error} Only a fitted model is a kernel. Cross-validation and searches clone what they are given, "
                "and clones of a model are not fitted: give them kernel=model.combined_kernel, or a pipeline, which "
                'fits the kernel in every fold: make_pipeline(model, SVC(kernel="precomputed")).'
            ) from None


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LearntKernel):  # type: ignore[misc]
    """The learnt kernel as features of a pipeline."""

    def transform(self, X: Any) -> Matrix:
        """Return the learnt kernel between samples and the training samples, one column for each of these.

        In a pipeline any kernel machine goes on from there.

        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.svm import SVC
        >>> from kernelweave import MKLClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> piped = make_pipeline(MKLClassifier(), SVC(kernel="precomputed")).fit(X, y)
        >>> piped[0].transform(X[:2]).shape, bool(piped.score(X, y) > 0.95)
        ((2, 150), True)
        """
        return self.combined_kernel(X)

    @property
    def _n_features_out(self) -> int:
        if getattr(self, "_is_on_features", False):
            raise ValueError(
                "A model on features does not keep the training samples, and so has no columns for them."
            )
        return int(self.bank_.n_samples)
