"""What scikit-learn's selectors ask of a model: slopes and importances of columns, and its support vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from kernelweave._typing import AnyArray, Matrix, Vector
from kernelweave.bank.by_column import slopes, spreads, training_rows
from kernelweave.errors import NotOfferedError


class ColumnEffects:
    """Properties of a fitted model that are there where its kernels allow them, and else say why not."""

    # Whether the decision is Σ eta_m k_m on ``dual_coef_``, with the same weights for all samples.
    weighs_samples_alike: ClassVar[bool] = True

    @property
    def coef_(self) -> AnyArray:
        """Slope of the decision values in every column, where all kernels with weight are linear.

        Of shape (problems, columns), or (columns,) for a regression of one target, as in scikit-learn. With
        ``intercept_`` it gives the decision values, unless kernels were centred or columns shifted by the bank. With
        one problem per pair of classes these are the pairs' values, above zero for the second, and not the votes.

        >>> from sklearn.datasets import load_diabetes
        >>> from kernelweave import KernelBank, MKLRegressor
        >>> from kernelweave.kernels import Linear
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = MKLRegressor(KernelBank([Linear()])).fit(X, y)
        >>> bool(abs(X @ model.coef_ + model.intercept_ - model.predict(X)).max() < 1e-9)
        True
        """
        found = self._by_column("coef_", "permutation_importance works with any kernel", slopes)
        return self._per_problem(found)

    @property
    def feature_importances_(self) -> Vector:
        """Share of every column in the decision, where each has kernels of its own; they sum to one.

        What a column's kernels add to the decision values varies from training sample to training sample: its
        importance is the standard deviation of that. That of kernels of several columns is shared out evenly, so where
        these take all weight, as with `Simplex` they may, columns are not told apart: `LpBall` keeps every kernel.
        """
        found = self._by_column(
            "feature_importances_",
            "it is there for KernelBank.per_feature(); permutation_importance works with any kernel",
            partial(spreads, n_threads=self._n_threads),
        )
        total = found.sum()
        return np.asarray(found.sum(axis=0) / total if total > 0.0 else found.sum(axis=0))

    @property
    def support_vectors_(self) -> AnyArray:
        """The training samples with a coefficient, as rows of the table: those of ``support_``."""
        return self._by_column(
            "support_vectors_",
            "support_ has their places in the training samples: X[model.support_]",
            lambda fitted, eta, coef, support: training_rows(fitted, support),  # noqa: ARG005
        )

    def _by_column(self, name: str, instead: str, ask: Callable[..., Matrix]) -> Matrix:
        """Return what the kernels say of columns, or say why there is nothing to say."""
        self._require_fit()
        try:
            if not self.weighs_samples_alike or not hasattr(self, "dual_coef_"):
                raise NotOfferedError("its decision is not one weighted sum of kernels on its samples")
            eta = np.broadcast_to(self.kernel_weights_, (len(self.dual_coef_), len(self.bank_)))
            return ask(self.bank_, eta, self.dual_coef_, self.support_)
        except NotOfferedError as error:
            raise AttributeError(f"{type(self).__name__} has no {name} here: {error}; {instead}.") from None

    def _per_problem(self, found: Matrix) -> AnyArray:
        return found

    _require_fit: Any
    _n_threads: Any
    kernel_weights_: Any
    dual_coef_: Any
    support_: Any
    bank_: Any
