"""What the multiple-kernel estimators share: parts with defaults, kernels of new samples."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from kernelweave._typing import AnyArray, Matrix
from kernelweave.bank.cross import combined, contributions
from kernelweave.estimators.decisions import decision_values
from kernelweave.estimators.inputs import check_input, is_precomputed
from kernelweave.solvers import Certificate


def forget(estimator: Any) -> None:
    """Remove what an earlier fit has learnt."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def learnt(estimator: Any) -> dict[str, Any]:
    """Return what a fit has learnt, by attribute."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


class KernelEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator over a bank of kernels."""

    # Whether a sample may lack views: rows of NaN. It is not scikit-learn's tag, which means NaN anywhere.
    accepts_gaps: ClassVar[bool] = False
    defaults: ClassVar[dict[str, Callable[[], Any]]] = {}
    # Samples being looked at, and what it says of them.
    _known: tuple[Any, AnyArray] | None = None

    def part(self, name: str) -> Any:
        """Return the part, or a fresh default where the parameter is None."""
        value = getattr(self, name)
        return self.defaults[name]() if value is None else value

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``part__name`` also reaches into a part left at its default."""
        for name, make in self.defaults.items():
            if getattr(self, name) is None and any(key.startswith(f"{name}__") for key in params):
                setattr(self, name, make())
        super().set_params(**params)
        return self

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

    def _kernel_parts(self, X: Any) -> AnyArray:
        """Return what every kernel adds to the decision values: (rows, problems, M), without intercept."""
        eta = np.broadcast_to(self.kernel_weights_, (len(self.dual_coef_), len(self.bank_)))
        coef = eta[:, :, None] * self.dual_coef_[:, None, :]
        return contributions(self.bank_, check_input(self, X, reset=False), coef, self.support_)

    def _kernel_rest(self) -> AnyArray:
        """Return what no kernel adds to the decision values: (problems,)."""
        return np.asarray(self.intercept_, dtype=np.float64)

    def _values(self, X: Any) -> AnyArray:
        """Return the decision values of new samples, remembered ones where X is being looked at."""
        if self._known is not None and X is self._known[0]:
            return self._known[1]
        self._require_fit()
        return decision_values([self], X)[0]

    def _shaped(self, values: AnyArray) -> AnyArray:
        """Return decision values, one column per machine, in the shape the user expects."""
        return np.asarray(values[:, 0] if values.shape[1] == 1 else values)

    def _keep_certificates(self, certificates: list[Certificate]) -> None:
        """Set what is known of the optimum, from one certificate per problem."""
        self.certificates_ = certificates
        self.certificate_ = Certificate.total(certificates)
        self.duality_gap_ = self.certificate_.relative_gap
        self.objective_ = self.certificate_.upper

    def _require_fit(self, attribute: str | None = None) -> None:
        """Raise NotFittedError unless there is something learnt to answer with."""
        check_is_fitted(self, attribute)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = is_precomputed(self.bank)
        tags.input_tags.pairwise = precomputed
        tags.input_tags.three_d_array = precomputed
        tags.input_tags.two_d_array = not precomputed
        tags.input_tags.sparse = not precomputed  # as far as the kernels take it; they say so if not
        return tags
